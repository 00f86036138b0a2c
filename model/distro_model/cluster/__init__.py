"""The cluster: its state, and one definition of each transition. Choosers differ only in how they select the next one.

How a transition is defined
    `statement` a transition: a sequence of functions whose parameter names are registers; `registers` those that
    several transitions write; `values` the contents of the columns; `budget` two columns that only a search has.

Transitions, a file for each family
    `calls` between sending and the end; `torn` CHANGEs made and applied in parts; `nodes` tasks and timers; `crashes`;
    `clients`, `http_clients`; `inside` local events, requests and set-ups in two steps; `connections` silence and the
    connection check; `links` that are cut, `half_open` ones that break silently; `members`; `operator` metadata;
    `accidents`.

Checks of a transition are in `alarms`. Choosers: a search (`bounded/`), a clock (`clock/`), chance (`simulation/`).
"""
