"""Delta debugging: the rows of a rejected trace of which none can be left out (Zeller, Hildebrandt 2002)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from distro_traces.event import Event


def minimal(rows: Sequence[Event], still: Callable[[Sequence[Event]], bool]) -> tuple[Event, ...]:
    """A part of `rows` for which `still` holds, and no longer when any one row is taken out of it."""
    kept, parts = list(rows), 2
    while len(kept) >= 2:
        size = max(1, -(-len(kept) // parts))
        for begin in range(0, len(kept), size):
            without = kept[:begin] + kept[begin + size :]
            if still(without):
                kept, parts = without, max(parts - 1, 2)
                break
        else:
            if size == 1:
                break
            parts = min(len(kept), parts * 2)
    return tuple(kept)
