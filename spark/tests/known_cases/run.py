"""A run on three nodes, row by row, and the table of runs that `test_known` judges.

A run's name says what it is. Beside it stands what has to be known of its violations, None for one that counts, and of
a near miss which clause of which symptom it misses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from distro_spark.symptoms.symptom import Symptom
from distro_traces.content import digest
from distro_traces.event import RESET_KINDS, STATE_KINDS, Event, Kind, Outcome
from distro_traces.ndjson import Recorder

EMPTY = digest(())
STEP_MS = 100


class Run:
    """A run on a, b and c. Time passes by `after`, and `STEP_MS` before each row unless it says otherwise."""

    def __init__(self, recorder: Recorder, *, probed: bool = False) -> None:
        """`probed`: a probe reads each node before a checkpoint, as in recordings of real servers."""
        self.recorder = recorder
        self.probed = probed
        self.held: dict[str, dict[str, tuple[int | None, str | None]]] = {}
        """By node and client: revision and content, None when it is gone."""
        self.at_ms = 0
        self.step_ms = STEP_MS
        self.is_over = False
        """Whether the run has its last checkpoint already."""
        for node in "abc":
            self.row(node, Kind.NODE_STARTED, detail="a,b,c")

    def after(self, ms: int) -> None:
        self.at_ms += ms

    def row(self, node: str, kind: Kind, **fields: object) -> Event:
        self.at_ms += self.step_ms
        event = self.recorder.record(node, kind, at_ms=self.at_ms, **fields)  # type: ignore[arg-type]
        if kind in RESET_KINDS:
            self.held[node] = {}
        elif kind in STATE_KINDS and event.client is not None:
            revision, _ = self.held[node].get(event.client, (None, None))
            known = revision if event.revision is None else event.revision
            self.held[node][event.client] = (known, event.digest)
        return event

    def connect(self, node: str = "a", client: str = "c1") -> None:
        self.row(node, Kind.CLIENT_CONNECTED, client=client, owned=True, revision=0, digest=EMPTY)

    def change(
        self, revision: int, content: str, node: str = "a", client: str = "c1", detail: str | None = None
    ) -> None:
        self.row(node, Kind.CLIENT_CHANGED, client=client, owned=True, revision=revision, digest=content, detail=detail)

    def apply(
        self, nodes: str, revision: int, content: str, message: str | None = None, *, owned: bool = False
    ) -> None:
        for node in nodes:
            self.row(
                node, Kind.REPLICA_APPLIED, client="c1", owned=owned, revision=revision, digest=content, message=message
            )

    def loads(self, node: str, source: str) -> str:
        """The node is given a snapshot."""
        call = {"operation": "SNAPSHOT", "message": self.recorder.new_message_id()}
        self.row(node, Kind.REQUEST_SENT, peer=source, **call)
        self.row(node, Kind.REPLY_RECEIVED, peer=source, **call, outcome=Outcome.SUCCESS)
        return call["message"]

    @contextmanager
    def at_one_instant(self) -> Iterator[None]:
        """Rows of embedded nodes do not say which message brought a copy, only when it came."""
        self.step_ms = 0
        yield
        self.step_ms = STEP_MS

    def brought(self, node: str, revision: int, content: str) -> None:
        """A CHANGE of c to a node, which applies it to the client that is connected there."""
        call = {"message": self.recorder.new_message_id(), "operation": "CHANGE", "client": "c1"}
        self.row("c", Kind.REQUEST_SENT, peer=node, **call, revision=revision, digest=content)
        self.row(node, Kind.REQUEST_RECEIVED, peer="c", **call, revision=revision, digest=content)
        self.apply(node, revision, content, call["message"], owned=True)
        self.row(node, Kind.REPLY_SENT, peer="c", **call, outcome=Outcome.SUCCESS)

    def leave(self, client: str = "c1") -> None:
        self.row("a", Kind.CLIENT_DISCONNECTED, client=client, owned=True)

    def send(
        self,
        peer: str,
        operation: str,
        outcome: Outcome | None = Outcome.SUCCESS,
        client: str = "c1",
        **content: object,
    ) -> str:
        """A request of a to `peer`, which receives and answers it if it is a success; None: the answer comes later."""
        message = self.recorder.new_message_id()
        call = {"message": message, "operation": operation, "client": client}
        self.row("a", Kind.REQUEST_SENT, peer=peer, **call, **content)
        if outcome is Outcome.SUCCESS:
            self.row(peer, Kind.REQUEST_RECEIVED, peer="a", **call, **content)
            self.row(peer, Kind.REPLY_SENT, peer="a", **call, outcome=outcome)
        if outcome is not None:
            self.row("a", Kind.REPLY_RECEIVED, peer=peer, **call, outcome=outcome)
        return message

    def arrives(self, operation: str, **content: object) -> str:
        """A request of a to b, which does not answer it yet."""
        message = self.send("b", operation, None, **content)
        call = {"message": message, "operation": operation, "client": "c1"}
        self.row("b", Kind.REQUEST_RECEIVED, peer="a", **call, **content)
        return message

    def answers(self, operation: str, message: str) -> None:
        """With SUCCESS, of b to a."""
        call = {"message": message, "operation": operation, "client": "c1", "outcome": Outcome.SUCCESS}
        self.row("b", Kind.REPLY_SENT, peer="a", **call)
        self.row("a", Kind.REPLY_RECEIVED, peer="b", **call)

    def fails(self, message: str, peer: str, operation: str = "CHANGE") -> None:
        self.row(
            "a",
            Kind.REPLY_RECEIVED,
            peer=peer,
            message=message,
            operation=operation,
            client="c1",
            outcome=Outcome.TIMEOUT,
        )

    def removed(self, nodes: str, client: str = "c1") -> None:
        for node in nodes:
            self.row(node, Kind.REPLICA_REMOVED, client=client)

    def checkpoint(self) -> None:
        for node in "abc":
            if self.probed:
                self.probe(node)
            self.row(node, Kind.CHECKPOINT, detail="1")

    def probe(self, node: str) -> None:
        for client, (revision, content) in sorted(self.held[node].items()):
            known = None if content is None else revision
            self.row(node, Kind.OBSERVED, client=client, revision=known, digest=content)

    def registered(self, revision: int = 1, content: str = "A") -> None:
        self.connect()
        self.change(revision, content)
        self.apply("bc", revision, content)


Writes = Callable[[Run], None]
Missed = tuple[Symptom, str]
"""A symptom, and words of one of its clauses."""


@dataclass(frozen=True)
class Case:
    """`known`: by invariant, for each of its violations. `misses`: the clause that alone does not hold for one of them.
    `target`: whose nodes these are; empty: of no other run."""

    profile: str
    writes: Writes
    known: dict[str, list[str | None]]
    misses: tuple[Missed, ...]
    target: str


CASES: dict[str, Case] = {}


def case(profile: str, *misses: Missed, target: str = "", **known: list[str | None]) -> Callable[[Writes], Writes]:
    def register(writes: Writes) -> Writes:
        bugs = {name.replace("_", "-"): bugs for name, bugs in known.items()}
        CASES[writes.__name__] = Case(profile, writes, bugs, misses, target)
        return writes

    return register
