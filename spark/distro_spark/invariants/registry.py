"""How an invariant enters the suite: a finder that looks through rows, and a teller that puts its finds into words.

The finder is compiled and sees every row; it says where something is wrong, and nothing else. The teller is plain
Python and sees whole clients with their texts, only of those where something was found and as many as are listed.
A finder writes pairs of positions in `rows`: the event with which it begins (-1: see the teller) and the one that
shows it, at most one pair for each client and node, and returns how many. When it finds a client that is merely
suspect, it writes one pair for it, and its teller alone knows what there is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from distro_spark.rows import Facts, Flags, Integers, Past, Rows
from distro_spark.story import Finding, Row, Story, Told
from distro_traces.observed import Observed


class Finder(Protocol):
    """`decides[g]`: may node g be judged; `first` and `last` have room for as many pairs as there are rows."""

    def __call__(
        self, rows: Rows, facts: Facts, past: Past, decides: Flags, first: Integers, last: Integers, /
    ) -> int: ...


Teller = Callable[[Story, list[Finding]], Iterator[Told]]
OfNodes = Callable[[Mapping[str, Sequence[Row]]], Iterator[Told]]
"""From the starts, stops, checkpoints and loads of a run's nodes, by node, to what is wrong with no client's rows."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What must have been observed of a node, so that its part in an invariant can be judged.

    state: what it holds, known from it (`reported`) or by inference too; owned, revision: rows about state say that as
    well; sent, received: its end of the calls of these operations to and from all others; lossless: the absence of a
    row is proof; everywhere: of every member of the run, or of none, and where
    spans are listed (`Observed.covered`), the state of each too.
    """

    state: bool = False
    reported: bool = False
    owned: bool = False
    sent: tuple[str, ...] = ()
    received: tuple[str, ...] = ()
    revision: bool = False
    lossless: bool = False
    everywhere: bool = False

    def met(self, observed: Observed, node: str, others: tuple[str, ...]) -> bool:
        return all(
            (
                not self.state or observed.contents_of(node),
                not self.reported or observed.reports(node),
                not self.owned or observed.covers(node, "owned"),
                not self.sent or all(observed.sending(node, other) for other in others),
                not self.received or all(observed.receiving(other, node) for other in others),
                {*self.sent, *self.received} <= {*observed.operations},
                not self.revision or observed.covers(node, "revision"),
                not self.lossless or observed.lossless,
                not (self.everywhere and observed.covered) or observed.covers(node, "state"),
            )
        )

    def __str__(self) -> str:
        return ", ".join(
            words.format(" and ".join(value) if isinstance(value, tuple) else "")
            for name, words in _WORDS.items()
            if (value := getattr(self, name))
        )


_WORDS: Mapping[str, str] = {
    "state": "state",
    "reported": "reported state",
    "owned": "whose each client is",
    "sent": "{} as sent",
    "received": "{} as received",
    "revision": "revisions",
    "lossless": "no lost rows",
    "everywhere": "from every member",
}


@dataclass(frozen=True, slots=True)
class Invariant:
    """`key`: the columns by which the rows must lie together; `needs_checkpoint`: cannot be judged without one;
    `needs_end`: what comes later may excuse what was found; `not_on`: pattern of the profiles that lack what it is
    about."""

    name: str
    text: str
    key: tuple[str, ...]
    find: Finder | None = None
    tell: Teller | None = None
    needs: Needs = field(default_factory=Needs)
    needs_checkpoint: bool = False
    needs_end: bool = False
    of_nodes: OfNodes | None = None
    not_on: re.Pattern[str] | None = None

    def applies_to(self, profile: str) -> bool:
        return self.not_on is None or self.not_on.search(profile) is None
