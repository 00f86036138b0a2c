"""Search: the reachable states of a bounded system, independent of the protocol.

What is searched
    `system` the system: a row of columns, and chains of look-ups that lead from row to row; `results` the report of a
    search.

Two engines that count the same
    `readable` plain Python, obvious and slow: the reference; `engine` the same at a million states a second, made of
    `program` (names become numbers), `tables` and `layout` (what look-ups gave, as arrays), `kernels` and `compiling`
    (the compiled loops), `expander` (threads and chunks), `known` (the visited set).

The graph of a small system
    `graph` all states and transitions as arrays, built by `columns`; `liveness` infinite runs; `tours` walks that
    take every transition, and rare states; `drawing` GraphML and DOT; `itf` one run for other tools.

No file of this folder depends on Distro; `bounded/` does.
"""
