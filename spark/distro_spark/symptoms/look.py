"""What several symptoms look at in the rows of a client: the lives of a copy, the calls that a node was handling."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from distro_spark.story import END, GONE, RESETS, Row, Story
from distro_traces.event import STATE_KINDS, Kind, Outcome

CHANGES = ("ADD", "CHANGE")

CLOCK_SLACK_MS = 400
"""Real servers' ticks and threads run late, and rows are stamped on their way."""


def succeeded(row: Row) -> bool:
    return (row.kind, row.outcome) == (Kind.REPLY_RECEIVED, Outcome.SUCCESS)


def lives(story: Story, node: str, until: int | None) -> Iterator[list[Row]]:
    """The rows about what a node holds, anew from each row on with which it holds nothing of before."""
    states = [row for row in story.by_node.get(node, []) if row.kind in STATE_KINDS]
    rows = sorted([*states, *story.resets.get(node, ())], key=lambda row: row.seq)
    life: list[Row] = []
    for row in rows:
        if until is not None and row.seq > until:
            break
        if row.kind in (*RESETS, *GONE) or row.digest is None:
            yield life
            life = []
        life.append(row)
    yield life


def handled_requests(story: Story, node: str) -> list[tuple[Row, int, int]]:
    """The requests about the client that arrived at a node, with when (`seq`), and when they were answered, or the node
    stopped or started."""
    rows = story.by_node.get(node, [])
    answered = {row.message: row.seq for row in rows if row.kind == Kind.REPLY_SENT}
    resets = [row.seq for row in story.resets.get(node, ())]
    return [
        (row, row.seq, min((seq for seq in (answered.get(row.message, END), *resets) if seq > row.seq), default=END))
        for row in rows
        if row.kind == Kind.REQUEST_RECEIVED
    ]


def counts_not_all(own: list[Row]) -> bool:
    """Among these rows of owners one published something and left its revision as it was."""
    return any((one.node, one.revision) == (two.node, two.revision) for one, two in pairwise(own))
