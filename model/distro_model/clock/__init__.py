"""The clock as a chooser: all events due at an instant happen, in every possible order.

Transitions are defined in `cluster/`; clients, faults and time itself are actions (`distro_model.actions`), chosen by
the caller.

`cluster` the state as a value, `start`, `apply`, `observe`; `environment` the guards and effects of actions; `instants`
from one instant to the next, and the orders within one; `timers` due times, and the effects of timers; `board` the
mutable columns of one action, and the immediate outcome of a request, made after a `plan`; `wires` earlier decisions
about requests; `traffic` the ends of calls; `compiled` each statement as one plain function.
"""
