"""The clock as a chooser: all that is due at an instant happens, in every order that is possible.

What a transition does is defined in `cluster/`; clients, faults and time itself are actions (`distro_model.actions`),
chosen by the caller.

`cluster` the state as a value, `start`, `apply`, `observe`; `environment` which actions make sense, and what they do;
`instants` from one to the next, and in which orders; `timers` what is due when, and what it does; `board` the mutable
columns on which it all happens, and what becomes of a request at once, made after a `plan`; `wires` what is decided
about requests beforehand; `traffic` how calls ended; `compiled` each statement as one plain function.
"""
