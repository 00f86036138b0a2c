"""The default engine: small searches in plain Python, large ones in compiled loops.

Loading the compiled loops takes about a second; most searches are over by then. The readable search gets a limit of
states; a search that exceeds it starts anew in the fast one. Both report the same counts and findings.
"""

from __future__ import annotations

from distro_model.search.readable import search_readably
from distro_model.search.results import Limits, Search, Stopped, Watch, never_stop
from distro_model.search.system import System

SMALL = 12_000
"""The limit of states of the readable search: half a second's work."""


def search_automatically(system: System, limits: Limits = Limits(), watch: Watch = never_stop) -> Search:
    """Search every reachable row, or as many as the limits allow."""
    most = SMALL if limits.max_states is None else min(SMALL, limits.max_states)
    found = search_readably(system, Limits(most), watch)
    if found.stopped is not Stopped.MAX_STATES or most == limits.max_states:
        return found
    from distro_model.search.engine import search  # noqa: PLC0415 - numba is loaded only when it pays

    return search(system, limits, watch)
