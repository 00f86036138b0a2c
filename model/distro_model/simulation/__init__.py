"""The simulation as a chooser: what happens next in a cluster with a clock is drawn, as long as you like.

What a transition does is said in `cluster/`, as for every chooser; columns and timers are those of `clock/`, which
follows every order of what falls into one instant where a simulation draws one.

`agenda` what is due when; `cluster` messages that take time, and timers; `clients` and `faults` what happens to a
cluster; `seasons` both, then a calm and a checkpoint. Chance is an argument (`agenda.Chance`), and so is whoever
watches (`cluster.Watch`): rows, files and seeds are the business of those who write traces.
"""
