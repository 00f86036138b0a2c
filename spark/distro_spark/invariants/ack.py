"""INV-ACK: who answers a CHANGE or DELETE with SUCCESS has applied it.

Seen at the receiver: between the arrival of the request and its answer the node must have come to hold what the CHANGE
carries, or have held it before; after a DELETE it must not hold the client any more (B16, B19).
"""

from __future__ import annotations

from collections.abc import Iterator

from distro_spark.compiling import compiled, uncounted
from distro_spark.invariants.registry import Invariant, Needs
from distro_spark.rows import (
    APPLIED,
    CHANGE,
    DELETE,
    REMOVED,
    SUCCESS,
    Facts,
    Flags,
    Integers,
    Past,
    Rows,
    answers,
    is_state,
    replicas,
)
from distro_spark.story import Finding, Story, Told


@compiled
def unapplied(rows: Rows, facts: Facts, past: Past, decides: Flags, first: Integers, last: Integers) -> int:
    found = 0
    for start, end in replicas(rows, decides):
        for request, i in answers(rows, start, end, (CHANGE, DELETE), SUCCESS):
            if not has_effect(rows, past, request, i):
                first[found], last[found] = request, i
                found += 1
                break
    return found


@uncounted
def has_effect(rows: Rows, past: Past, request: int, reply: int) -> bool:
    wanted = rows.digest[request]
    if rows.operation[reply] == DELETE:
        if past.content[reply] == 0:
            return True
    elif wanted == 0 or past.content[request] == wanted:
        return True
    for i in range(request + 1, reply):
        if not is_state(rows.kind[i]):
            continue
        if rows.operation[reply] == DELETE:
            if rows.kind[i] == REMOVED:
                return True
        elif rows.digest[i] == wanted or (rows.kind[i] == APPLIED and rows.message[i] == rows.message[reply]):
            return True
    return False


def tell(story: Story, found: list[Finding]) -> Iterator[Told]:
    for request, reply in found:
        assert request is not None, "the finder names it"
        states = [
            row for row in story.by_node[reply.node] if row.seq < reply.seq and row.digest and row.owned is not None
        ]
        holds = states[-1].digest if states else "nothing"
        wanted = f"content {request.digest} (revision {request.revision})" if request.digest else "no such client"
        yield Told(
            node=reply.node,
            first=request,
            last=reply,
            after=request.message,
            evidence={"operation": request.operation, "expected": request.digest, "actual": holds},
            message=f"{reply.node} answered the {request.operation} of {story.client} from {request.peer} with SUCCESS "
            f"in {reply}, and did not apply it: it holds {holds}",
            expected=f"{reply.node} holds {wanted} before it answers {request.message} with SUCCESS",
        )


INVARIANT = Invariant(
    "INV-ACK",
    "A CHANGE or DELETE that is answered with SUCCESS has been applied.",
    ("run", "client", "node"),
    unapplied,
    tell,
    needs=Needs(state=True, reported=True, received=("CHANGE", "DELETE")),
)
