"""One trace against the model: each row must be a step that the model's rules allow after the rows before it.

`cluster` keeps the state that all clients share (nodes that are up, open calls), `client` the set of states in which
each node may hold one client, driven by its rows; `verdict` defines a rejection, `minimal` shortens its trace,
`validate` runs them over a trace. Almost every rule reads and writes the slice of one client, so the work is linear in
the rows. The time at which a message is *sent* is not judged here: the timed model has tasks, retries and periods.
It is a package of its own, since `distro_traces` does not know the model.
"""
