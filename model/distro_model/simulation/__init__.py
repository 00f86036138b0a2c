"""The simulation as a chooser: the next event in a cluster with a clock is drawn, for any length of time.

Transitions are defined in `cluster/`, as for every chooser; columns and timers are those of `clock/`, which follows
every order of the events of one instant where a simulation draws one.

* `scheduler`: due times.
* `cluster`: messages that take time, and timers.
* `clients`, `faults`: the events of the environment.
* `phases`: a phase with clients and faults, then a quiet one and a checkpoint.

The source of chance (`scheduler.Chance`) and the observer (`cluster.Watch`) are arguments: rows, files and seeds belong
to the code that writes traces.
"""
