"""Invariants over traces as DataFrame programs, from one recorded run on a laptop to a billion events on a cluster.

`check` is the face: it loads traces (`load`), evaluates the registered invariants (`invariants`), sets known failures
apart (`known`), measures convergence and says one verdict. Everything but `session` takes a SparkSession and makes
none.
"""
