"""The bounded cluster: the model as a system of columns, in which whatever may happen next is a choice.

The same `step` as in the timed mode, with delays frozen at zero: "this timer fires now" is a choice, and so is what the
network does to a call. `bounds` say how large and for how long; `values` what the columns hold; `clients`, `nodes`,
`inside`, `links` and `clock` who makes which transitions, `ip_clients` and `members` those of the HTTP API and of the
member list (`ghosts` what becomes of their ghost state); `checks`, `inside_checks` and `ip_checks` what is looked at in
each state; `cluster` puts it together as a `search.System`; `view` shows rows to people. Each call is sent, carried,
answered and ended one transition at a time only where a bound asks for it: the fewer budgets, the fewer states.
"""
