"""The one cluster: its state, and one statement of each transition. Choosers differ only in who picks the next one.

How it is said
    `statement` what a transition is: functions in a row, whose parameter names are registers; `registers` what several
    of them write; `values` what the columns hold; `budget` two columns that only a search has.

What happens, a file for each family
    `calls` between sending and the end; `torn` CHANGEs made and applied in parts; `nodes` tasks and timers; `crashes`;
    `clients`, `http_clients`; `inside` local events, requests and set-ups in two steps; `connections` silence and the
    connection check; `links` that are cut, `half_open` ones that break silently; `members`; `operator` metadata;
    `accidents`.

What is watched on the way is in `alarms`. Who chooses: a search (`bounded/`), a clock (`clock/`), chance
(`simulation/`).
"""
