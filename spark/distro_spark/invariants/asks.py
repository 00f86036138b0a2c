"""INV-ASKS: a verify asks, and brings nobody into being.

Who does not know the client of a verify answers with FAIL, and waits for the owner to send it. A node that has a copy
between that request and its answer has made it up (`m-query-creates`): nobody will ever delete it.
"""

from __future__ import annotations

from collections.abc import Iterator

from distro_spark.compiling import compiled
from distro_spark.invariants.registry import Invariant, Needs
from distro_spark.rows import APPLIED, RECEIVED, REPLIED, VERIFY, Facts, Flags, Integers, Past, Rows, replicas
from distro_spark.story import Finding, Story, Told, succeeded


@compiled
def made_up(rows: Rows, facts: Facts, past: Past, decides: Flags, first: Integers, last: Integers) -> int:
    """Only where the three rows stand side by side is it certain that no sync came in between; a snapshot may have."""
    found = 0
    for start, end in replicas(rows, decides):
        for i in range(start + 1, end - 1):
            if rows.kind[i] != APPLIED or past.content[i] != 0:
                continue
            asked, answered = i - 1, i + 1
            is_verify = rows.kind[asked] == RECEIVED and rows.operation[asked] == VERIFY
            if is_verify and rows.kind[answered] == REPLIED and rows.message[answered] == rows.message[asked]:
                first[found], last[found] = asked, i
                found += 1
    return found


def tell(story: Story, found: list[Finding]) -> Iterator[Told]:
    for asked, applied in found:
        assert asked is not None, "the finder names it"
        if any(asked.seq < load.seq < applied.seq for load in story.loads.get(applied.node, ()) if succeeded(load)):
            continue  # it came with a snapshot, whose answer is about no client and so none of the three rows
        yield Told(
            node=applied.node,
            first=asked,
            last=applied,
            after=asked.message,
            message=f"{applied.node} has {story.client} since {applied}, made from the verify of {asked.peer} in "
            f"{asked}, which carries no content",
            expected=f"{applied.node} answers {asked.message} with FAIL and goes on without {story.client}",
        )


INVARIANT = Invariant(
    "INV-ASKS",
    "A verify brings no client into being.",
    ("run", "client", "node"),
    made_up,
    tell,
    needs=Needs(state=True, reported=True, sent=("SNAPSHOT",), received=("CHANGE", "VERIFY"), lossless=True),
)
