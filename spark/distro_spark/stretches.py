"""Who held what, when: from single rows to stretches of time in which a node's view of a client stayed the same.

A *stretch* begins with the row that changed the view and ends with the one that changes it again. Before its first
row, and from its stop or start on, a node holds nothing.

What is compared is the view that a subscriber gets, not the client record. A client that publishes nothing is in no
view of any service (docs/protocol #receive-change), so on a node it counts the same as no client at all: the owner has
it from the connection on, the others only after the first verify
(docs/protocol #sync-announce), and neither of them is wrong.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from distro_spark.encoding import EMPTY
from distro_spark.story import GONE, RESETS, Row, Story
from distro_traces.event import STATE_KINDS, Kind

_END = 2**62
"""Later than every sequence number and every time."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """`event` is the row with which it begins (None: before the node's first row), `ended_by` the next one's.

    view (None: nothing), revision (the last one seen in it), native (the node said between the same two starts, and
    before the client's connection there ended, that it holds it as its own).
    """

    node: str
    seq: int
    view: str | None
    event: Row | None
    ended_by: Row | None
    revision: int | None
    native: bool


class Timelines:
    """The stretches of one client on every node, and the owner's stretches among them that are the truth."""

    def __init__(self, story: Story) -> None:
        self._owner, self._resets = story.owner, story.resets
        nodes = {*story.resets, *story.checkpoints, *story.by_node}
        self._of = {node: tuple(_stretches(story, node)) for node in nodes}

    def at(self, node: str, seq: int) -> Stretch:
        """What the node held just before its row `seq`."""
        return self._of[node][self._begun(node, seq) - 1]

    def truth_at(self, seq: int) -> Stretch | None:
        """What the owner held before its row `seq`, if it has not been started anew since: of a client whose connection
        there has ended nothing, whatever of it came back."""
        owner = self._owner or ""
        earlier = (self._of[owner][place] for place in reversed(range(self._begun(owner, seq))))
        native = next((each for each in earlier if each.native), None)
        resets = self._resets.get(owner, ())
        return None if native is None or any(native.seq < row.seq < seq for row in resets) else native

    def _begun(self, node: str, seq: int) -> int:
        """How many of the node's stretches have begun before its row `seq`."""
        return bisect_left(self._of[node], seq, key=lambda stretch: stretch.seq)

    def parted_since(self, node: str, held: Stretch, truth: Stretch | None, checkpoint: Row) -> Row:
        """The event with which a node came to hold something else than the truth."""
        now = self._agreed_now(held, truth, checkpoint)
        before, left = self._agreed_before(node, held)
        agreed = max((each for each in (now, before) if each), key=lambda each: each.seq, default=None)
        if (agreed and agreed.seq) == (truth and truth.seq):
            turning_point = left
        else:
            turning_point = agreed.ended_by if agreed else None
        return turning_point or held.event or checkpoint

    def _agreed_now(self, held: Stretch, truth: Stretch | None, checkpoint: Row) -> Stretch | None:
        """The owner's latest stretch with the view that the node holds at the checkpoint, and that had begun by then.

        The node's stretch lasts beyond the checkpoint; it agrees with what the owner had held by then.
        """
        for each in reversed(self._truths.get(held.view, ())):
            if truth is not None:
                begun = each.seq <= truth.seq
            else:
                begun = each.event is None or each.event.at_ms <= checkpoint.at_ms
            if begun:
                return each
        return None

    def _agreed_before(self, node: str, held: Stretch) -> tuple[Stretch | None, Row | None]:
        """Of the node's earlier stretches the one with the latest agreement: with what, and how it ended."""
        best: tuple[int, int, Stretch, Row | None] | None = None
        for each in self._of[node]:
            if each.seq >= held.seq:
                break
            agreed = self._agreed(each)
            if agreed is not None and (best is None or (agreed.seq, each.seq) > best[:2]):
                best = (agreed.seq, each.seq, agreed, each.ended_by)
        return (None, None) if best is None else best[2:]

    def _agreed(self, stretch: Stretch) -> Stretch | None:
        """The owner's latest stretch with the same view that began before this one ended."""
        if self._is_truth(stretch):
            return stretch
        ended_ms = _END if stretch.ended_by is None else stretch.ended_by.at_ms
        truths = self._truths_by_time.get(stretch.view, ())
        at = bisect_left(truths, ended_ms, key=_begun_ms)
        return truths[at - 1] if at else None

    @cached_property
    def _truths(self) -> dict[str | None, list[Stretch]]:
        found: defaultdict[str | None, list[Stretch]] = defaultdict(list)
        for stretch in self._of.get(self._owner or "", ()):
            if self._is_truth(stretch):
                found[stretch.view].append(stretch)
        return found

    @cached_property
    def _truths_by_time(self) -> dict[str | None, list[Stretch]]:
        return {view: sorted(truths, key=_begun_ms) for view, truths in self._truths.items()}

    def _is_truth(self, stretch: Stretch) -> bool:
        """A stretch of the owner, but not one of a copy that it loaded back after a restart."""
        return stretch.node == self._owner and (stretch.native or stretch.view is None)


def _begun_ms(stretch: Stretch) -> int:
    return -_END if stretch.event is None else stretch.event.at_ms


def _stretches(story: Story, node: str) -> Iterator[Stretch]:
    resets = list(story.resets.get(node, ()))
    states = [row for row in story.by_node.get(node, ()) if row.kind in STATE_KINDS]
    left = [row.seq for row in states if row.kind == Kind.CLIENT_DISCONNECTED] if story.has_connection else []
    lives = sorted([*(row.seq for row in resets), *(seq + 1 for seq in left)])
    natives = {bisect_right(lives, row.seq) for row in states if row.owned}
    rows = sorted([*states, *resets], key=lambda row: row.seq)
    seq, view, event, revision, native = 0, None, None, None, 0 in natives
    for row in rows:
        new, is_native = _view(row), bisect_right(lives, row.seq) in natives
        if new != view:
            yield Stretch(node, seq, view, event, row, revision, native)
            seq, view, event, revision, native = row.seq, new, row, None, is_native
        revision = row.revision if row.revision is not None else revision
        native = native or is_native
    yield Stretch(node, seq, view, event, None, revision, native)


def _view(row: Row) -> str | None:
    return None if row.kind in (*GONE, *RESETS) or row.digest == EMPTY else row.digest
