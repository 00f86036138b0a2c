"""Invariants over traces as functions of Polars frames, in this process or on Spark, for one run or a billion events.

`check` is the entry: an engine (`local`, `on_spark`) supplies the rows, the registered invariants (`invariants`) judge
them, known defects are set apart (`symptoms`). Everything but `session` takes a SparkSession and makes none.
"""
