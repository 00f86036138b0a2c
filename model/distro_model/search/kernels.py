"""The compiled inner loops of the fast search; nothing here knows a value, only numbers.

`expand` walks the chains of many rows and writes down the rows that they lead to; `settle` adds them to the set of
known states; `split` doubles that set in place; `file_entries` fills the tables of remembered look-ups. Each of the
first two is run by several threads at once, on data that no other thread writes. The loops keep many memory accesses
under way at a time: a row's place in the set is fetched when its fingerprint is known, and read some hundred rows
later.

All in one file, although it is long: stored machine code is renewed when the file of its loop changes, and the parts
that are compiled into a loop must not be elsewhere.
"""

from __future__ import annotations

import numpy as np

from distro_model.search.compiling import allocating_kernel, fetch, kernel, lowest_bit, part_of_kernel
from distro_model.search.layout import (
    ASIDE,
    BASE,
    FUNCTION,
    KEPT,
    MISSES,
    NEXT,
    READ_0,
    READ_1,
    READ_2,
    REFUSED,
    SHIFT_0,
    SHIFT_1,
    UNASKED,
    WIDTH,
    WRITE,
    Bytes,
    Candidates,
    Indices,
    Int,
    Ints,
    Job,
    Known,
    Layout,
    Longs,
    Scratch,
    Tally,
    Words,
)

SLOTS = 8
"""Slots in a bucket of the set of known states: one cache line of fingerprints."""
PARTS = 64
"""The set falls into so many parts (the low bits of a fingerprint) that can be written independently."""
FILTERED_EVERY = 512
AHEAD = 24
"""How many candidates `settle` fetches ahead."""
FREE, MISSED, NO_SPACE = 0, 1, 2
"""May the walk of a row still count, or what keeps it from that?"""


@part_of_kernel
def hashed_place(high: Int, low: Int) -> np.uint64:
    mixed = np.uint64(high) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(low) * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(32))


@part_of_kernel
def hashed_slot(hashed: Longs, high: Int, low: Int) -> Int:
    """The slot of a look-up, or the empty one where it belongs."""
    mask = np.uint64(hashed.shape[0] - 1)
    slot = hashed_place(high, low) & mask
    while hashed[slot, 2] != 0 and (hashed[slot, 0] != high or hashed[slot, 1] != low):
        slot = (slot + np.uint64(1)) & mask
    return np.int64(slot)


@kernel
def file_entries(layout: Layout, entries: Ints, begin: Int, end: Int) -> None:
    """Put look-ups (function, three numbers, value) into the dense or the hashed table, and mark the first guards."""
    for entry in range(begin, end):
        function, one, two, three, value = entries[entry]
        base, shift_0, shift_1, reads = layout.functions[function]
        if base >= 0:
            layout.dense[base + (np.int64(one) << shift_0) + (np.int64(two) << shift_1) + three] = value
        else:
            high = np.int64(function) << 32 | np.int64(one)
            low = np.int64(two) << 32 | np.int64(three)
            slot = hashed_slot(layout.hashed, high, low)
            layout.hashed[slot, 0] = high
            layout.hashed[slot, 1] = low
            layout.hashed[slot, 2] = value
        if reads == 1 and value == REFUSED:
            for opening in range(layout.openings.shape[0]):
                if layout.openings[opening, 1] == function:
                    strand = layout.openings[opening, 0]
                    layout.refused[layout.openings[opening, 2] + one, strand >> 6] |= np.uint64(1) << np.uint64(
                        strand & 63
                    )


@part_of_kernel
def same(layout: Layout, stored: Ints, row: Ints) -> bool:
    """Are the rows equal, up to symmetry?"""
    for permutation in range(layout.images.shape[1]):
        equal = True
        for column in range(row.size):
            place = layout.column_bases[column] + row[column]
            if stored[layout.image_columns[permutation, column]] != layout.images[place, permutation]:
                equal = False
                break
        if equal:
            return True
    return False


@part_of_kernel
def home(prints: Words, fingerprint: np.uint64) -> Int:
    """The first slot of a fingerprint's bucket."""
    return np.int64(fingerprint & np.uint64((prints.size >> 3) - 1)) * SLOTS


