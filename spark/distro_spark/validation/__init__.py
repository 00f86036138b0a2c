"""One trace against the model: each row must be a step that the model's rules allow in what came before it.

`cluster` keeps what all clients share (which nodes are up, which calls are on their way), `client` the set of states
in which each node may hold one client, driven by its rows; `verdict` says what a rejection is, `minimal` shortens its
trace, `validate` runs them over a trace. Almost every rule reads and writes the slice of one client, so the
work is linear in the rows. When something is *sent* is not judged here: tasks, retries and periods are the
timed model's.
"""
