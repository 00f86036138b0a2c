"""distro_model: Distro as a pure state machine. An overview, from the bottom up.

One node
    `value` the base of all values; `messages` requests between nodes; `local_events` events between the parts of one
    node; `node` the state of a node; `events` its inputs and outputs;
    `rules/` its behaviour, one named function per transition, each with its source; `step` the one step function;
    `profiles` the releases and `strict`, as data; `mutants` small named changes that tests must detect.

With a clock
    `actions` the actions of an environment; `clock/` the effect of each action on a cluster, the due times of timers,
    and every order within one instant; `possible` the set of states that agree with the observations; `simulation/`
    one order drawn at random, with messages that take time.

With choices instead of a clock
    `cluster/` the transitions of a cluster, each defined once; `transitions` their labels; `bounded/` the choice
    among them within bounds; `search/` the search of the reachable states of such a system, independent of the
    protocol; `properties/` what must hold and what must be reachable; `explorer` the search in the terms of the
    protocol; `timing` a run of the search on a clock, `repeating` a counterexample as few actions.

Everything here is a function of its arguments: no clock, no I/O, no randomness.
"""
