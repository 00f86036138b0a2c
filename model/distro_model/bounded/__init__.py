"""The bounded cluster: the model as a system of columns, in which whatever may happen next is a choice.

The same `step` as in the timed mode, with delays frozen at zero: "this timer fires now" is a choice, and so is what the
network does to a call. Each call is sent, carried, answered and ended one transition at a time only where a bound asks
for it: the fewer budgets, the fewer states.

The frame
    `bounds` how large and for how long; `values` what the columns hold; `draft` the words in which chains are written;
    `cluster` puts it all together as a `search.System`; `symmetry` who is interchangeable; `view` rows for people.

Who makes which transitions
    `clients` connections and registrations; `ip_clients` clients of the HTTP API; `nodes` tasks, verify rounds, loads,
    crashes; `inside` local events, half-done requests and the service index; `torn` changes that are applied in parts;
    `links` what becomes of a call; `accidents` handlers that raise, ids that collide; `connections` silence and the
    connection check; `half_open` links that break silently; `members` the member list; `operator` metadata; `clock`
    verify periods. `ghosts` what becomes of the ghost state of ip:port clients.

What is looked at
    `checks`, `inside_checks`, `ip_checks` states; `alarms` transitions; `step_alarms` one step of one node.
"""
