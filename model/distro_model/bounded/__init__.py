"""The search as a chooser: all possible transitions within bounds, as a system of columns.

Transitions are defined in `cluster/`; delays are frozen at zero, and "this timer fires now" is a choice. A call is
sent, carried, answered and ended one transition at a time only where a bound requires it: the fewer budgets, the fewer
states.

`bounds` the size and the budgets; `layout` the columns, and the places where transitions happen; `placed` the
transitions, and their places; `chains` the look-ups that are derived from each; `periods` the parts that only a search
has (time in periods, sleep, silence); `cluster` combines them into a `search.System`; `view` rows in readable form.
"""
