"""What the compiled loops work on: tuples of arrays, and what their columns mean.

A remembered look-up is one number: 0 nobody has asked yet, 1 it was refused, otherwise where in the heap its
alternatives stand (how many there are, then their values one after the other).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Int = int | np.signedinteger[Any]
Ints = npt.NDArray[np.int32]
Indices = npt.NDArray[np.uint32]
Longs = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]

UNASKED, REFUSED = 0, 1
NEXT, KEPT, ASIDE, MISSES = range(4)
"""What `expand` reports: the next row, the candidates, rows put aside, look-ups that nobody has asked yet."""
READ_0, READ_1, READ_2, SHIFT_0, SHIFT_1, BASE, FUNCTION, WRITE, WIDTH, STEP_SIZE = range(10)


class Layout(NamedTuple):
    """Everything that is known of the look-ups, and where it stands. "Place" is column base + number of the value."""

    steps: Ints
    """(step, `STEP_SIZE`): three registers, two shifts, base in `dense` or -1, function, first write, how many."""
    first_steps: Ints
    """Where each strand begins; one more at the end."""
    first_results: Ints
    result_columns: Ints
    result_registers: Ints
    first_alarms: Ints
    alarm_registers: Ints
    alarm_bases: Ints
    openings: Ints
    """(strand, function, column base) of strands that begin with a look-up on one column."""
    column_bases: Ints
    numbers: Words
    """(place, permutation): what it adds to the fingerprint; 0 where nobody has asked yet."""
    images: Ints
    """(place, permutation): the number of the renamed value in its column."""
    image_columns: Ints
    """(permutation, column)."""
    refused: Words
    """(place, word): the strands whose first look-up refuses this value, a bit each."""
    properties: Ints
    """Domain base + number -> 1 + the number of the property whose finding it is, or 0."""
    functions: Ints
    """(function, 4): base, two shifts, how many it reads."""
    dense: Ints
    hashed: Longs
    """(slot, 3): two words of key, value. An empty slot has value 0."""
    heap: Ints


class Known(NamedTuple):
    """The set of known states. `where` and `rows` are empty unless rows are compared exactly."""

    prints: Words
    where: Indices
    rows: Ints


class Job(NamedTuple):
    rows: Ints
    which: Ints
    asked: Words
    """The strands to walk, a bit each."""
    lately: Words
    """A direct-mapped cache of fingerprints; empty: not used."""


class Candidates(NamedTuple):
    rows: Ints
    prints: Words
    parents: Ints
    ordinals: Ints


class Tally(NamedTuple):
    taken: Longs
    passed: Longs
    """Strand -> how often its first look-up had alternatives."""
    refused: Longs
    """Step -> refusals; those of first look-ups are incomplete, see `passed`."""
    misses: Ints
    """(n, 4): function and three numbers, or -1 - column and the number of a value that has no fingerprint yet."""
    aside: Ints
    found: Longs
    """(property, 2): row and ordinal of the first finding; far beyond every row where there is none."""


class Scratch(NamedTuple):
    """What one `expand` keeps while it walks a row."""

    registers: Longs
    alternatives: Longs
    """Step -> where the next of its alternatives stands in the heap."""
    left: Longs
    """Step -> how many of them are left."""
    row_prints: Words
    """Permutation -> the fingerprint of the renamed row."""
    plus: Longs
    minus: Longs
    """The places that a transition adds and removes."""
    asked_lately: Words
