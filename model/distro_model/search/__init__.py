"""Search: everything that is done with the reachable states of a bounded system, whatever the protocol is.

What is searched
    `system` what a system is: a row of columns, and chains of look-ups that lead from row to row; `results` what a
    search reports.

Three engines that count the same
    `readable` plain Python, obvious and slow: the reference; `engine` the same at a million states a second, made of
    `program` (names become numbers), `tables` and `layout` (what look-ups gave, as arrays), `kernels` and `compiling`
    (the compiled loops), `expander` (threads and chunks), `known` (the visited set); `automatic` chooses between them.
    The third runs on Spark, `distro_spark.search`.

The graph of a small system
    `graph` all states and transitions as arrays, built by `columns`; `liveness` what lasts for ever; `tours` walks that
    take every transition, and rare states; `drawing` GraphML and DOT; `itf` one run for other tools.

Nothing in this folder knows Distro; `bounded/` does.
"""
