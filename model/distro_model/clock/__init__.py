"""The clock as a chooser: all events due at an instant happen, in every possible order.

Transitions are defined in `cluster/`; clients, faults and time itself are actions (`distro_model.actions`), chosen by
the caller.

* `cluster`: the state as a value; `start`, `apply`, `observe`.
* `environment`: the guards and effects of actions.
* `instants`: the step from one instant to the next, and the orders of the events within one.
* `timers`: due times, and the effects of timers.
* `mutable_cluster`: a mutable copy of the state for one action, and the immediate outcome of a request; `plan`: its
  constants.
* `wires`: decisions about requests that were made before they are sent.
* `traffic`: the ends of calls.
* `compiled`: each statement as one plain function.
"""
