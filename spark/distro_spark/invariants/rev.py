"""INV-REV: a revision stands for one content.

What revision r of a client holds is said by the first row of its owner with r; where the owner's own state was not
recorded (a real server), by the first message that carried r, else by the first row. Every other content under r is a
violation, and its signature says which kind:

* `stale stamp`: it is the content of a later revision; the replica took the content over and not the revision (B10);
* `stale content`: it is the content of an earlier revision; something old was written over the new (B05);
* `reused revision`: the owner itself changed its content without moving on (B18). What a former owner took over after
  a restart, when the client is not its own any more, is a replica like any other;
* `foreign content`: the owner is not known to have held it.

Up to 2.1.1 there are no revisions, the field is always 0 (docs/protocol #releases-matrix): such runs are not judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from distro_spark.compiling import compiled
from distro_spark.encoding import NO_REVISION
from distro_spark.invariants.registry import Invariant, Needs
from distro_spark.rows import Facts, Flags, Integers, Past, Rows, clients
from distro_spark.story import Finding, Row, Story, Told
from distro_spark.violations import SIGNATURE
from distro_traces.event import STATE_KINDS, Kind
from distro_traces.header import WITHOUT_REVISIONS


@compiled
def two_contents(rows: Rows, facts: Facts, past: Past, decides: Flags, first: Integers, last: Integers) -> int:
    """Each revision and content once in a row: what follows another of the same kind says nothing new."""
    found = 0
    for start, end in clients(rows):
        if not decides[rows.node[start]] or not facts.has_revisions[facts.run[rows.node[start]]]:
            continue
        carriers = np.empty(end - start, np.int64)
        size = 0
        before = -1
        for i in range(start, end):
            if rows.revision[i] == NO_REVISION or rows.digest[i] == 0:
                continue
            news = before < 0 or rows.revision[i] != rows.revision[before] or rows.digest[i] != rows.digest[before]
            if news:
                carriers[size] = i
                size += 1
            before = i
        order = np.argsort(rows.revision[carriers[:size]], kind="mergesort")
        for j in range(1, size):
            one, other = carriers[order[j - 1]], carriers[order[j]]
            if rows.revision[one] == rows.revision[other] and rows.digest[one] != rows.digest[other]:
                first[found], last[found] = -1, other
                found += 1
                break
    return found


def tell(story: Story, _: list[Finding]) -> Iterator[Told]:
    carriers = [row for row in story.rows if row.revision is not None and row.digest is not None]
    by_revision: defaultdict[int, list[Row]] = defaultdict(list)
    for row in sorted(carriers, key=lambda row: (_trust(row), row.at_ms, row.node, row.seq)):
        by_revision[row.revision or 0].append(row)
    held: defaultdict[str, list[int]] = defaultdict(list)  # content -> revisions that stand for it
    for revision, rows in by_revision.items():
        held[rows[0].digest or ""].append(revision)
    for revision, rows in by_revision.items():
        offenders: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in rows:
            if row.digest != rows[0].digest:
                offenders[row.node, row.digest or ""].append(row)
        for (_node, content), offending in offenders.items():
            yield _told(story, revision, rows[0], content, offending, held[content])


def _told(story: Story, revision: int, right: Row, content: str, rows: list[Row], stands_for: list[int]) -> Told:
    last = min(rows, key=lambda row: row.seq)
    said = [row.owned for row in rows if row.owned is not None]
    own = max(said) if said else True  # messages do not say
    signature = "foreign content"
    if own and last.node == right.node:
        signature = "reused revision"
    elif stands_for and max(stands_for) > revision:
        signature = "stale stamp"
    elif stands_for and min(stands_for) < revision:
        signature = "stale content"
    return Told(
        node=last.node,
        first=right,
        last=last,
        after=last.message,
        evidence={
            SIGNATURE: signature,
            "revision": revision,
            "expected": right.digest,
            "actual": content,
            "rows": len(rows),
        },
        message=f"{last.node} has content {content} of {story.client} under revision {revision} in {last}, "
        f"but that revision is {right.digest} since {right}: {signature}",
        expected=f"{last.node} holds {right.digest} of {story.client} under revision {revision}",
    )


def _trust(row: Row) -> int:
    """Whose word counts for what a revision holds: the owner's state, then what was sent, then anything."""
    if row.owned and row.kind in STATE_KINDS:
        return 0
    return 1 if row.kind == Kind.REQUEST_SENT else 2


INVARIANT = Invariant(
    "INV-REV",
    "A replica stamped with revision r holds the owner's content of r.",
    ("run", "client"),
    two_contents,
    tell,
    needs=Needs(owned=True, revision=True, received=("CHANGE",), everywhere=True),  # what excuses it is on other nodes
    not_on=WITHOUT_REVISIONS,
)
