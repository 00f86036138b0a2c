"""The simulation as a chooser: what happens next in a cluster with a clock is drawn, for any length of time.

What a transition does is defined in `cluster/`, as for every chooser; columns and timers are those of `clock/`, which
follows every order of what falls into one instant where a simulation draws one.

`agenda` what is due when; `cluster` messages that take time, and timers; `clients` and `faults` what happens to a
cluster; `seasons` both, then a calm and a checkpoint. Chance is an argument (`agenda.Chance`), and so is the
observer (`cluster.Watch`): rows, files and seeds belong to the code that writes traces.
"""
