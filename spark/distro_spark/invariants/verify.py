"""INV-VERIFY: a verify is confirmed only by who has what the owner has.

Seen at the receiver: the verify carries the owner's revision when it was sent, and the rows about the copy carry its
own. A copy that is missing, or older than what was asked for, cannot have had the owner's content between send and
answer (B02); a newer one may, for the owner moves on. Before 2.1.2 no revision travels: those verifies are not judged.
Revision 0 asks for any copy (docs/protocol #defect-d11), but for one.
"""

from __future__ import annotations

from collections.abc import Iterator

from distro_spark.compiling import compiled, uncounted
from distro_spark.encoding import HASHED, NO_REVISION
from distro_spark.invariants.registry import Invariant, Needs
from distro_spark.rows import (
    SUCCESS,
    VERIFY,
    Facts,
    Flags,
    Integers,
    Past,
    Rows,
    answers,
    replicas,
)
from distro_spark.story import Finding, Story, Told
from distro_traces.header import WITHOUT_REVISIONS


@compiled
def confirmed_wrongly(rows: Rows, facts: Facts, past: Past, decides: Flags, first: Integers, last: Integers) -> int:
    found = 0
    for start, end in replicas(rows, decides):
        if not facts.has_revisions[facts.run[rows.node[start]]]:
            continue
        for request, i in answers(rows, start, end, (VERIFY,), SUCCESS):
            if differs(rows, past, request, i):
                first[found], last[found] = request, i
                found += 1
                break
    return found


@uncounted
def differs(rows: Rows, past: Past, request: int, reply: int) -> bool:
    asked, held = rows.revision[request], past.revision[reply]
    if asked == NO_REVISION or (past.content[request] == 0 and past.content[reply] != 0):
        return False
    if past.content[reply] == 0:
        return bool(past.content[request] == 0)
    if asked == 0 or held == NO_REVISION:
        return False
    return bool(held != asked if rows.flags[reply] & HASHED else held < asked)


def tell(story: Story, found: list[Finding]) -> Iterator[Told]:
    for request, reply in found:
        assert request is not None, "the finder names it"
        states = [row for row in story.by_node[reply.node] if row.seq < reply.seq and row.kind.startswith("replica")]
        held = states[-1] if states and states[-1].digest else None
        holds = f"revision {held.revision} since {held}" if held else "nothing"
        yield Told(
            node=reply.node,
            first=states[-1] if states else request,
            last=reply,
            after=request.message,
            evidence={"asked_revision": request.revision, "held_revision": held and held.revision},
            message=f"{reply.node} confirmed in {reply} that it has revision {request.revision} of {story.client}, as "
            f"{request.peer} asked; it holds {holds}",
            expected=f"{reply.node} answers {request.message} with FAIL, and {request.peer} sends the client anew",
        )


INVARIANT = Invariant(
    "INV-VERIFY",
    "A confirmed verify means that the copy had the owner's content between send and answer.",
    ("run", "client", "node"),
    confirmed_wrongly,
    tell,
    needs=Needs(state=True, reported=True, received=("VERIFY",), revision=True),
    not_on=WITHOUT_REVISIONS,
)