@part_of_kernel
def slot_of(fingerprint: np.uint64, probe: Int, size: Int) -> Int:
    """Where a fingerprint may stand, by preference: in its bucket, then in the next ones of the same part."""
    buckets = np.uint64(size // SLOTS - 1)
    bucket = np.int64((fingerprint + np.uint64(probe // SLOTS * PARTS)) & buckets)
    return bucket * SLOTS + ((np.int64(fingerprint >> np.uint64(40)) + probe) & (SLOTS - 1))


@part_of_kernel
def is_known(layout: Layout, known: Known, fingerprint: np.uint64, row: Ints) -> bool:
    probe = 0
    while True:
        slot = slot_of(fingerprint, probe, known.prints.size)
        if known.prints[slot] == 0:
            return False
        if known.prints[slot] == fingerprint and (
            known.where.size == 0 or same(layout, known.rows[known.where[slot]], row)
        ):
            return True
        probe += 1


@part_of_kernel
def filter_candidates(layout: Layout, known: Known, lately: Words, out: Candidates, begin: Int, end: Int) -> Int:
    """Drop candidates that are known, or were seen lately; returns the end of what is left."""
    kept = begin
    recent = np.uint64(lately.size - 1)
    for candidate in range(begin, end):
        fingerprint = out.prints[candidate]
        if lately.size > 0:
            place = (fingerprint >> np.uint64(20)) & recent
            if lately[place] == fingerprint:
                continue
            lately[place] = fingerprint
        if is_known(layout, known, fingerprint, out.rows[candidate]):
            continue
        if kept != candidate:
            out.prints[kept] = fingerprint
            out.parents[kept] = out.parents[candidate]
            out.ordinals[kept] = out.ordinals[candidate]
            for column in range(out.rows.shape[1]):
                out.rows[kept, column] = out.rows[candidate, column]
        kept += 1
    return kept


@part_of_kernel
def remembered(layout: Layout, registers: Longs, step: Int) -> Int:
    """What is known of this look-up with what the registers hold now."""
    one = registers[layout.steps[step, READ_0]]
    two = registers[layout.steps[step, READ_1]]
    three = registers[layout.steps[step, READ_2]]
    base = np.int64(layout.steps[step, BASE])
    if base >= 0:
        place = base + (one << layout.steps[step, SHIFT_0]) + (two << layout.steps[step, SHIFT_1]) + three
        return np.int64(layout.dense[place])
    high = np.int64(layout.steps[step, FUNCTION]) << 32 | one
    return np.int64(layout.hashed[hashed_slot(layout.hashed, high, two << 32 | three), 2])


@part_of_kernel
def note_miss(tally: Tally, report: Longs, lately: Words, function: Int, one: Int, two: Int, three: Int) -> None:
    """Write down what must be asked, if there is space and it was not written down lately."""
    key = hashed_place(function << 32 | one, two << 32 | three) | np.uint64(1)
    place = (key >> np.uint64(1)) & np.uint64(lately.size - 1)
    if lately[place] == key or report[MISSES] == tally.misses.shape[0]:
        return
    lately[place] = key
    miss = report[MISSES]
    tally.misses[miss, 0] = function
    tally.misses[miss, 1] = one
    tally.misses[miss, 2] = two
    tally.misses[miss, 3] = three
    report[MISSES] += 1


@part_of_kernel
def changes(layout: Layout, tally: Tally, report: Longs, scratch: Scratch, strand: Int, sign: Int) -> tuple[Int, bool]:
    """Fill `plus` and `minus`; returns how many, and whether each of them has a fingerprint."""
    count = 0
    complete = True
    for result in range(layout.first_results[strand], layout.first_results[strand + 1]):
        column = np.int64(layout.result_columns[result])
        new = scratch.registers[layout.result_registers[result]]
        old = scratch.registers[column]
        if new != old:
            base = np.int64(layout.column_bases[column])
            scratch.plus[count] = base + new
            scratch.minus[count] = base + old
            count += 1
            if layout.numbers[base + new, 0] == 0:
                complete = False
                if sign == 1:
                    note_miss(tally, report, scratch.asked_lately, -1 - column, new, 0, 0)
    return count, complete


@part_of_kernel
def note_alarms(layout: Layout, tally: Tally, registers: Longs, strand: Int, row: Int, ordinal: Int) -> None:
    for alarm in range(layout.first_alarms[strand], layout.first_alarms[strand + 1]):
        place = layout.alarm_bases[alarm] + registers[layout.alarm_registers[alarm]]
        found = layout.properties[place] - 1
        if found >= 0 and row < tally.found[found, 0]:
            tally.found[found, 0] = row
            tally.found[found, 1] = ordinal


@part_of_kernel
def write_candidate(
    layout: Layout, known: Known, out: Candidates, scratch: Scratch, strand: Int, count: Int, end: Int
) -> None:
    """The row after a transition with `count` changes, and the least of the fingerprints of its renamed rows."""
    fingerprint = np.uint64(0)
    for permutation in range(scratch.row_prints.size):
        total = scratch.row_prints[permutation]
        for change in range(count):
            total += layout.numbers[scratch.plus[change], permutation]
            total -= layout.numbers[scratch.minus[change], permutation]
        if permutation == 0 or total < fingerprint:
            fingerprint = total
    fingerprint = max(fingerprint, np.uint64(1))
    fetch(known.prints, slot_of(fingerprint, 0, known.prints.size))
    out.prints[end] = fingerprint
    for column in range(out.rows.shape[1]):
        out.rows[end, column] = scratch.registers[column]
    for result in range(layout.first_results[strand], layout.first_results[strand + 1]):
        out.rows[end, layout.result_columns[result]] = scratch.registers[layout.result_registers[result]]


@part_of_kernel
def enter(
    layout: Layout, tally: Tally, report: Longs, scratch: Scratch, strand: Int, step: Int, sign: Int, state: Int
) -> tuple[bool, Int]:
    """Begin a step; returns whether there are alternatives, and the new state of the row."""
    value = remembered(layout, scratch.registers, step)
    if value == UNASKED:
        if sign == 1:
            registers, steps = scratch.registers, layout.steps
            one, two, three = steps[step, READ_0], steps[step, READ_1], steps[step, READ_2]
            function = np.int64(steps[step, FUNCTION])
            lately = scratch.asked_lately
            note_miss(tally, report, lately, function, registers[one], registers[two], registers[three])
        return False, (MISSED if state == FREE else state)
    if value == REFUSED:
        if state == FREE:
            tally.refused[step] += sign
        return False, state
    if step == layout.first_steps[strand] and state == FREE:
        tally.passed[strand] += sign
    scratch.left[step] = layout.heap[value]
    scratch.alternatives[step] = value + 1
    return True, state


@part_of_kernel
def take_next(layout: Layout, scratch: Scratch, step: Int) -> None:
    """Write the next alternative of a step into its registers."""
    scratch.left[step] -= 1
    begin = scratch.alternatives[step]
    width = layout.steps[step, WIDTH]
    for position in range(width):
        scratch.registers[layout.steps[step, WRITE] + position] = layout.heap[begin + position]
    scratch.alternatives[step] = begin + width


@part_of_kernel
def load(layout: Layout, rows: Ints, row: Int, scratch: Scratch) -> None:
    for column in range(rows.shape[1]):
        scratch.registers[column] = rows[row, column]
    for permutation in range(scratch.row_prints.size):
        total = np.uint64(0)
        for column in range(rows.shape[1]):
            total += layout.numbers[layout.column_bases[column] + scratch.registers[column], permutation]
        scratch.row_prints[permutation] = total


@part_of_kernel
def walk_row(
    layout: Layout,
    known: Known,
    job: Job,
    out: Candidates,
    tally: Tally,
    report: Longs,
    scratch: Scratch,
    row: Int,
    sign: Int,
    end: Int,
) -> tuple[Int, Int]:
    """Walk every asked strand, depth first; returns the end of the candidates, and what kept it from counting.

    Registers are written once in a chain, so going back to an earlier step needs no restoring.
    """
    load(layout, job.rows, row, scratch)
    ordinal = 0
    state: Int = FREE
    for word in range(job.asked.size):
        bits = job.asked[word]
        for column in range(job.rows.shape[1]):
            bits &= ~layout.refused[layout.column_bases[column] + scratch.registers[column], word]
        while bits != 0:
            strand = (word << 6) + lowest_bit(bits)
            bits &= bits - np.uint64(1)
            first = np.int64(layout.first_steps[strand])
            last = np.int64(layout.first_steps[strand + 1])
            step: Int = first
            forward = True
            while step >= first:
                if forward and step == last:
                    count, complete = changes(layout, tally, report, scratch, strand, sign)
                    if state == FREE and not complete:
                        state = MISSED
                    if state == FREE and count > 0 and end == out.prints.size:
                        state = NO_SPACE
                    if state == FREE:
                        tally.taken[strand] += sign
                        note_alarms(layout, tally, scratch.registers, strand, row, ordinal)
                        if count > 0:
                            write_candidate(layout, known, out, scratch, strand, count, end)
                            out.parents[end] = row
                            out.ordinals[end] = ordinal
                            end += 1
                    ordinal += 1
                    forward = False
                elif forward:
                    forward, state = enter(layout, tally, report, scratch, strand, step, sign, state)
                if forward or (step < last and scratch.left[step] > 0):
                    take_next(layout, scratch, step)
                    step += 1
                    forward = True
                else:
                    step -= 1
    return end, state


@kernel
def expand(
    layout: Layout, known: Known, job: Job, out: Candidates, tally: Tally, report: Longs, scratch: Scratch
) -> None:
    """Walk the asked strands of the rows `job.which`, from number `report[NEXT]` on, in order.

    A row that needs a look-up which nobody has asked yet is put aside, and leaves no trace in any count: it is walked
    again with `sign` -1 up to the same point. Stops early when there is no space for candidates.
    """
    number = report[NEXT]
    filtered = end = report[KEPT]
    sign = 1
    while number < job.which.size:
        row = np.int64(job.which[number])
        begin = end
        end, state = walk_row(layout, known, job, out, tally, report, scratch, row, sign, begin)
        if state != FREE:
            end = begin
            sign = -sign
            if sign == -1:
                continue
        if state == NO_SPACE and begin == filtered:
            break
        if state == MISSED:
            tally.aside[report[ASIDE]] = row
            report[ASIDE] += 1
        if state != NO_SPACE:
            number += 1
        if state == NO_SPACE or end - filtered >= FILTERED_EVERY:
            filtered = end = filter_candidates(layout, known, job.lately, out, filtered, end)
    report[NEXT] = number
    report[KEPT] = filter_candidates(layout, known, job.lately, out, filtered, end)


@kernel
def settle(
    layout: Layout,
    known: Known,
    rows: Ints,
    prints: Words,
    order: Longs,
    parts: tuple[Int, Int],
    base: Int,
    is_new: Bytes,
    slots: Longs,
) -> None:
    """Add the candidates `order` whose fingerprints fall into `parts` to the set, and mark those that were new.

    With exact comparison `where` gets `base` + the candidate for a new state, and `slots` says where that stands.
    """
    size = known.prints.size
    exact = known.where.size > 0
    for number in range(order.size):
        if number + AHEAD < order.size:
            fetch(known.prints, slot_of(prints[order[number + AHEAD]], 0, size))
        candidate = order[number]
        fingerprint = prints[candidate]
        part = np.int64(fingerprint & np.uint64(PARTS - 1))
        if part < parts[0] or part >= parts[1]:
            continue
        probe = 0
        slot = slot_of(fingerprint, probe, size)
        while known.prints[slot] != 0:
            if known.prints[slot] == fingerprint:
                if not exact:
                    break
                other = np.int64(known.where[slot])
                stored = rows[other - base] if other >= base else known.rows[other]
                if same(layout, stored, rows[candidate]):
                    break
            probe += 1
            slot = slot_of(fingerprint, probe, size)
        if known.prints[slot] == 0:
            known.prints[slot] = fingerprint
            is_new[number] = 1
            if exact:
                known.where[slot] = base + candidate
                slots[number] = slot


@part_of_kernel
def put(prints: Words, where: Indices, fingerprint: np.uint64, index: Int) -> None:
    """Add a fingerprint that is not in the set."""
    probe = 0
    slot = slot_of(fingerprint, probe, prints.size)
    while prints[slot] != 0:
        probe += 1
        slot = slot_of(fingerprint, probe, prints.size)
    prints[slot] = fingerprint
    if where.size > 0:
        where[slot] = index


@allocating_kernel
def split(prints: Words, where: Indices) -> None:
    """Spread a set over twice the space, in place: the upper half of `prints` is empty and stands right behind.

    Bucket b becomes b and b + half, so what is at home in a bucket always fits. What had overflowed from another
    bucket waits until the end.
    """
    half = prints.size // 2
    buckets = np.uint64(half // SLOTS - 1)
    exact = where.size > 0
    waiting = 0
    for slot in range(half):
        if prints[slot] != 0 and np.int64(prints[slot] & buckets) != slot // SLOTS:
            waiting += 1
    waiting_prints = np.zeros(waiting, np.uint64)
    waiting_where = np.zeros(waiting, np.int64)
    here = np.zeros(SLOTS, np.uint64)
    here_where = np.zeros(SLOTS, np.int64)
    waiting = 0
    for bucket in range(half // SLOTS):
        for position in range(SLOTS):
            slot = bucket * SLOTS + position
            here[position] = prints[slot]
            prints[slot] = 0
            if exact:
                here_where[position] = where[slot]
        for position in range(SLOTS):
            fingerprint = here[position]
            if fingerprint != 0 and np.int64(fingerprint & buckets) == bucket:
                put(prints, where, fingerprint, here_where[position])
            elif fingerprint != 0:
                waiting_prints[waiting] = fingerprint
                waiting_where[waiting] = here_where[position]
                waiting += 1
    for number in range(waiting):
        put(prints, where, waiting_prints[number], waiting_where[number])
