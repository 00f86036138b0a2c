"""The search as a chooser: everything that may happen next within bounds, as a system of columns.

What a transition does is said in `cluster/`; delays are frozen at zero, and "this timer fires now" is a choice. A call
is sent, carried, answered and ended one transition at a time only where a bound asks for it: the fewer budgets, the
fewer states.

`bounds` how large and for how long; `layout` the columns, and the places where transitions happen; `placed` which
transitions there are, and where; `chains` the look-ups that are derived from each; `periods` what a search alone has
(time in periods, sleep, silence); `cluster` puts it all together as a `search.System`; `view` rows for people.
"""
