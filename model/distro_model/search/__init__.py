"""Search: everything that is done with the reachable states of a bounded system, whatever the protocol is.

`system` says what a system is: a row of columns, and chains of look-ups that lead from row to row. `readable`
searches it in plain Python and is the reference for every other engine; `engine` searches it at millions of states a
second, with what `program`, `tables`, `layout`, `kernels`, `expander` and `known` do for it. Nothing in this folder
knows Distro; `bounded/` does.
"""
