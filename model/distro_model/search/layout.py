"""The data of the compiled loops: tuples of arrays, and the meaning of their columns.

A cached look-up is one number: 0 not computed yet, 1 it was refused, otherwise the position in the heap of its
alternatives (their number, then their values one after the other).
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
"""The report of `expand`: the next row, the candidates, rows put aside, look-ups not computed yet."""
READ_0, READ_1, READ_2, SHIFT_0, SHIFT_1, BASE, FUNCTION, WRITE, WIDTH, STEP_SIZE = range(10)
COLUMN, REGISTER, COLUMN_BASE = range(3)
HASHED = 0xFFFFFFFF
"""The base of a look-up that has no dense table."""
LEAST_WIDTH = 4
"""The maximum number of registers that a look-up writes; there is space behind the last ones."""


class Layout(NamedTuple):
    """Everything that is known of the look-ups, and where it stands. "Place" is column base + number of the value."""

    steps: Indices
    """(step, `STEP_SIZE`): three registers, two shifts, base in `dense`, function, first write, how many."""
    first_steps: Ints
    """Where each strand begins; one more at the end."""
    first_results: Ints
    results: Indices
    """(result, 3): column, register, column base."""
    first_alarms: Ints
    alarms: Indices
    """(alarm, 2): register, domain base."""
    first_guards: Ints
    """Where the guards of each word begin; one more at the end. A word is 64 strands, a bit each."""
    guards: Indices
    """(guard, 4): two registers, shift, base in `refused`. What strands that begin with the same columns share."""
    guarded: Words
    """Guard -> the strands of its word that share it."""
    openings: Ints
    """(n, 4): strand, function, shift, base in `refused`, for strands whose first look-up may refuse columns."""
    learnt: Ints
    """(strand, 4): two registers, shift, base in `refused`, where the second look-up may; else -1. A thread that walks
    such a strand writes down what it refuses. Two threads may write one word at once; a lost write is learnt again."""
    column_bases: Ints
    numbers: Words
    """Column base + number of a value -> what the value adds to the fingerprint of a row."""
    refused: Words
    """Guard base + (number << shift) + number -> the strands whose opening refuses these values."""
    properties: Words
    """Domain base + number -> the properties of which it is a finding, a bit each."""
    functions: Ints
    """(function, 3): base (-1: hashed), two shifts."""
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
    chains: Int
    """How many strands are chains; the others are those of checks."""
    lately: Words
    """A direct-mapped cache of fingerprints; empty: not used."""


class Place(NamedTuple):
    """Where a walk is: at the end of this strand, from this row, in its transition number `ordinal`."""

    strand: Int
    row: Int
    ordinal: Int
    begin: Int
    """The first candidate of this row."""
    sign: Int
    """-1 if counts are to be taken back."""
    state: Int
    """May the walk still count?"""


class Candidates(NamedTuple):
    rows: Ints
    prints: Words
    parents: Ints
    ordinals: Ints


class Tally(NamedTuple):
    taken: Longs
    walked: Longs
    """Strand -> how many rows walked it; the others are known to be refused by its first look-up."""
    refused: Longs
    """Step -> refusals while a strand was walked."""
    misses: Ints
    """(n, 4): function and three numbers."""
    aside: Ints
    missing: Words
    """(row put aside, word): the strands in which a look-up is missing, a bit each."""
    found: Longs
    """(2, property, 2): row and ordinal of the first finding of a transition, then of a check; far beyond every row
    where there is none."""


class Scratch(NamedTuple):
    """The data that one `expand` keeps while it walks a row."""

    registers: Ints
    choices: Longs
    """(n, 3): a step with several alternatives, where the latest stands in the heap, how many there are from it on."""
    row_print: Words
    """One number: the fingerprint of the row."""
    asked_lately: Words
    strands: Words
    """Those of one row that `probe` walks."""
