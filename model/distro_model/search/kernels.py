"""The compiled inner loops of the fast search; nothing here knows a value, only numbers.

`expand` walks the chains of many rows and writes down the rows that they lead to; `probe` looks what those that were
put aside still miss; `settle` adds candidates to the set of known states; `split` doubles that set in place;
`file_entries` fills the tables of remembered look-ups. Each of the first three is run by several threads at once, on
data that no other thread writes. The loops keep many memory accesses under way at a time: a row's place in the set is
fetched when its fingerprint is known, and read some hundred rows later.

All in one file, although it is long: stored machine code is renewed when the file of its loop changes, and the parts
that are compiled into a loop must not be elsewhere.
"""

from __future__ import annotations

import numpy as np

from distro_model.search.compiling import allocating_kernel, fetch, kernel, lowest_bit, part_of_kernel, scalar
from distro_model.search.layout import (
    ASIDE,
    BASE,
    COLUMN,
    COLUMN_BASE,
    FUNCTION,
    HASHED,
    KEPT,
    LEAST_WIDTH,
    MISSES,
    NEXT,
    READ_0,
    READ_1,
    READ_2,
    REFUSED,
    REGISTER,
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
    Place,
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
        base, shift_0, shift_1 = layout.functions[function]
        if base >= 0:
            layout.dense[base + (np.int64(one) << shift_0) + (np.int64(two) << shift_1) + three] = value
        else:
            high = np.int64(function) << 32 | np.int64(one)
            low = np.int64(two) << 32 | np.int64(three)
            slot = hashed_slot(layout.hashed, high, low)
            layout.hashed[slot, 0] = high
            layout.hashed[slot, 1] = low
            layout.hashed[slot, 2] = value
        if value == REFUSED:
            for opening in range(layout.openings.shape[0]):
                strand, opened, shift, base = layout.openings[opening]
                if opened == function:
                    place = base + (np.int64(one) << shift) + two
                    layout.refused[place] |= np.uint64(1) << np.uint64(strand & 63)


@part_of_kernel
def same(stored: Ints, row: Ints) -> bool:
    """Whether two rows are equal."""
    for column in range(row.size):  # noqa: SIM110 - compiled code has no generators
        if stored[column] != row[column]:
            return False
    return True


@part_of_kernel
def slot_of(fingerprint: np.uint64, probe: Int, size: Int) -> Int:
    """Where a fingerprint may stand, by preference: in its bucket, then in the next ones of the same part."""
    buckets = np.uint64(size // SLOTS - 1)
    bucket = np.int64((fingerprint + np.uint64(probe // SLOTS * PARTS)) & buckets)
    return bucket * SLOTS + ((np.int64(fingerprint >> np.uint64(40)) + probe) & (SLOTS - 1))


@part_of_kernel
def is_known(known: Known, fingerprint: np.uint64, row: Ints) -> bool:
    probe = 0
    while True:
        slot = slot_of(fingerprint, probe, known.prints.size)
        if known.prints[slot] == 0:
            return False
        if known.prints[slot] == fingerprint and (known.where.size == 0 or same(known.rows[known.where[slot]], row)):
            return True
        probe += 1


@part_of_kernel
def was_lately(lately: Words, fingerprint: np.uint64) -> bool:
    """Was there a candidate with this fingerprint not long ago? Remembers it if not."""
    if lately.size == 0:
        return False
    place = (fingerprint >> np.uint64(20)) & np.uint64(lately.size - 1)
    if lately[place] == fingerprint:
        return True
    lately[place] = fingerprint
    return False


@part_of_kernel
def forget(lately: Words, out: Candidates, begin: Int, end: Int) -> None:
    """These candidates are taken back."""
    if lately.size > 0:
        for candidate in range(begin, end):
            place = (out.prints[candidate] >> np.uint64(20)) & np.uint64(lately.size - 1)
            if lately[place] == out.prints[candidate]:
                lately[place] = 0


@part_of_kernel
def filter_candidates(known: Known, out: Candidates, begin: Int, end: Int) -> Int:
    """Drop candidates that are known; returns the end of what is left."""
    kept = begin
    for candidate in range(begin, end):
        fingerprint = out.prints[candidate]
        if is_known(known, fingerprint, out.rows[candidate]):
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
def remembered(layout: Layout, registers: Ints, step: Int) -> Int:
    """What is known of this look-up with what the registers hold now."""
    one = np.int64(registers[layout.steps[step, READ_0]])
    two = np.int64(registers[layout.steps[step, READ_1]])
    three = np.int64(registers[layout.steps[step, READ_2]])
    base = layout.steps[step, BASE]
    if base != HASHED:
        place = base + (one << layout.steps[step, SHIFT_0]) + (two << layout.steps[step, SHIFT_1]) + three
        return np.int64(layout.dense[np.uint64(place)])
    high = np.int64(layout.steps[step, FUNCTION]) << 32 | one
    return np.int64(layout.hashed[hashed_slot(layout.hashed, high, two << 32 | three), 2])


@part_of_kernel
def note_miss(layout: Layout, tally: Tally, report: Longs, scratch: Scratch, step: Int) -> None:
    """Write down the look-up that must be computed, if there is space and it was not written down lately."""
    registers, steps, lately = scratch.registers, layout.steps, scratch.asked_lately
    function = np.int64(steps[step, FUNCTION])
    one = np.int64(registers[steps[step, READ_0]])
    two = np.int64(registers[steps[step, READ_1]])
    three = np.int64(registers[steps[step, READ_2]])
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
def note_strand(tally: Tally, aside: Int, strand: Int) -> None:
    """In this strand of the row that stands at `aside` something is missing."""
    tally.missing[aside, strand >> 6] |= np.uint64(1) << np.uint64(strand & 63)


@part_of_kernel
def print_after(layout: Layout, scratch: Scratch, strand: Int) -> tuple[np.uint64, Int]:
    """The fingerprint of the row that a chain leads to, and 0 if that row is the same as before."""
    fingerprint = scratch.row_print[0]
    changed = np.int32(0)
    for result in range(layout.first_results[strand], layout.first_results[strand + 1]):
        base = np.int64(layout.results[result, COLUMN_BASE])
        new = scratch.registers[layout.results[result, REGISTER]]
        old = scratch.registers[layout.results[result, COLUMN]]
        changed |= new ^ old
        fingerprint += layout.numbers[np.uint64(base + new)] - layout.numbers[np.uint64(base + old)]
    return max(fingerprint, np.uint64(1)), changed


@part_of_kernel
def note_alarms(
    layout: Layout, tally: Tally, registers: Ints, strand: Int, row: Int, ordinal: Int, of_check: Int
) -> None:
    for alarm in range(layout.first_alarms[strand], layout.first_alarms[strand + 1]):
        place = np.int64(layout.alarms[alarm, 1]) + registers[layout.alarms[alarm, 0]]
        left = layout.properties[np.uint64(place)]
        while left != 0:
            found = lowest_bit(left)
            left &= left - np.uint64(1)
            if row < tally.found[of_check, found, 0]:
                tally.found[of_check, found, 0] = row
                tally.found[of_check, found, 1] = ordinal


@part_of_kernel
def write_candidate(
    layout: Layout, known: Known, out: Candidates, scratch: Scratch, strand: Int, fingerprint: np.uint64, end: Int
) -> None:
    fetch(known.prints, slot_of(fingerprint, 0, known.prints.size))
    out.prints[end] = fingerprint
    for column in range(out.rows.shape[1]):
        out.rows[end, column] = scratch.registers[column]
    for result in range(layout.first_results[strand], layout.first_results[strand + 1]):
        out.rows[end, layout.results[result, COLUMN]] = scratch.registers[layout.results[result, REGISTER]]


@part_of_kernel
def take(layout: Layout, registers: Ints, step: Int, alternative: Int) -> None:
    """Write an alternative into the registers of a step.

    Four numbers at least: it takes no loop, and what is written beyond the step belongs to later steps, or is unused.
    """
    begin = np.uint64(alternative)
    write = np.uint64(layout.steps[step, WRITE])
    for position in range(np.uint64(LEAST_WIDTH)):
        registers[write + np.uint64(position)] = layout.heap[begin + np.uint64(position)]
    for position in range(LEAST_WIDTH, np.int64(layout.steps[step, WIDTH])):
        registers[write + np.uint64(position)] = layout.heap[begin + np.uint64(position)]


@part_of_kernel
def load(layout: Layout, job: Job, row: Int, scratch: Scratch) -> None:
    rows = job.rows
    for column in range(rows.shape[1]):
        scratch.registers[column] = rows[row, column]
    total = np.uint64(0)
    for column in range(rows.shape[1]):
        place = np.int64(layout.column_bases[column]) + scratch.registers[column]
        total += layout.numbers[np.uint64(place)]
    scratch.row_print[0] = total


@part_of_kernel
def strands_to_walk(layout: Layout, job: Job, registers: Ints, word: Int) -> np.uint64:
    """Those of a word that are asked and whose openings are not known to refuse the row, a bit each."""
    bits = np.uint64(job.asked[word])
    if bits != 0:
        for guard in range(layout.first_guards[word], layout.first_guards[word + 1]):
            if layout.guarded[guard] & job.asked[word] != 0:
                one = np.int64(registers[layout.guards[guard, 0]])
                place = layout.guards[guard, 3] + (one << layout.guards[guard, 2]) + registers[layout.guards[guard, 1]]
                bits &= ~layout.refused[np.uint64(place)]
    return bits


@part_of_kernel
def refuse(layout: Layout, tally: Tally, registers: Ints, strand: Int, step: Int, is_only: bool, count: Int) -> None:
    """A walk ends at this step. If that opens the strand, and came after no choice (`is_only`), rows with the same
    columns need not be walked."""
    tally.refused[step] += count
    base = np.int64(layout.learnt[strand, 3])
    if is_only and base >= 0 and step == layout.first_steps[strand] + 1:
        one = np.int64(registers[layout.learnt[strand, 0]])
        place = np.uint64(base + (one << layout.learnt[strand, 2]) + registers[layout.learnt[strand, 1]])
        layout.refused[place] |= np.uint64(1) << np.uint64(strand & 63)


@part_of_kernel
def arrive(
    layout: Layout,
    known: Known,
    job: Job,
    out: Candidates,
    tally: Tally,
    scratch: Scratch,
    at: Place,
    end: Int,
) -> tuple[Int, Int]:
    """At the end of a chain: write down the row that it leads to, if it still counts and is another one."""
    fingerprint, changed = print_after(layout, scratch, at.strand)
    state = at.state
    # Not `end`: what was seen lately may differ when the row is walked again, and that must stop at the same point.
    if state == FREE and at.begin + at.ordinal >= out.prints.size:
        state = NO_SPACE
    if state == FREE:
        tally.taken[at.strand] += at.sign
        of_check = np.int64(at.strand >= job.chains)
        note_alarms(layout, tally, scratch.registers, at.strand, at.row, at.ordinal, of_check)
        if changed != 0 and not was_lately(job.lately, fingerprint):
            write_candidate(layout, known, out, scratch, at.strand, fingerprint, end)
            out.parents[end] = at.row
            out.ordinals[end] = at.ordinal
            end += 1
    return end, state


@part_of_kernel
def follow(
    layout: Layout, scratch: Scratch, step: Int, last: Int, choice: Int, is_only: bool
) -> tuple[Int, Int, Int, bool]:
    """Go on from a step until the end of the chain, or a look-up that is missing or refused (in the second place).

    A look-up with several alternatives leaves a choice behind, and from the end of the chain the walk goes on at the
    latest of them. Registers are written once in a chain, so that needs no restoring.
    """
    value: Int = REFUSED
    while step < last:
        value = remembered(layout, scratch.registers, step)
        if value <= REFUSED:
            break
        alternatives = layout.heap[np.uint64(value)]
        if alternatives > 1:
            is_only = False
            choice += 1
            scratch.choices[choice, 0] = step
            scratch.choices[choice, 1] = value + 1
            scratch.choices[choice, 2] = alternatives
        take(layout, scratch.registers, step, value + 1)
        step += 1
    return step, value, choice, is_only


@part_of_kernel
def choose_again(layout: Layout, scratch: Scratch, choice: Int) -> tuple[Int, Int]:
    """Take the next alternative of a choice; returns the step behind it, and the latest choice that is still open."""
    choices = scratch.choices
    step = choices[choice, 0]
    alternative = choices[choice, 1] + np.int64(layout.steps[step, WIDTH])
    choices[choice, 1] = alternative
    choices[choice, 2] -= 1
    still_open = choice - np.int64(choices[choice, 2] == 1)
    take(layout, scratch.registers, step, alternative)
    return step + 1, still_open


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
    aside: Int,
    state: Int,
) -> tuple[Int, Int]:
    """Walk every asked strand, depth first; returns the end of the candidates, and what kept it from counting. If a
    look-up is missing, the row will stand at `aside`.
    """
    load(layout, job, row, scratch)
    registers = scratch.registers
    begin, ordinal = end, 0
    for word in range(job.asked.size):
        bits = strands_to_walk(layout, job, registers, word)
        while bits != 0:
            strand = (word << 6) + lowest_bit(bits)
            bits &= bits - np.uint64(1)
            if state == FREE:
                tally.walked[strand] += sign
            step: Int = np.int64(layout.first_steps[strand])
            last = np.int64(layout.first_steps[strand + 1])
            choice: Int = -1
            is_only = True
            while True:
                step, value, choice, is_only = follow(layout, scratch, step, last, choice, is_only)
                if step == last:
                    at = Place(strand, row, ordinal, begin, sign, state)
                    end, state = arrive(layout, known, job, out, tally, scratch, at, end)
                    ordinal += 1
                elif value == UNASKED:
                    note_strand(tally, aside, strand)
                    if sign == 1:
                        note_miss(layout, tally, report, scratch, step)
                    if state == FREE:
                        state = MISSED
                else:
                    refuse(layout, tally, registers, strand, step, is_only, sign if state == FREE else 0)
                if choice < 0:
                    break
                step, choice = choose_again(layout, scratch, choice)
            if sign == -1 and state != FREE:
                return end, state
    return end, state


@kernel
def expand(
    layout: Layout, known: Known, job: Job, out: Candidates, tally: Tally, report: Longs, scratch: Scratch
) -> None:
    """Walk the asked strands of the rows `job.which`, from number `report[NEXT]` on, in order.

    A row that needs a look-up without a remembered result is put aside, and leaves no trace in any count: it is walked
    again with `sign` -1 up to the same point. Stops early when there is no space for candidates.
    """
    scalar()
    number = report[NEXT]
    filtered = end = report[KEPT]
    sign = 1
    while number < job.which.size:
        row = np.int64(job.which[number])
        begin = end
        end, state = walk_row(layout, known, job, out, tally, report, scratch, row, sign, begin, report[ASIDE], FREE)
        if state != FREE:
            forget(job.lately, out, begin, end)
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
            filtered = end = filter_candidates(known, out, filtered, end)
    report[NEXT] = number
    report[KEPT] = filter_candidates(known, out, filtered, end)


@kernel
def probe(
    layout: Layout, known: Known, job: Job, out: Candidates, tally: Tally, report: Longs, scratch: Scratch
) -> None:
    """Of each row that was put aside walk the strands in which a look-up was missing, only to see what is missing
    now."""
    scalar()
    strands = Job(job.rows, job.which, scratch.strands, job.chains, job.lately)
    for aside in range(report[ASIDE]):
        is_missing = False
        for word in range(scratch.strands.size):
            scratch.strands[word] = tally.missing[aside, word]
            tally.missing[aside, word] = 0
            is_missing |= scratch.strands[word] != 0
        if is_missing:
            row = np.int64(tally.aside[aside])
            walk_row(layout, known, strands, out, tally, report, scratch, row, 1, 0, aside, MISSED)


@kernel
def settle(
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
                if same(stored, rows[candidate]):
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
