"""INV-INIT and INV-LOAD: before it is loaded a node speaks for nobody, and it does get loaded.

A node that has asked for a snapshot since its start, and has had no answer yet, has an incomplete table: it must not
verify, and must not give that table to a member that loads (B33). And by the next checkpoint, when others are up, it
must have had its answer (B11, B32), or go on asking after asks of which none came through: whatever loses them, the
node does what it can. A refusal is an answer too: where members refuse, one that finds nothing else is loaded. Of nodes
that never asked the trace does not say whether they were loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from distro_spark.compiling import compiled
from distro_spark.invariants.registry import Invariant, Needs
from distro_spark.rows import SENT, VERIFY, Facts, Flags, Integers, Past, Rows, replicas
from distro_spark.story import RESETS, Finding, Row, Story, Told
from distro_traces.event import Kind, Outcome

ASKS_AGAIN_MS = 62_000
"""A load that failed is repeated after 30 s, up to 2.0 after a minute; an ask may take 30 s. Some margin."""


@compiled
def verified_early(rows: Rows, facts: Facts, past: Past, decides: Flags, first: Integers, last: Integers) -> int:
    found = 0
    for start, end in replicas(rows, decides):
        for i in range(start, end):
            if rows.kind[i] != SENT or rows.operation[i] != VERIFY:
                continue
            life = past.reset[i] - 1
            if life >= facts.reset_from[rows.node[i]] and rows.seq[i] < facts.loaded_seq[life]:
                first[found], last[found] = -1, i
                found += 1
                break
    return found


def tell(story: Story, found: list[Finding]) -> Iterator[Told]:
    for _, verify in found:
        started = next(row for row in reversed(story.resets[verify.node]) if row.seq < verify.seq)
        yield Told(
            node=verify.node,
            first=started,
            last=verify,
            after=verify.message,
            evidence={"peer": verify.peer},
            message=f"{verify.node} verifies {story.client} with {verify.peer} in {verify}, and has had no answer to "
            f"its load since {started}",
            expected=f"{verify.node} verifies nothing before it is loaded",
        )


def gave_early(marks: Mapping[str, Sequence[Row]]) -> Iterator[Told]:
    """A snapshot given by a node that waits for its own."""
    for rows in marks.values():
        started: Row | None = None
        loads = loaded = False
        for row in rows:
            if row.kind in RESETS:
                started, loads, loaded = row, False, False
            elif row.kind == Kind.REQUEST_SENT:
                loads = True
            elif is_answer(row):
                loaded = True
            elif row.kind == Kind.REPLY_SENT and row.outcome == Outcome.SUCCESS and started and loads and not loaded:
                yield Told(
                    node=row.node,
                    first=started,
                    last=row,
                    after=row.message,
                    evidence={"peer": row.peer},
                    message=f"{row.node} gives {row.peer} a snapshot in {row}, and has had no answer to its own load "
                    f"since {started}",
                    expected=f"{row.node} refuses a snapshot before it is loaded",
                )
                break


def never_loaded(marks: Mapping[str, Sequence[Row]]) -> Iterator[Told]:
    """A node that is not loaded at its first checkpoint after a start, when others have that checkpoint too."""
    checked = [(node, row.detail) for node, rows in marks.items() for row in rows if row.kind == Kind.CHECKPOINT]
    for node, rows in marks.items():
        if not any(row.kind == Kind.REQUEST_SENT for row in rows):
            continue
        started: Row | None = None
        calls: list[Row] = []
        for row in rows:
            if row.kind in RESETS:
                started, calls = (row if row.kind == Kind.NODE_STARTED else None), []
            elif is_answer(row):
                started = None
            elif row.kind in (Kind.REQUEST_SENT, Kind.REPLY_RECEIVED):
                calls.append(row)
            elif row.kind == Kind.CHECKPOINT and started:
                others = any(other != node and number == row.detail for other, number in checked)
                if others and not goes_on_asking(calls, row):
                    yield _not_loaded(started, calls, row)
                started = None


def goes_on_asking(calls: Sequence[Row], checkpoint: Row) -> bool:
    """Was every ask of the node lost, and is the next one under way or not due yet?"""
    ended = [row for row in calls if row.kind == Kind.REPLY_RECEIVED]
    is_late = not calls or checkpoint.at_ms - calls[-1].at_ms > ASKS_AGAIN_MS
    return not is_late and all(row.outcome in (Outcome.TIMEOUT, Outcome.UNREACHABLE) for row in ended)


def _not_loaded(started: Row, calls: Sequence[Row], checkpoint: Row) -> Told:
    asked = next((row for row in reversed(calls) if row.kind == Kind.REQUEST_SENT), None)
    return Told(
        node=started.node,
        first=started,
        last=checkpoint,
        after=asked.message if asked else None,
        evidence={"asked": asked and asked.peer},
        message=f"{started.node} is not loaded at checkpoint {checkpoint.detail}: nobody has answered a load since "
        f"{started}" + (f"; the last one asked was {asked.peer} in {asked}" if asked else ""),
        expected=f"{started.node} asks the members that are up until one of them answers",
    )


def is_answer(row: Row) -> bool:
    return row.kind == Kind.REPLY_RECEIVED and row.outcome in (Outcome.SUCCESS, Outcome.FAIL)


INIT = Invariant(
    "INV-INIT",
    "A node that is not loaded neither verifies nor gives a snapshot.",
    ("run", "client", "node"),
    verified_early,
    tell,
    needs=Needs(sent=("SNAPSHOT", "VERIFY"), lossless=True),
    of_nodes=gave_early,
)
LOAD = Invariant(
    "INV-LOAD",
    "A node that starts while another is up is loaded once that one has answered, and goes on asking until then.",
    ("run", "node"),
    needs=Needs(sent=("SNAPSHOT",), lossless=True),
    of_nodes=never_loaded,
    needs_checkpoint=True,
)
