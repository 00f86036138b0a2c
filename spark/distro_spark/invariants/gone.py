"""INV-GONE: a DELETE of a client that is not held succeeds, since what it asks for is so.

One that fails is retried for ever (`m-unknown-delete-fails`).
"""

from __future__ import annotations

from collections.abc import Iterator

from distro_spark.compiling import compiled
from distro_spark.invariants.registry import Invariant, Needs
from distro_spark.rows import (
    DELETE,
    FAIL,
    Facts,
    Flags,
    Integers,
    Past,
    Rows,
    answers,
    replicas,
)
from distro_spark.story import Finding, Story, Told


@compiled
def refused(rows: Rows, facts: Facts, past: Past, decides: Flags, first: Integers, last: Integers) -> int:
    found = 0
    for start, end in replicas(rows, decides):
        for request, i in answers(rows, start, end, (DELETE,), FAIL):
            if past.content[request] == 0 and past.content[i] == 0:
                first[found], last[found] = request, i
                found += 1
                break
    return found


def tell(story: Story, found: list[Finding]) -> Iterator[Told]:
    for request, reply in found:
        assert request is not None, "the finder names it"
        yield Told(
            node=reply.node,
            first=request,
            last=reply,
            after=request.message,
            message=f"{reply.node} answered the DELETE of {story.client} from {request.peer} with FAIL in {reply}, "
            "and does not hold that client",
            expected=f"{reply.node} answers a DELETE of a client that it does not hold with SUCCESS",
        )


INVARIANT = Invariant(
    "INV-GONE",
    "A DELETE of a client that is not held succeeds.",
    ("run", "client", "node"),
    refused,
    tell,
    needs=Needs(state=True, reported=True, received=("DELETE",)),
)
