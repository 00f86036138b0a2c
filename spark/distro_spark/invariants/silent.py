"""INV-SILENT: the connection of a client that has fallen silent is closed.

A row says when whoever played a client let it fall silent, and when it answered again. Its node finds it idle after
20 s, at the next of its checks, 3 s apart; it asks for a sign of life, waits 5 s for it, and closes the connection
(docs/protocol #ejector-check). A release without that keeps the client for good (B03).
"""

from __future__ import annotations

from collections.abc import Iterator

from distro_spark.compiling import compiled
from distro_spark.encoding import SILENT
from distro_spark.invariants.registry import Invariant, Needs
from distro_spark.rows import DISCONNECTED, FAULT, Facts, Flags, Integers, Past, Rows, held_until_ms, replicas
from distro_spark.story import Finding, Story, Told

NOTICED_MS = 20_000 + 2 * 3_000 + 5_000
"""Idle for so long, then two checks: one that asks, one that looks at the answers."""

MARGIN_MS = 4_000


@compiled
def kept(rows: Rows, facts: Facts, past: Past, decides: Flags, first: Integers, last: Integers) -> int:
    found = 0
    for start, end in replicas(rows, decides):
        silent = -1
        for i in range(start, end):
            if silent >= 0 and (not past.native[i] or rows.at_ms[i] - rows.at_ms[silent] > NOTICED_MS + MARGIN_MS):
                if past.native[i]:
                    first[found], last[found] = silent, i
                    found += 1
                    silent = -1
                    break
                silent = -1
            if rows.kind[i] == FAULT:
                silent = i if rows.flags[i] & SILENT else -1
        if silent >= 0 and past.native[end - 1] and rows.kind[end - 1] != DISCONNECTED:
            until_ms = held_until_ms(rows, facts, past, end - 1, end)
            if until_ms - rows.at_ms[silent] > NOTICED_MS + MARGIN_MS:
                first[found], last[found] = silent, end - 1
                found += 1
    return found


def tell(story: Story, found: list[Finding]) -> Iterator[Told]:
    for silent, last in found:
        assert silent is not None, "the finder names it"
        yield Told(
            node=last.node,
            first=silent,
            last=last,
            after=last.message,
            evidence={"silent_ms": last.at_ms - silent.at_ms},
            message=f"{last.node} still has the connection of {story.client} in {last}, which has said nothing since "
            f"{silent}",
            expected=f"{last.node} closes the connection of {story.client} within {NOTICED_MS // 1000} s",
        )


INVARIANT = Invariant(
    "INV-SILENT",
    "The connection of a client that has fallen silent is closed.",
    ("run", "client", "node"),
    kept,
    tell,
    needs=Needs(state=True, lossless=True),
)
