"""The known states of a search: a set of their fingerprints, and the state and transition by which each was reached.

That is 8 bytes a slot and 6 bytes a state; with exact comparison the rows themselves are added. A set is three
quarters full at most, grows in place, and falls into 64 parts that threads fill side by side.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from distro_model.search.kernels import split
from distro_model.search.layout import Ints, Known, Longs

FIRST_SLOTS = 1 << 16
"""A part has 1024 slots at least: random fingerprints never fill one while the set has room (5 standard deviations)."""
FULL, BRIM = 0.75, 0.85
"""How full the set is before it grows; how full it may be where it cannot."""
NO_ROOT = 0


class OutOfRoomError(Exception):
    """An array would grow beyond the limit of the search."""


Reserve = Callable[[int], None]
"""Called with the number of bytes to add; raises `OutOfRoomError`."""


class KnownStates:
    """`parents` and `ordinals`: for each state the one that it was reached from, and by which transition of that."""

    def __init__(self, columns: int, exact: bool) -> None:
        self.exact = exact
        self.size = 0
        self.room = FIRST_SLOTS
        self.prints = np.zeros(FIRST_SLOTS, np.uint64)
        self.where = np.zeros(FIRST_SLOTS if exact else 0, np.uint32)
        self.rows = np.zeros((FIRST_SLOTS if exact else 0, columns), np.int32)
        self.parents = np.zeros(FIRST_SLOTS, np.uint32)
        self.ordinals: NDArray[np.uint16 | np.uint32] = np.zeros(FIRST_SLOTS, np.uint16)

    @property
    def memory_bytes(self) -> int:
        return sum(each.nbytes for each in (self.prints, self.where, self.rows, self.parents, self.ordinals))

    def arrays(self) -> Known:
        return Known(self.prints, self.where, self.rows)

    def make_room(self, more: int, reserve: Reserve) -> None:
        """Be ready for `more` new states; the arrays of before are no longer valid."""
        wanted = self.size + more
        while wanted > FULL * self.prints.size:
            try:
                reserve(self.prints.nbytes + self.where.nbytes)
            except OutOfRoomError:
                if wanted > BRIM * self.prints.size:
                    raise
                break
            # Not a copy: the system moves the pages of a large array, so old and new never stand side by side.
            self.prints.resize(2 * self.prints.size, refcheck=False)
            self.where.resize(2 * self.where.size, refcheck=False)
            split(self.prints, self.where)
        if wanted > self.room:
            longer = max(wanted, self.room + self.room // 4)
            of_rows = self.rows.itemsize * self.rows.shape[1] if self.exact else 0
            reserve((longer - self.room) * (self.parents.itemsize + self.ordinals.itemsize + of_rows))
            self.room = longer
            self.parents.resize(longer, refcheck=False)
            self.ordinals.resize(longer, refcheck=False)
            if self.exact:
                self.rows.resize((longer, self.rows.shape[1]), refcheck=False)

    def append(self, rows: Ints, parents: Longs, ordinals: Ints) -> None:
        """Number the new states; they are in the set already."""
        end = self.size + len(rows)
        if len(ordinals) and ordinals.max() > np.iinfo(self.ordinals.dtype).max:
            self.ordinals = self.ordinals.astype(np.uint32)
        self.parents[self.size : end] = parents
        self.ordinals[self.size : end] = ordinals
        if self.exact:
            self.rows[self.size : end] = rows
        self.size = end

    def ordinals_to(self, state: int) -> list[int]:
        """The run to a state: which transition to take, from the initial row on."""
        ordinals = []
        while state != NO_ROOT:
            ordinals.append(int(self.ordinals[state]))
            state = int(self.parents[state])
        return ordinals[::-1]
