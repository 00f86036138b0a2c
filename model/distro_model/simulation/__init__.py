"""The simulation as a chooser: the next event in a cluster with a clock is drawn, for any length of time.

Transitions are defined in `cluster/`, as for every chooser; columns and timers are those of `clock/`, which follows
every order of the events of one instant where a simulation draws one.

`agenda` due times; `cluster` messages that take time, and timers; `clients` and `faults` the events of the environment;
`seasons` both, then a calm and a checkpoint. Chance is an argument (`agenda.Chance`), and so is the observer
(`cluster.Watch`): rows, files and seeds belong to the code that writes traces.
"""
