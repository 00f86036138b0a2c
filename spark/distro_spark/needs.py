"""The facts that must have been observed of a node to judge it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from distro_traces.observed import Observed

_LOGGED_WITHIN_MS = 1_000
"""One change of a client is several records in several logs; all of them are written by then."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What must have been observed of a node, so that its part in an invariant can be judged.

    state: what it holds, known from it (`reported`) or by inference too; owned, revision: rows about state say that as
    well; sent, received: its end of the calls of these operations to and from all others; lossless: the absence of a
    row is proof; everywhere: of every member of the run, or of none, and where spans are listed (`Observed.covered`),
    the state of each too.
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

    def facts(self) -> Iterator[str]:
        """The kinds of facts that must be covered while a violation lasts (`distro_traces.observed.FACTS`)."""
        if self.state or self.everywhere:
            yield "state"
        for fact in ("owned", "revision"):
            if getattr(self, fact):
                yield fact
        if self.sent:
            yield "sent"
        if {*self.received} - {"VERIFY"}:
            yield "received"
        if "VERIFY" in self.received:
            yield "verifies"

    def covered(self, observed: Observed, nodes: Iterable[str], from_ms: int, until_ms: int) -> bool:
        """Do the logs of these nodes cover the time from then to then? A file may be missing."""
        until_ms += _LOGGED_WITHIN_MS
        return all(observed.covers(node, fact, from_ms, until_ms) for node in nodes for fact in self.facts())

    def __str__(self) -> str:
        return ", ".join(
            words.format(" and ".join(value) if isinstance(value, tuple) else "")
            for name, words in _WORDS.items()
            if (value := getattr(self, name))
        )


_WORDS: Mapping[str, str] = {
    "state": "state",
    "reported": "reports of the nodes themselves",
    "owned": "which node owns each client",
    "sent": "{} as sent",
    "received": "{} as received",
    "revision": "revisions",
    "lossless": "no lost rows",
    "everywhere": "from every member",
}
