"""Hand-written runs, each with the violations it must have: which node, from which event to which, and no others.

A case records one run with a `RunRecorder` and returns the violations that a check must find in it. All cases are
checked in one job, so each also shows that runs do not affect each other. Near misses are cases too: a healthy run has
no violation.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from engines import in_process, on_spark
from partly import WITHOUT, as_observed
from pyspark.sql import SparkSession

from distro_spark import on_spark as on_spark_engine
from distro_spark import tally
from distro_spark.invariants import INVARIANTS
from distro_spark.result import CheckResult, EventReference, Violation
from distro_spark.sinks import ParquetSink
from distro_traces.content import digest
from distro_traces.event import BATCH, Event, Kind, Outcome
from distro_traces.ndjson import Recorder

EMPTY = digest(())
NODES = ("a", "b", "c")


CALL_MS = 100
"""Between a call and the row before."""


class RunRecorder:
    """Records a run on the nodes a, b and c; each row is a second after the one before."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.checkpoints = 0
        self.events: list[Event] = []
        self._at_ms = 0
        for node in NODES:
            self.row(node, Kind.NODE_STARTED, detail="a,b,c")
        for node, source in zip(NODES, "baa", strict=True):
            self.load(node, source)

    def load(self, node: str, source: str) -> None:
        """The node is given a snapshot, in this instant."""
        asked = {"peer": source, "operation": "SNAPSHOT", "message": self.recorder.new_message_id()}
        self.row(node, Kind.REQUEST_SENT, after_ms=0, **asked)
        self.row(node, Kind.REPLY_RECEIVED, after_ms=0, **asked, outcome=Outcome.SUCCESS)

    def row(self, node: str, kind: Kind, *, after_ms: int = 1000, **fields: object) -> Event:
        self._at_ms += after_ms
        self.events.append(self.recorder.record(node, kind, at_ms=self._at_ms, **fields))  # type: ignore[arg-type]
        return self.events[-1]

    def wait(self, ms: int) -> None:
        self._at_ms += ms

    def due(self, delay_ms: int = 1_000) -> None:
        """So much time has passed since the last row when the next call is made."""
        self.wait(delay_ms - CALL_MS)

    def connect(self, node: str, client: str = "c1") -> Event:
        return self.row(node, Kind.CLIENT_CONNECTED, client=client, owned=True, revision=0, digest=EMPTY)

    def change(
        self, node: str, revision: int | None, content: str, client: str = "c1", detail: str | None = None
    ) -> Event:
        about = {"client": client, "revision": revision, "digest": content, "detail": detail}
        return self.row(node, Kind.CLIENT_CHANGED, owned=True, **about)

    def apply(
        self, nodes: Iterable[str], revision: int | None, content: str, client: str = "c1", owned: bool = False
    ) -> Event:
        for node in nodes:
            event = self.row(node, Kind.REPLICA_APPLIED, client=client, owned=owned, revision=revision, digest=content)
        return event

    def disconnect(self, node: str, client: str = "c1") -> Event:
        return self.row(node, Kind.CLIENT_DISCONNECTED, client=client, owned=True)

    def remove(self, nodes: Iterable[str], client: str = "c1") -> None:
        for node in nodes:
            self.row(node, Kind.REPLICA_REMOVED, client=client)

    def send(self, node: str, peer: str, operation: str, client: str | None = "c1", **content: object) -> Event:
        """A call that `peer` receives and answers with success."""
        call = {"message": self.recorder.new_message_id(), "operation": operation, "client": client}
        sent = self.row(node, Kind.REQUEST_SENT, peer=peer, **call, **content)
        self.row(peer, Kind.REQUEST_RECEIVED, peer=node, **call, **content)
        self.row(peer, Kind.REPLY_SENT, peer=node, **call, outcome=Outcome.SUCCESS)
        return sent

    def checkpoint(self, nodes: Iterable[str] = NODES) -> dict[str, Event]:
        self.checkpoints += 1
        return {node: self.row(node, Kind.CHECKPOINT, detail=str(self.checkpoints)) for node in nodes}

    def registered(self, content: str = "X") -> None:
        """c1 connected to a, registered as revision 1, and replicated everywhere."""
        self.connect("a")
        self.change("a", 1, content)
        self.apply("bc", 1, content)


@dataclass(frozen=True)
class Expected:
    """A violation that a case must have; `evidence` may name fewer keys than the violation has."""

    invariant: str
    node: str
    first: Event
    last: Event
    client: str = "c1"
    known: str | None = None
    evidence: dict[str, str] = field(default_factory=dict)


Case = Callable[[RunRecorder], list[Expected] | None]
CASES: dict[str, tuple[Case, str, Sequence[str]]] = {}
AT_REST = ("INV-CONV", "INV-OWNER", "INV-REV")
"""The invariants that judge the first cases: these record what each node holds, not every message."""


def case(*profiles: str, of: Sequence[str] = AT_REST) -> Callable[[Case], Case]:
    """A run and its violations; None: it has none. One without a checkpoint gets one at its end. `of`: the invariants
    that judge the case."""

    def register(record: Case) -> Case:
        for profile in profiles or ("strict",):
            CASES[f"{record.__name__} on {profile}"] = (record, profile, of)
        return record

    return register


def recorded(record: Case, recorder: Recorder) -> list[Expected]:
    run = RunRecorder(recorder)
    expected = record(run) or []
    if not run.checkpoints:
        run.checkpoint()
    return expected


complete_case = partial(case, of=tuple(INVARIANTS))


# INV-CONV: at rest every member has the same view


@case()
def a_healthy_run(run: RunRecorder) -> None:
    run.registered()
    run.checkpoint()
    run.change("a", 2, "Y")
    run.apply("bc", 2, "Y")
    run.checkpoint()
    run.disconnect("a")
    run.remove("bc")
    run.checkpoint()


@case("nacos-2.0.4", "strict")
def a_change_that_one_node_acknowledged_and_never_applied(run: RunRecorder) -> list[Expected]:
    run.registered()
    run.checkpoint()
    missed = run.change("a", 2, "Y")
    swallowed = run.send("a", "b", "CHANGE", revision=2, digest="Y")
    run.send("a", "c", "CHANGE", revision=2, digest="Y")
    run.apply("c", 2, "Y")
    run.send("a", "b", "VERIFY", revision=2)
    checkpoint = run.checkpoint()
    run.send("a", "b", "CHANGE", revision=2, digest="Y")  # after the checkpoint: no evidence
    evidence = {
        "owner": "a",
        "expected": "Y",
        "expected_revision": "2",
        "actual": "X",
        "actual_revision": "1",
        "last_message": str(swallowed.message),
        "last_outcome": "success",
        "last_verify": "success",
        "checkpoints": "2",
    }
    known = "B02" if "2.0.4" in run.recorder.header.profile else None
    return [Expected("INV-CONV", "b", missed, checkpoint["b"], known=known, evidence=evidence)]


@case()
def a_client_that_never_reached_one_node(run: RunRecorder) -> list[Expected]:
    run.connect("a")
    missed = run.change("a", 1, "X")
    run.apply("b", 1, "X")
    checkpoint = run.checkpoint()
    return [Expected("INV-CONV", "c", missed, checkpoint["c"], evidence={"expected": "X", "actual": "nothing"})]


@case()
def a_disconnect_that_never_reached_one_node(run: RunRecorder) -> list[Expected]:
    run.registered()
    missed = run.disconnect("a")
    run.remove("b")
    checkpoint = run.checkpoint()
    return [Expected("INV-CONV", "c", missed, checkpoint["c"], evidence={"expected": "nothing", "actual": "X"})]


@case()
def a_new_content_overwritten_by_an_old_one(run: RunRecorder) -> list[Expected]:
    run.registered()
    run.change("a", 2, "Y")
    run.apply("bc", 2, "Y")
    overwritten = run.apply("b", 1, "X")
    run.apply("b", None, "?")
    checkpoint = run.checkpoint()
    run.change("a", 3, "Z")  # after the checkpoint: does not affect the first event
    return [Expected("INV-CONV", "b", overwritten, checkpoint["b"])]


@case()
def a_restart_without_a_load(run: RunRecorder) -> list[Expected]:
    run.registered()
    lost = run.row("b", Kind.NODE_STOPPED, detail="crash")
    run.row("b", Kind.NODE_STARTED, detail="a,b,c")
    checkpoint = run.checkpoint()
    return [Expected("INV-CONV", "b", lost, checkpoint["b"])]


@case()
def a_content_that_came_back_is_not_the_agreement_of_before(run: RunRecorder) -> list[Expected]:
    run.registered("X")
    run.change("a", 2, "Y")
    run.apply("bc", 2, "Y")
    missed = run.change("a", 3, "X")
    run.apply("b", 3, "X")
    checkpoint = run.checkpoint()
    return [Expected("INV-CONV", "c", missed, checkpoint["c"])]


@case()
def an_expired_replica_reported_once_for_all_its_checkpoints(run: RunRecorder) -> list[Expected]:
    run.registered()
    gone = run.row("b", Kind.REPLICA_REMOVED, client="c1", detail="lease")
    run.checkpoint()
    last = run.checkpoint()
    run.apply("b", 1, "X")
    run.checkpoint()
    return [Expected("INV-CONV", "b", gone, last["b"], evidence={"checkpoints": "1, 2"})]


@case()
def two_clients_of_which_one_diverged(run: RunRecorder) -> list[Expected]:
    run.registered()
    run.connect("b", client="c2")
    missed = run.change("b", 1, "Z", client="c2")
    run.apply("c", 1, "Z", client="c2")
    checkpoint = run.checkpoint()
    return [Expected("INV-CONV", "a", missed, checkpoint["a"], client="c2")]


@case()
def an_orphan_that_one_survivor_dropped(run: RunRecorder) -> list[Expected]:
    run.registered()
    stopped = run.row("a", Kind.NODE_STOPPED, detail="crash")
    run.remove("c")
    run.wait(190_000)  # b's lease would have ended, too
    checkpoint = run.checkpoint("bc")
    return [Expected("INV-CONV", "b", stopped, checkpoint["b"], evidence={"expected": "nothing"})]


@case()
def an_orphan_that_its_former_owner_loaded_back(run: RunRecorder) -> list[Expected]:
    run.registered()
    stopped = run.row("a", Kind.NODE_STOPPED, detail="crash")
    run.row("a", Kind.NODE_STARTED, detail="a,b,c")
    took_back = run.apply("a", 1, "X")
    run.remove("c")
    run.wait(190_000)
    checkpoint = run.checkpoint()
    return [
        Expected("INV-CONV", "b", stopped, checkpoint["b"], evidence={"expected": "nothing"}),
        Expected("INV-CONV", "a", took_back, checkpoint["a"], evidence={"expected": "nothing"}),
    ]


@case("nacos-2.2.4", "strict")
def a_delete_swallowed_by_the_retry_of_a_change(run: RunRecorder) -> list[Expected]:
    run.registered()
    missed = run.change("a", 2, "Y")
    call = {"message": "m1", "operation": "CHANGE", "client": "c1"}
    run.row("a", Kind.REQUEST_SENT, peer="b", **call, revision=2, digest="Y")
    run.change("a", 3, EMPTY)
    run.disconnect("a")
    run.row("a", Kind.REPLY_RECEIVED, peer="b", **call, outcome=Outcome.TIMEOUT)
    run.send("a", "c", "DELETE")
    run.remove("c")
    checkpoint = run.checkpoint()
    known = "B24" if "2.2.4" in run.recorder.header.profile else None
    return [Expected("INV-CONV", "b", missed, checkpoint["b"], known=known, evidence={"signature": "DELETE swallowed"})]


@case("nacos-2.2.4")
def a_delete_that_was_not_sent_though_nothing_swallowed_it(run: RunRecorder) -> list[Expected]:
    run.registered()
    call = {"message": "m1", "operation": "CHANGE", "client": "c1"}
    run.row("a", Kind.REPLY_RECEIVED, peer="b", **call, outcome=Outcome.TIMEOUT)
    missed = run.disconnect("a")
    run.row("a", Kind.REPLY_RECEIVED, peer="b", **call, outcome=Outcome.SUCCESS)
    run.remove("c")
    checkpoint = run.checkpoint()
    return [Expected("INV-CONV", "b", missed, checkpoint["b"])]


@case("nacos-2.2.4")
def a_delete_that_was_sent_and_not_applied(run: RunRecorder) -> list[Expected]:
    run.registered()
    missed = run.disconnect("a")
    call = {"message": "m1", "operation": "CHANGE", "client": "c1"}
    run.row("a", Kind.REPLY_RECEIVED, peer="b", **call, outcome=Outcome.TIMEOUT)
    run.send("a", "b", "DELETE")
    run.remove("c")
    checkpoint = run.checkpoint()
    return [Expected("INV-CONV", "b", missed, checkpoint["b"])]


@case()
def a_row_read_by_a_probe_counts_like_a_row_reported_by_the_node(run: RunRecorder) -> list[Expected]:
    run.registered()
    observed = run.row("c", Kind.OBSERVED, client="c1", owned=False)
    checkpoint = run.checkpoint()
    return [Expected("INV-CONV", "c", observed, checkpoint["c"])]


@case()
def nodes_that_differ_only_between_checkpoints(run: RunRecorder) -> None:
    run.registered()
    run.change("a", 2, "Y")
    run.apply("b", 2, "Y")
    run.apply("c", 2, "Y")
    run.checkpoint()
    run.change("a", 3, "Z")


@case()
def an_empty_client_is_in_no_nodes_view(run: RunRecorder) -> None:
    run.connect("a")
    run.apply("b", 0, EMPTY)
    run.checkpoint()
    run.change("a", 1, "X")
    run.apply("bc", 1, "X")
    run.change("a", 2, EMPTY)
    run.remove("b")
    run.apply("c", 2, EMPTY)
    run.checkpoint()


@case()
def a_node_that_is_down_need_not_agree(run: RunRecorder) -> None:
    run.registered()
    run.row("c", Kind.NODE_STOPPED, detail="crash")
    run.change("a", 2, "Y")
    run.apply("b", 2, "Y")
    run.checkpoint("ab")


@case()
def a_restarted_node_that_loaded(run: RunRecorder) -> None:
    run.registered()
    run.row("b", Kind.NODE_STOPPED, detail="crash")
    run.row("b", Kind.NODE_STARTED, detail="a,b,c")
    run.apply("b", 1, "X")


@case()
def an_orphan_that_all_survivors_keep(run: RunRecorder) -> None:
    run.registered()
    run.row("a", Kind.NODE_STOPPED, detail="crash")
    run.checkpoint("bc")


@case()
def an_owner_that_only_sends(run: RunRecorder) -> list[Expected]:
    """As recorded between real servers, whose state only probes read."""
    run.row("a", Kind.OBSERVED, client="c1", revision=1, digest="X")
    missed = run.row("a", Kind.OBSERVED, client="c1", revision=2, digest="Y")
    run.send("a", "b", "CHANGE", revision=1, digest="X")
    run.row("b", Kind.OBSERVED, client="c1", digest="X")
    run.row("c", Kind.OBSERVED, client="c1", digest="Y")
    run.row("a", Kind.OBSERVED, client="c1", owned=True, revision=2, digest="Y")
    checkpoint = run.checkpoint()
    return [Expected("INV-CONV", "b", missed, checkpoint["b"])]


# INV-OWNER: one responsible member


@case()
def a_replica_held_as_its_own(run: RunRecorder) -> list[Expected]:
    owners = run.connect("a")
    run.change("a", 1, "X")
    run.apply("b", 1, "X")
    claim = run.apply("c", 1, "X", owned=True)
    return [Expected("INV-OWNER", "c", owners, claim, evidence={"owner": "a", "claims": "1"})]


@case()
def a_replica_that_verifies_and_deletes(run: RunRecorder) -> list[Expected]:
    owners = run.connect("a")
    run.change("a", 1, "X")
    run.apply("bc", 1, "X")
    run.send("a", "b", "VERIFY", revision=1)
    claim = run.send("b", "c", "VERIFY", revision=1)
    run.send("b", "c", "DELETE")
    return [Expected("INV-OWNER", "b", owners, claim, evidence={"claims": "2"})]


@case()
def an_owner_that_came_back_and_nodes_that_only_answer(run: RunRecorder) -> None:
    run.registered()
    run.send("a", "b", "CHANGE", revision=1, digest="X")
    run.row("a", Kind.NODE_STOPPED, detail="crash")
    run.row("a", Kind.NODE_STARTED, detail="a,b,c")
    run.send("a", "b", "SNAPSHOT", client=None)
    run.send("c", "b", "SNAPSHOT", client=None)
    run.send("c", "b", "QUERY")
    run.apply("a", 1, "X")


@case()
def a_hashed_client_that_moved_with_the_membership(run: RunRecorder) -> None:
    run.change("a", 77, "X", client="10.0.0.1:80#true")
    run.apply("bc", 77, "X", client="10.0.0.1:80#true")
    run.send("b", "c", "VERIFY", client="10.0.0.1:80#true", revision=77)


# INV-REV: one content per revision


@case("strict", "nacos-2.0.4")
def a_hashed_client_whose_next_owner_changes_it(run: RunRecorder) -> list[Expected]:
    """c has renewed what it holds, and misses that."""
    client = "10.0.0.1:80#true"
    run.change("a", 5, "X", client=client)
    run.apply("bc", 5, "X", client=client)
    run.row("a", Kind.NODE_STOPPED, detail="crash")
    change = run.change("b", 6, "Y", client=client)
    checks = run.checkpoint("bc")
    return [Expected("INV-CONV", "c", change, checks["c"], client=client, evidence={"expected": "Y", "owner": "b"})]


@case("strict", "nacos-2.2.4", "nacos-2.3.2")
def a_replica_that_keeps_the_revision_it_was_created_with(run: RunRecorder) -> list[Expected]:
    run.connect("a")
    first = run.change("a", 1, "X")
    run.apply("bc", 1, "X")
    run.change("a", 2, "Y")
    run.apply("b", 2, "Y")
    stale = run.apply("c", 1, "Y")
    run.apply("c", 1, "Y")
    run.checkpoint()
    known = "B10" if "2.2.4" in run.recorder.header.profile else None
    evidence = {"signature": "stale stamp", "revision": "1", "expected": "X", "actual": "Y", "rows": "2"}
    return [Expected("INV-REV", "c", first, stale, known=known, evidence=evidence)]


@case("nacos-2.2.4")
def an_owner_that_restarted_and_loaded_such_a_replica_of_a_client_it_had(run: RunRecorder) -> list[Expected]:
    """The restarted node does not own the client any more, so no owner reused a revision."""
    run.connect("a")
    first = run.change("a", 1, "X")
    run.apply("bc", 1, "X")
    run.change("a", 2, "Y")
    stale = {node: run.apply(node, 1, "Y") for node in "bc"}
    run.row("a", Kind.NODE_STOPPED, detail="crash")
    run.row("a", Kind.NODE_STARTED, detail="a,b,c")
    stale["a"] = run.apply("a", 1, "Y")
    run.checkpoint()
    evidence = {"signature": "stale stamp"}
    return [Expected("INV-REV", node, first, stale[node], known="B10", evidence=evidence) for node in NODES]


@case("strict", "nacos-2.2.4")
def an_old_content_under_a_new_revision(run: RunRecorder) -> list[Expected]:
    run.registered()
    second = run.change("a", 2, "Y")
    run.apply("bc", 2, "Y")
    torn = run.apply("b", 2, "X")
    run.apply("b", 2, "Y")
    return [Expected("INV-REV", "b", second, torn, evidence={"signature": "stale content"})]


@case()
def the_owners_row_defines_a_revision_even_after_a_replicas_row(run: RunRecorder) -> list[Expected]:
    run.registered()
    early = run.apply("b", 2, "?")
    owners = run.change("a", 2, "Y")
    run.apply("bc", 2, "Y")
    return [Expected("INV-REV", "b", owners, early, evidence={"expected": "Y", "signature": "foreign content"})]


@case("nacos-2.2.4")
def a_content_that_no_client_published(run: RunRecorder) -> list[Expected]:
    run.connect("a")
    first = run.change("a", 1, "X")
    run.apply("c", 1, "X")
    foreign = run.apply("b", 1, "?")
    run.apply("b", 1, "X")
    return [Expected("INV-REV", "b", first, foreign, evidence={"signature": "foreign content"})]


@case("nacos-2.3.2", "strict")
def a_revision_that_its_owner_never_had(run: RunRecorder) -> list[Expected]:
    run.registered()
    wrong = run.apply("c", 7, "X")
    run.apply("c", 1, "X")
    return [Expected("INV-REV", "c", wrong, wrong, evidence={"signature": "foreign revision", "actual": "X"})]


@case()
def a_revision_of_a_client_that_was_there_before_the_trace(run: RunRecorder) -> None:
    run.apply("c", 7, "X")
    run.change("a", 8, "Y")
    run.apply("bc", 8, "Y")


@case("nacos-2.2.4", "nacos-2.3.2")
def an_owner_that_changes_without_moving_on(run: RunRecorder) -> list[Expected]:
    run.connect("a")
    first = run.change("a", 1, "X")
    reused = run.change("a", 1, "Y", detail=BATCH)
    run.apply("bc", 1, "X")
    run.change("a", 2, "Y")
    run.apply("bc", 2, "Y")
    run.checkpoint()
    known = "B18" if "2.2.4" in run.recorder.header.profile else None
    return [Expected("INV-REV", "a", first, reused, known=known, evidence={"signature": "reused revision"})]


@case("nacos-2.0.4", "nacos-2.1.1")
def releases_that_have_no_revisions(run: RunRecorder) -> None:
    run.connect("a")
    run.change("a", 0, "X")
    run.apply("bc", 0, "X")
    run.change("a", 0, "Y")
    run.apply("bc", 0, "Y")


@case()
def one_content_under_two_revisions_and_two_clients_with_one_revision(run: RunRecorder) -> None:
    run.registered()
    run.change("a", 2, "X")
    run.apply("bc", 2, "X")
    run.connect("b", client="c2")
    run.change("b", 1, "Z", client="c2")
    run.apply("ac", 1, "Z", client="c2")
    run.send("b", "a", "CHANGE", client="c2", revision=1, digest="Z")


# The other invariants, each with a run that violates it and a near miss. All invariants judge these cases.


@dataclass(frozen=True)
class Call:
    sent: Event
    received: Event
    done: Event | None
    replied: Event
    ended: Event


def call(
    run: RunRecorder, node: str, peer: str, operation: str, outcome: Outcome = Outcome.SUCCESS, **about: object
) -> Call:
    """The four rows of a call, 1 ms apart, 100 ms after the row before; `does` records what the receiver does."""
    does = about.pop("does", None)
    rows = {"message": run.recorder.new_message_id(), "operation": operation, "client": about.pop("client", "c1")}
    sent = run.row(node, Kind.REQUEST_SENT, after_ms=CALL_MS, peer=peer, **rows, **about)
    received = run.row(peer, Kind.REQUEST_RECEIVED, after_ms=1, peer=node, **rows, **about)
    done = does(rows["message"]) if callable(does) else None
    replied = run.row(peer, Kind.REPLY_SENT, after_ms=1, peer=node, **rows, outcome=outcome)
    ended = run.row(node, Kind.REPLY_RECEIVED, after_ms=1, peer=peer, **rows, outcome=outcome)
    return Call(sent, received, done, replied, ended)


def lost(run: RunRecorder, node: str, peer: str, operation: str, **about: object) -> None:
    """A call that never arrives: the sender's two rows."""
    rows = {"message": run.recorder.new_message_id(), "operation": operation, "client": "c1", **about}
    run.row(node, Kind.REQUEST_SENT, after_ms=CALL_MS, peer=peer, **rows)
    run.row(node, Kind.REPLY_RECEIVED, after_ms=1, peer=peer, **rows, outcome=Outcome.TIMEOUT)


def synced(run: RunRecorder, peer: str, revision: int, content: str, outcome: Outcome = Outcome.SUCCESS) -> Call:
    """A CHANGE of c1 from a that its receiver applies."""

    def applied(message: str) -> Event:
        return run.row(
            peer,
            Kind.REPLICA_APPLIED,
            after_ms=0,
            client="c1",
            owned=False,
            revision=revision,
            digest=content,
            message=message,
        )

    return call(run, "a", peer, "CHANGE", outcome, does=applied, revision=revision, digest=content)


def published(run: RunRecorder, revision: int, content: str) -> Event:
    """c1 changes on a, and both other nodes apply the change within a second."""
    change = run.change("a", revision, content)
    run.due()
    for peer in "bc":
        synced(run, peer, revision, content)
    return change


def everywhere(run: RunRecorder) -> None:
    """c1 is connected to a, and what it registers is sent to both other nodes."""
    run.connect("a")
    published(run, 1, "X")


def deleted(run: RunRecorder, peer: str, outcome: Outcome = Outcome.SUCCESS) -> Call:
    def removed(message: str) -> Event:
        return run.row(peer, Kind.REPLICA_REMOVED, after_ms=0, client="c1", message=message)

    return call(run, "a", peer, "DELETE", outcome, does=removed if outcome is Outcome.SUCCESS else None)


def verified(run: RunRecorder, seconds: int, revision: int = 1, peers: str = "bc", first_ms: int = 4_990) -> None:
    """Rounds of 5 s."""
    for second in range(0, seconds, 5):
        run.wait(4_990 if second else first_ms)
        for peer in peers:
            call(run, "a", peer, "VERIFY", revision=revision)


@complete_case()
def a_whole_life(run: RunRecorder) -> None:
    everywhere(run)
    verified(run, 30)
    published(run, 2, "Y")
    run.checkpoint()
    run.disconnect("a")
    deleted(run, "b")
    deleted(run, "c")
    run.checkpoint()


@complete_case()
def a_snapshot_that_overwrites_a_connected_client(run: RunRecorder) -> list[Expected]:
    everywhere(run)
    published(run, 2, "Y")
    old = run.row("a", Kind.REPLICA_APPLIED, client="c1", owned=True, revision=1, digest="X", message="m9")
    run.change("a", 2, "Y")
    synced(run, "b", 2, "Y")
    synced(run, "c", 2, "Y")
    return [Expected("INV-NATIVE", "a", old, old)]


@complete_case()
def a_snapshot_with_the_current_content_of_a_connected_client(run: RunRecorder) -> None:
    everywhere(run)
    run.row("a", Kind.REPLICA_APPLIED, client="c1", owned=True, revision=1, digest="X", message="m9")


@complete_case("nacos-2.2.4", "strict")
def a_copy_that_expires_though_a_change_has_just_come(run: RunRecorder) -> list[Expected]:
    everywhere(run)
    run.checkpoint()
    for _ in range(35):
        verified(run, 5, peers="c")
        call(run, "a", "b", "VERIFY", Outcome.ERROR, revision=1)
    run.change("a", 2, "Y")
    run.due()
    applied = synced(run, "b", 2, "Y").done
    synced(run, "c", 2, "Y")
    gone = run.row("b", Kind.REPLICA_REMOVED, client="c1", detail="lease")
    assert applied is not None
    known = "B17" if "2.2.4" in run.recorder.header.profile else None
    return [Expected("INV-LIVE", "b", applied, gone, known=known, evidence={"signature": "sync does not renew"})]


@complete_case()
def a_copy_that_expires_when_its_lease_is_over(run: RunRecorder) -> None:
    everywhere(run)
    run.row("a", Kind.NODE_STOPPED, detail="crash")
    run.wait(183_000)
    for node in "bc":
        run.row(node, Kind.REPLICA_REMOVED, after_ms=1, client="c1", detail="lease")
    run.checkpoint("bc")


@complete_case()
def a_client_that_the_lease_check_of_its_own_node_removes(run: RunRecorder) -> list[Expected]:
    run.connect("a")
    gone = run.row("a", Kind.REPLICA_REMOVED, client="c1", detail="lease")
    return [Expected("INV-LIVE", "a", gone, gone)]


@complete_case()
def a_delete_that_was_never_sent_to_one_member(run: RunRecorder) -> list[Expected]:
    everywhere(run)
    left = run.disconnect("a")
    deleted(run, "b")
    checks = run.checkpoint()
    return [Expected("INV-CONV", "c", left, checks["c"]), Expected("INV-DELETE", "c", left, checks["a"])]


@complete_case()
def a_delete_that_failed_too_late_to_be_sent_again(run: RunRecorder) -> list[Expected]:
    everywhere(run)
    left = run.disconnect("a")
    deleted(run, "b")
    run.wait(20_000)
    deleted(run, "c", Outcome.FAIL)
    run.wait(2_000)
    checks = run.checkpoint()
    return [Expected("INV-CONV", "c", left, checks["c"])]


@complete_case()
def a_delete_that_failed_and_was_given_up(run: RunRecorder) -> list[Expected]:
    everywhere(run)
    left = run.disconnect("a")
    deleted(run, "b")
    failed = deleted(run, "c", Outcome.FAIL).ended
    run.wait(20_000)
    checks = run.checkpoint()
    return [
        Expected("INV-CONV", "c", left, checks["c"]),
        Expected("INV-DELETE", "c", left, checks["a"]),
        Expected("INV-RETRY", "a", failed, checks["a"]),
    ]


@complete_case()
def a_delete_that_is_owed_to_no_member_outside_the_list(run: RunRecorder) -> list[Expected]:
    everywhere(run)
    run.row("a", Kind.MEMBERS_CHANGED, detail="a,b")
    left = run.disconnect("a")
    deleted(run, "b")
    run.row("a", Kind.MEMBERS_CHANGED, detail="a,b,c")
    checks = run.checkpoint()
    return [Expected("INV-CONV", "c", left, checks["c"])]


@complete_case()
def a_delete_of_the_instant_in_which_a_member_is_back_in_the_list(run: RunRecorder) -> list[Expected]:
    everywhere(run)
    run.row("a", Kind.MEMBERS_CHANGED, detail="a,b")
    left = run.disconnect("a")
    run.row("a", Kind.MEMBERS_CHANGED, after_ms=0, detail="a,b,c")
    deleted(run, "b")
    checks = run.checkpoint()
    return [Expected("INV-CONV", "c", left, checks["c"])]


@complete_case()
def a_delete_that_is_owed_to_no_member_that_left_the_list_before_it_was_due(run: RunRecorder) -> list[Expected]:
    everywhere(run)
    left = run.disconnect("a")
    run.row("a", Kind.MEMBERS_CHANGED, detail="a,b")
    deleted(run, "b")
    run.row("a", Kind.MEMBERS_CHANGED, detail="a,b,c")
    checks = run.checkpoint()
    return [Expected("INV-CONV", "c", left, checks["c"])]


@complete_case()
def a_delete_that_was_owed_to_a_member_long_before_it_left_the_list(run: RunRecorder) -> list[Expected]:
    everywhere(run)
    left = run.disconnect("a")
    deleted(run, "b")
    run.wait(10_000)
    run.row("a", Kind.MEMBERS_CHANGED, detail="a,b")
    run.row("a", Kind.MEMBERS_CHANGED, detail="a,b,c")
    checks = run.checkpoint()
    return [Expected("INV-CONV", "c", left, checks["c"]), Expected("INV-DELETE", "c", left, checks["a"])]


@complete_case()
def a_delete_that_is_owed_to_a_member_that_is_back_in_the_list(run: RunRecorder) -> list[Expected]:
    everywhere(run)
    run.row("a", Kind.MEMBERS_CHANGED, detail="a,b")
    run.row("a", Kind.MEMBERS_CHANGED, detail="a,b,c")
    left = run.disconnect("a")
    deleted(run, "b")
    checks = run.checkpoint()
    return [Expected("INV-CONV", "c", left, checks["c"]), Expected("INV-DELETE", "c", left, checks["a"])]


@complete_case()
def a_copy_at_a_node_started_not_long_before_that_no_delete_reached(run: RunRecorder) -> None:
    run.row("b", Kind.NODE_STOPPED, detail="crash")
    run.row("b", Kind.NODE_STARTED, detail="a,b,c")
    run.load("b", "c")
    everywhere(run)
    verified(run, 60)
    run.disconnect("a")
    run.due()
    deleted(run, "c")
    for _ in range(58):
        deleted(run, "b", Outcome.TIMEOUT)
        run.wait(3_000)
    run.row("b", Kind.REPLICA_REMOVED, after_ms=50, client="c1", detail="lease")
    call(run, "a", "b", "DELETE")


def a_snapshot_from_a_member_without_the_delete(run: RunRecorder, unanswered_before: bool) -> tuple[Event, Event]:
    """b is started long before c1 leaves, and no DELETE is sent; b loads the copy of c 100 s after that."""
    run.row("b", Kind.NODE_STOPPED, detail="crash")
    run.row("b", Kind.NODE_STARTED, detail="a,b,c")
    run.row("a", Kind.MEMBERS_CHANGED, detail="a,c")
    run.row("b", Kind.MEMBERS_CHANGED, detail="b,c")
    call(run, "b", "c", "SNAPSHOT", Outcome.TIMEOUT if unanswered_before else Outcome.SUCCESS, client=None)
    run.wait(190_000)
    run.connect("a")
    run.change("a", 1, "X")
    run.due()
    synced(run, "c", 1, "X")
    run.row("a", Kind.MEMBERS_CHANGED, detail="a")
    left = run.disconnect("a")
    run.wait(100_000)
    call(run, "b", "c", "SNAPSHOT", client=None)
    copy = {"client": "c1", "owned": False, "revision": 1, "digest": "X"}
    came = run.row("b", Kind.REPLICA_APPLIED, after_ms=0, **copy, message="m77")
    run.wait(80_000)
    run.row("c", Kind.REPLICA_REMOVED, client="c1", detail="lease")
    run.wait(100_000)
    run.row("b", Kind.REPLICA_REMOVED, client="c1", detail="lease")
    run.checkpoint()
    return left, came


@complete_case()
def a_copy_loaded_without_the_delete_after_minutes_of_unanswered_loads(run: RunRecorder) -> None:
    a_snapshot_from_a_member_without_the_delete(run, unanswered_before=True)


@complete_case()
def a_copy_loaded_without_the_delete_by_a_node_loaded_long_before(run: RunRecorder) -> list[Expected]:
    left, came = a_snapshot_from_a_member_without_the_delete(run, unanswered_before=False)
    return [Expected("INV-RESURRECT", "b", left, came)]


@complete_case()
def a_delete_not_sent_since_its_owner_crashed(run: RunRecorder) -> None:
    everywhere(run)
    run.disconnect("a")
    run.row("a", Kind.NODE_STOPPED, detail="crash")
    run.checkpoint("bc")


@complete_case()
def a_client_that_comes_back_after_its_end(run: RunRecorder) -> list[Expected]:
    everywhere(run)
    left = run.disconnect("a")
    deleted(run, "b")
    deleted(run, "c")
    run.wait(120_000)
    again = run.row("b", Kind.REPLICA_APPLIED, client="c1", owned=False, revision=1, digest="X", message="m77")
    run.wait(180_000)
    run.row("b", Kind.REPLICA_REMOVED, client="c1", detail="lease")
    return [Expected("INV-RESURRECT", "b", left, again)]


@complete_case()
def a_client_that_a_node_loads_after_its_end(run: RunRecorder) -> None:
    everywhere(run)
    run.row("b", Kind.NODE_STOPPED, detail="crash")
    run.row("b", Kind.NODE_STARTED, detail="a,b,c")
    run.disconnect("a")
    deleted(run, "b")
    deleted(run, "c")
    run.wait(60_000)
    lost(run, "b", "a", "SNAPSHOT", client=None)
    run.load("b", "c")
    run.row("b", Kind.REPLICA_APPLIED, client="c1", owned=False, revision=1, digest="X", message="m77")
    run.wait(180_000)
    run.row("b", Kind.REPLICA_REMOVED, client="c1", detail="lease")


@complete_case()
def a_copy_that_outlives_its_lease(run: RunRecorder) -> list[Expected]:
    run.connect("a")
    applied = published_copy(run)
    run.row("a", Kind.NODE_STOPPED, detail="crash")
    run.wait(200_000)
    gone = run.row("b", Kind.REPLICA_REMOVED, client="c1", detail="lease")
    run.row("c", Kind.NODE_STOPPED, detail="crash")
    run.checkpoint("b")
    # c was alive with it until it stopped, too.
    own = [event for event in run.events if event.node == "c" and event.client == "c1"]
    return [Expected("INV-EXPIRE", "b", applied["b"], gone), Expected("INV-EXPIRE", "c", applied["c"], own[-1])]


@complete_case()
def a_copy_that_refused_verifies_keep_alive(run: RunRecorder) -> list[Expected]:
    everywhere(run)
    verified(run, 10)
    renewed = [event for event in run.events if event.node == "b" and event.kind is Kind.REPLY_SENT][-1]
    for _ in range(40):
        run.wait(4_990)
        call(run, "a", "c", "VERIFY", revision=1)
        last = call(run, "a", "b", "VERIFY", Outcome.ERROR, revision=1).received
        if last.at_ms - renewed.at_ms > 188_000:
            break
    return [Expected("INV-RENEW", "b", renewed, last)]


def published_copy(run: RunRecorder) -> dict[str, Event]:
    run.change("a", 1, "X")
    applied = {peer: synced(run, peer, 1, "X").done for peer in "bc"}
    return {peer: event for peer, event in applied.items() if event is not None}


def gave(run: RunRecorder, node: str, peer: str) -> Event:
    """The node is asked for a snapshot, and gives it."""
    asked = {"peer": peer, "operation": "SNAPSHOT", "message": run.recorder.new_message_id()}
    run.row(node, Kind.REQUEST_RECEIVED, after_ms=CALL_MS, **asked)
    return run.row(node, Kind.REPLY_SENT, after_ms=1, **asked, outcome=Outcome.SUCCESS)


@complete_case()
def a_node_that_gets_no_snapshot_and_verifies_anyway(run: RunRecorder) -> list[Expected]:
    run.row("a", Kind.NODE_STOPPED, detail="crash")
    started = run.row("a", Kind.NODE_STARTED, detail="a,b,c")
    call(run, "a", "b", "SNAPSHOT", Outcome.TIMEOUT, client=None)
    everywhere(run)
    run.wait(1_000)
    early = call(run, "a", "b", "VERIFY", revision=1).sent
    given = gave(run, "a", "c")
    run.wait(63_000)  # and it does not ask again
    checks = run.checkpoint()
    return [
        Expected("INV-LOAD", "a", started, checks["a"], client=""),
        Expected("INV-INIT", "a", started, given, client=""),
        Expected("INV-INIT", "a", started, early),
    ]


@complete_case()
def a_node_that_loads_and_then_verifies(run: RunRecorder) -> None:
    run.row("a", Kind.NODE_STOPPED, detail="crash")
    run.row("a", Kind.NODE_STARTED, detail="a,b,c")
    call(run, "a", "b", "SNAPSHOT", Outcome.TIMEOUT, client=None)
    call(run, "a", "c", "SNAPSHOT", client=None)
    everywhere(run)
    verified(run, 10)
    gave(run, "a", "c")


@complete_case()
def a_node_that_gives_a_snapshot_before_it_asks_for_its_own(run: RunRecorder) -> list[Expected]:
    run.row("a", Kind.NODE_STOPPED, detail="crash")
    started = run.row("a", Kind.NODE_STARTED, detail="a,b,c")
    given = gave(run, "a", "c")
    run.load("a", "b")
    return [Expected("INV-INIT", "a", started, given, client="")]


@complete_case()
def a_node_that_never_asks_for_a_snapshot(run: RunRecorder) -> list[Expected]:
    run.row("a", Kind.NODE_STOPPED, detail="crash")
    started = run.row("a", Kind.NODE_STARTED, detail="a,b,c")
    checks = run.checkpoint()
    return [Expected("INV-LOAD", "a", started, checks["a"], client="")]


def loads_again(run: RunRecorder) -> None:
    """a starts again after a minute."""
    run.wait(60_000)
    run.row("a", Kind.NODE_STOPPED, detail="crash")
    run.row("a", Kind.NODE_STARTED, detail="a,b,c")


def asked(run: RunRecorder, peer: str, outcome: Outcome = Outcome.SUCCESS) -> Call:
    """a asks the peer for a snapshot."""
    return call(run, "a", peer, "SNAPSHOT", outcome, client=None)


OF_LOAD = ("INV-LOAD",)


@case(of=OF_LOAD)
def a_load_that_begins_with_the_last_member(run: RunRecorder) -> list[Expected]:
    loads_again(run)
    wrong = asked(run, "c").sent
    return [Expected("INV-LOAD", "a", wrong, wrong, client="")]


@case(of=OF_LOAD)
def a_load_that_begins_with_the_last_member_as_the_first_is_down(run: RunRecorder) -> None:
    loads_again(run)
    run.row("b", Kind.NODE_STOPPED, detail="crash")
    asked(run, "c")
    run.checkpoint("ac")


@case(of=OF_LOAD)
def a_load_that_goes_on_after_a_snapshot(run: RunRecorder) -> list[Expected]:
    loads_again(run)
    end = asked(run, "b").ended
    wrong = asked(run, "c").sent
    return [Expected("INV-LOAD", "a", end, wrong, client="")]


@case("strict", "nacos-2.1.2", of=OF_LOAD)
def loads_that_are_repeated_too_early_and_too_late(run: RunRecorder) -> list[Expected]:
    """After 3 s and 60 s, and in between after 30 s; up to 2.1.2 another type of data is asked for, too."""
    loads_again(run)
    ends, begins = [], []
    for delay_ms in (3_000, 30_000, 60_000):
        asked(run, "b", Outcome.ERROR)
        ends.append(asked(run, "c", Outcome.ERROR).ended)
        run.due(delay_ms)
        begins.append(asked(run, "b", Outcome.ERROR).sent)
        asked(run, "c", Outcome.ERROR)
        run.due(30_000)
    asked(run, "b")
    run.checkpoint()
    wrong = [(ends[0], begins[0]), (ends[2], begins[2])] if run.recorder.header.profile == "strict" else []
    return [Expected("INV-LOAD", "a", *each, client="") for each in wrong]


@case(of=OF_LOAD)
def a_load_that_leaves_out_the_next_member(run: RunRecorder) -> list[Expected]:
    loads_again(run)
    end = asked(run, "b", Outcome.ERROR).ended
    run.due(30_000)
    again = asked(run, "b").sent
    return [Expected("INV-LOAD", "a", end, again, client="")]


@case(of=OF_LOAD)
def a_snapshot_of_which_a_client_is_not_held(run: RunRecorder) -> list[Expected]:
    """c2 came with it; c3 was not in it or was not taken; c1 has left meanwhile; c4 has just connected."""
    run.wait(60_000)
    for client in ("c2", "c3", "c1"):
        run.connect("b", client)
    run.row("a", Kind.NODE_STOPPED, detail="crash")
    run.row("a", Kind.NODE_STARTED, detail="a,b,c")
    run.row("b", Kind.CLIENT_CONNECTED, after_ms=0, client="c4", owned=True, revision=0, digest=EMPTY)
    load = asked(run, "b")
    run.row("a", Kind.REPLICA_APPLIED, after_ms=0, client="c2", owned=False, revision=0, digest=EMPTY)
    run.row("a", Kind.REQUEST_RECEIVED, after_ms=10, peer="b", operation="DELETE", client="c1", message="m99")
    run.checkpoint()
    since = next(event for event in run.events if event.client == "c3")
    return [Expected("INV-LOAD", "a", since, load.ended, client="c3")]


@complete_case()
def a_load_that_repeats_after_every_lost_request(run: RunRecorder) -> None:
    run.row("a", Kind.NODE_STOPPED, detail="crash")
    run.row("a", Kind.NODE_STARTED, detail="a,b,c")
    for _ in range(3):
        for peer in "bc":
            lost(run, "a", peer, "SNAPSHOT", client=None)
        run.due(30_000)


@complete_case()
def a_load_that_is_answered_with_an_error_and_goes_on(run: RunRecorder) -> list[Expected]:
    run.row("a", Kind.NODE_STOPPED, detail="crash")
    started = run.row("a", Kind.NODE_STARTED, detail="a,b,c")
    call(run, "a", "b", "SNAPSHOT", Outcome.ERROR, client=None)
    lost(run, "a", "c", "SNAPSHOT", client=None)
    checks = run.checkpoint()
    return [Expected("INV-LOAD", "a", started, checks["a"], client="")]


@complete_case()
def orphans_whose_leases_end_one_after_another(run: RunRecorder) -> None:
    """The lease of b began again when it loaded its copy back."""
    everywhere(run)
    run.row("a", Kind.NODE_STOPPED, detail="crash")
    run.wait(100_000)
    run.row("b", Kind.NODE_STOPPED, detail="crash")
    run.row("b", Kind.NODE_STARTED, detail="a,b,c")
    call(run, "b", "c", "SNAPSHOT", client=None)
    run.row("b", Kind.REPLICA_APPLIED, after_ms=0, client="c1", owned=False, revision=1, digest="X")
    run.row("a", Kind.NODE_STARTED, detail="a,b,c")
    run.load("a", "b")
    run.row("a", Kind.REPLICA_APPLIED, after_ms=0, client="c1", owned=False, revision=1, digest="X")
    run.wait(80_000)
    run.remove("c")


def copy_on_a_node_that_is_paused(run: RunRecorder, *, for_ms: int, removed_after_ms: int) -> dict[str, Event]:
    run.connect("a")
    applied = published_copy(run)
    run.row("a", Kind.NODE_STOPPED, detail="crash")
    run.row("b", Kind.LINK_FAULT, detail="paused")
    run.wait(182_000)
    run.row("c", Kind.REPLICA_REMOVED, client="c1", detail="lease")
    run.wait(for_ms - 182_000)
    run.row("b", Kind.LINK_FAULT, detail="resumed")
    run.wait(removed_after_ms)
    run.row("b", Kind.REPLICA_REMOVED, client="c1", detail="lease")
    run.checkpoint("bc")
    return applied


@complete_case("nacos-2.3.2", "strict")
def a_copy_on_a_node_that_is_paused_for_longer_than_its_lease(run: RunRecorder) -> None:
    copy_on_a_node_that_is_paused(run, for_ms=300_000, removed_after_ms=4_000)


@complete_case("nacos-2.3.2", "strict")
def a_copy_that_outlives_the_pause_in_which_its_lease_ended(run: RunRecorder) -> list[Expected]:
    """In `strict` its lease begins anew (docs/protocol #lease-pause)."""
    applied = copy_on_a_node_that_is_paused(run, for_ms=300_000, removed_after_ms=10_000)
    gone = next(event for event in reversed(run.events) if (event.node, event.kind) == ("b", Kind.REPLICA_REMOVED))
    return [] if run.recorder.header.profile == "strict" else [Expected("INV-EXPIRE", "b", applied["b"], gone)]


@complete_case()
def a_copy_that_outlives_the_lease_that_began_anew_after_a_pause(run: RunRecorder) -> list[Expected]:
    applied = copy_on_a_node_that_is_paused(run, for_ms=300_000, removed_after_ms=190_000)
    gone = next(event for event in reversed(run.events) if (event.node, event.kind) == ("b", Kind.REPLICA_REMOVED))
    return [Expected("INV-EXPIRE", "b", applied["b"], gone)]


@complete_case()
def an_orphan_that_one_node_keeps_beyond_its_lease(run: RunRecorder) -> list[Expected]:
    run.connect("a")
    applied = published_copy(run)
    last = next(event for event in reversed(run.events) if event.node == "b")
    stopped = run.row("a", Kind.NODE_STOPPED, detail="crash")
    run.wait(182_000)
    run.row("c", Kind.REPLICA_REMOVED, client="c1", detail="lease")
    run.wait(10_000)
    checks = run.checkpoint("bc")
    return [
        Expected("INV-CONV", "b", stopped, checks["b"]),
        Expected("INV-EXPIRE", "b", applied["b"], last),
    ]


@complete_case()
def a_change_that_failed_for_a_member_that_leaves_and_comes_back(run: RunRecorder) -> None:
    run.connect("a")
    run.change("a", 1, "X")
    synced(run, "b", 1, "X")
    synced(run, "c", 1, "X", Outcome.TIMEOUT)
    run.row("a", Kind.MEMBERS_CHANGED, detail="a,b")
    run.row("a", Kind.MEMBERS_CHANGED, detail="a,b,c")


@complete_case()
def a_change_that_fails_for_a_member_that_leaves_while_it_is_asked_and_comes_back(run: RunRecorder) -> list[Expected]:
    def applied(message: str) -> Event:
        row = run.row("c", Kind.REPLICA_APPLIED, client="c1", owned=False, revision=1, digest="X", message=message)
        run.row("a", Kind.MEMBERS_CHANGED, detail="a,b")
        run.row("a", Kind.MEMBERS_CHANGED, detail="a,b,c")
        return row

    run.connect("a")
    run.change("a", 1, "X")
    synced(run, "b", 1, "X")
    call(run, "a", "c", "CHANGE", Outcome.TIMEOUT, does=applied, revision=1, digest="X")
    return []


def left_while_a_change_is_under_way(run: RunRecorder) -> dict[str, str]:
    """c1 leaves a while c has not answered its last CHANGE, and b deletes it. Returns the columns of that call."""
    run.connect("a")
    run.change("a", 1, "X")
    synced(run, "b", 1, "X")
    synced(run, "c", 1, "X")
    run.change("a", 2, "Y")
    change = {"peer": "c", "message": "slow", "operation": "CHANGE", "client": "c1"}
    run.row("a", Kind.REQUEST_SENT, **change, revision=2, digest="Y")
    run.disconnect("a")
    deleted(run, "b")
    return change


def failed_beside_a_change(run: RunRecorder, *, leaves_while_asked: bool) -> list[Expected]:
    """c leaves the list and comes back while a asks it to delete c1, or before that; an earlier CHANGE is under way."""

    def leaves_and_comes_back() -> None:
        run.row("a", Kind.MEMBERS_CHANGED, detail="a,b")
        run.row("a", Kind.MEMBERS_CHANGED, detail="a,b,c")

    change = left_while_a_change_is_under_way(run)
    delete = change | {"message": "last", "operation": "DELETE"}
    if not leaves_while_asked:
        leaves_and_comes_back()
    run.row("a", Kind.REQUEST_SENT, **delete)
    if leaves_while_asked:
        leaves_and_comes_back()
    run.row("a", Kind.REPLY_RECEIVED, **change, outcome=Outcome.TIMEOUT)
    failed = run.row("a", Kind.REPLY_RECEIVED, **delete, outcome=Outcome.TIMEOUT)
    run.wait(40_000)
    run.row("c", Kind.REPLICA_REMOVED, client="c1")
    run.wait(8_000)
    checks = run.checkpoint()
    return [] if leaves_while_asked else [Expected("INV-RETRY", "a", failed, checks["a"])]


@complete_case()
def a_delete_that_fails_beside_a_change_for_a_member_that_leaves_meanwhile(run: RunRecorder) -> list[Expected]:
    return failed_beside_a_change(run, leaves_while_asked=True)


@complete_case()
def a_delete_that_fails_beside_a_change_for_a_member_that_came_back_before(run: RunRecorder) -> list[Expected]:
    return failed_beside_a_change(run, leaves_while_asked=False)


def failed_of_the_http_api(run: RunRecorder, *, before_a_list_changes: bool) -> list[Expected]:
    client, content = "10.0.0.1:80#true", {"revision": 77, "digest": "X"}
    run.change("a", 77, "X", client=client)
    run.apply("bc", 77, "X", client=client)
    call(run, "a", "b", "CHANGE", client=client, **content)
    failed = call(run, "a", "c", "CHANGE", Outcome.FAIL, client=client, **content).ended
    if before_a_list_changes:
        run.row("a", Kind.MEMBERS_CHANGED, detail="a,c")
    run.wait(30_000)
    checks = run.checkpoint()
    return [] if before_a_list_changes else [Expected("INV-RETRY", "a", failed, checks["a"], client=client)]


@complete_case()
def a_change_of_the_http_api_that_failed_before_its_owner_may_have_changed(run: RunRecorder) -> list[Expected]:
    return failed_of_the_http_api(run, before_a_list_changes=True)


@complete_case()
def a_change_of_the_http_api_that_failed_at_its_owner(run: RunRecorder) -> list[Expected]:
    return failed_of_the_http_api(run, before_a_list_changes=False)


@complete_case()
def a_change_that_failed_of_a_client_that_left_and_whose_copy_was_loaded_back(run: RunRecorder) -> list[Expected]:
    change = left_while_a_change_is_under_way(run)
    deleted(run, "c")
    run.row("a", Kind.REPLY_RECEIVED, **change, outcome=Outcome.TIMEOUT)
    taken_back = run.row("a", Kind.REPLICA_APPLIED, client="c1", owned=False, revision=1, digest="X")
    run.wait(8_000)
    checks = run.checkpoint()
    return [Expected("INV-CONV", "a", taken_back, checks["a"])]


@complete_case()
def a_change_that_failed_for_another_member_than_the_one_that_left(run: RunRecorder) -> list[Expected]:
    run.connect("a")
    run.change("a", 1, "X")
    synced(run, "b", 1, "X")
    failed = synced(run, "c", 1, "X", Outcome.TIMEOUT).ended
    run.row("a", Kind.MEMBERS_CHANGED, detail="a,c")
    run.row("a", Kind.MEMBERS_CHANGED, detail="a,b,c")
    run.wait(8_000)
    checks = run.checkpoint()
    return [Expected("INV-RETRY", "a", failed, checks["a"])]


@complete_case()
def a_change_that_failed_and_was_not_sent_again(run: RunRecorder) -> list[Expected]:
    run.connect("a")
    run.change("a", 1, "X")
    synced(run, "b", 1, "X")
    failed = synced(run, "c", 1, "X", Outcome.TIMEOUT).ended
    run.wait(8_000)
    checks = run.checkpoint()
    return [Expected("INV-RETRY", "a", failed, checks["a"])]


@complete_case()
def a_change_that_failed_too_late_to_be_sent_again(run: RunRecorder) -> None:
    """5 s later it would have been, up to 2.1.2."""
    run.connect("a")
    run.change("a", 1, "X")
    synced(run, "b", 1, "X")
    synced(run, "c", 1, "X")
    run.disconnect("a")
    deleted(run, "b")
    call(
        run,
        "a",
        "c",
        "DELETE",
        Outcome.TIMEOUT,
        does=lambda m: run.row("c", Kind.REPLICA_REMOVED, client="c1", message=m),
    )
    run.wait(4_000)


@complete_case()
def a_change_that_failed_and_was_sent_again(run: RunRecorder) -> None:
    run.connect("a")
    run.change("a", 1, "X")
    synced(run, "b", 1, "X")
    synced(run, "c", 1, "X", Outcome.TIMEOUT)
    run.wait(3_000)
    synced(run, "c", 1, "X")


@complete_case()
def a_change_that_failed_towards_a_member_that_is_down(run: RunRecorder) -> None:
    run.connect("a")
    run.change("a", 1, "X")
    synced(run, "b", 1, "X")
    call(run, "a", "c", "CHANGE", Outcome.FAIL, revision=1, digest="X")
    run.row("c", Kind.NODE_STOPPED, detail="crash")
    run.checkpoint("ab")


@complete_case()
def an_answer_with_success_and_a_replica_not_applied(run: RunRecorder) -> list[Expected]:
    everywhere(run)
    run.change("a", 2, "Y")
    lied = call(run, "a", "b", "CHANGE", revision=2, digest="Y")
    synced(run, "c", 2, "Y")
    run.change("a", 3, "Z")
    synced(run, "b", 3, "Z")
    synced(run, "c", 3, "Z")
    return [Expected("INV-ACK", "b", lied.received, lied.replied)]


@complete_case("nacos-2.0.4")
def another_content_applied_than_the_one_that_is_acknowledged(run: RunRecorder) -> list[Expected]:
    everywhere(run)

    def applied(message: str) -> Event:
        copy = {"client": "c1", "owned": False, "revision": 2, "digest": "X"}
        return run.row("b", Kind.REPLICA_APPLIED, after_ms=0, message=message, **copy)

    run.change("a", 2, "Y")
    wrong = call(run, "a", "b", "CHANGE", does=applied, revision=2, digest="Y")
    synced(run, "c", 2, "Y")
    published(run, 3, "Z")
    return [Expected("INV-ACK", "b", wrong.received, wrong.replied)]


@complete_case()
def a_verify_that_an_old_copy_confirms(run: RunRecorder) -> list[Expected]:
    run.connect("a")
    applied = published_copy(run)
    run.change("a", 2, "Y")
    synced(run, "c", 2, "Y")
    call(run, "a", "c", "VERIFY", revision=2)
    wrong = call(run, "a", "b", "VERIFY", revision=2).replied
    run.change("a", 3, "Z")
    synced(run, "b", 3, "Z")
    synced(run, "c", 3, "Z")
    return [Expected("INV-VERIFY", "b", applied["b"], wrong)]


@complete_case()
def a_verify_of_no_revision_that_is_confirmed_without_a_copy(run: RunRecorder) -> list[Expected]:
    run.connect("a")
    wrong = call(run, "a", "b", "VERIFY", revision=0)
    published(run, 1, "X")
    return [Expected("INV-VERIFY", "b", wrong.received, wrong.replied)]


@complete_case()
def a_verify_that_a_newer_copy_confirms(run: RunRecorder) -> None:
    everywhere(run)
    rows = {"message": run.recorder.new_message_id(), "operation": "VERIFY", "client": "c1"}
    run.row("a", Kind.REQUEST_SENT, peer="b", **rows, revision=1)
    run.change("a", 2, "Y")
    synced(run, "b", 2, "Y")
    synced(run, "c", 2, "Y")
    run.row("b", Kind.REQUEST_RECEIVED, peer="a", **rows, revision=1)
    run.row("b", Kind.REPLY_SENT, peer="a", **rows, outcome=Outcome.SUCCESS)
    run.row("a", Kind.REPLY_RECEIVED, peer="b", **rows, outcome=Outcome.SUCCESS)


@complete_case()
def a_fresh_change_that_waits_like_a_retry(run: RunRecorder) -> list[Expected]:
    run.wait(60_000)  # by then all members are known to be up
    run.connect("a")
    run.change("a", 1, "X")
    run.due()
    synced(run, "b", 1, "X")
    call(run, "a", "c", "CHANGE", Outcome.TIMEOUT, revision=1, digest="X")
    change = run.change("a", 2, "Y")
    run.due()
    synced(run, "b", 2, "Y")
    run.wait(950)
    late = synced(run, "c", 2, "Y").sent
    return [Expected("INV-DELAY", "a", change, late)]


@complete_case()
def a_change_that_members_are_not_sent_until_a_verify_fails(run: RunRecorder) -> list[Expected]:
    run.wait(60_000)
    run.connect("a")
    change = run.change("a", 1, "X")
    run.wait(3_000)
    failed = {peer: call(run, "a", peer, "VERIFY", Outcome.FAIL, revision=1).ended for peer in "bc"}
    synced(run, "b", 1, "X")
    synced(run, "c", 1, "X")
    return [Expected("INV-DELAY", "a", change, failed[peer]) for peer in "bc"]


@complete_case()
def a_change_that_one_member_is_never_sent(run: RunRecorder) -> list[Expected]:
    run.wait(60_000)
    everywhere(run)
    change = run.change("a", 2, "Y")
    run.due()
    synced(run, "b", 2, "Y")
    run.wait(1_500)
    left = run.disconnect("a")
    run.due()
    deleted(run, "b")
    deleted(run, "c")
    return [Expected("INV-DELAY", "a", change, left)]


@complete_case()
def a_change_of_a_client_that_leaves_before_it_is_due(run: RunRecorder) -> None:
    run.wait(60_000)
    run.connect("a")
    run.change("a", 1, "X")
    run.disconnect("a")


@complete_case("strict")
def content_that_a_failed_verify_asks_for_and_that_is_sent_late(run: RunRecorder) -> list[Expected]:
    run.wait(60_000)
    everywhere(run)
    verified(run, 5, peers="b", first_ms=4_400)
    run.row("c", Kind.REPLICA_REMOVED, after_ms=0, client="c1", detail="lost")
    failed = call(run, "a", "c", "VERIFY", Outcome.FAIL, revision=1).ended
    run.wait(3_000)
    late = synced(run, "c", 1, "X").sent
    return [Expected("INV-DELAY", "a", failed, late)]


@complete_case("strict")
def content_that_a_failed_verify_asks_for(run: RunRecorder) -> None:
    """In time; and not at all, as the answer is none, or as the client ends."""
    run.wait(60_000)
    everywhere(run)
    run.row("c", Kind.REPLICA_REMOVED, client="c1", detail="lost")
    call(run, "a", "c", "VERIFY", Outcome.FAIL, revision=1)
    call(run, "a", "b", "VERIFY", revision=1)
    synced(run, "c", 1, "X")
    run.wait(4_600)
    call(run, "a", "b", "VERIFY", Outcome.TIMEOUT, revision=1)
    run.row("c", Kind.REPLICA_REMOVED, after_ms=0, client="c1", detail="lost")
    call(run, "a", "c", "VERIFY", Outcome.FAIL, revision=1)
    run.row("a", Kind.CLIENT_DISCONNECTED, after_ms=50, client="c1", owned=True)
    run.due()
    deleted(run, "b")
    deleted(run, "c")
    run.wait(3_000)


@complete_case()
def the_end_of_a_client_that_is_sent_late(run: RunRecorder) -> list[Expected]:
    run.wait(60_000)
    everywhere(run)
    left = run.disconnect("a")
    run.wait(3_000)
    late = [deleted(run, peer).sent for peer in "bc"]
    return [Expected("INV-DELAY", "a", left, sent) for sent in late]


@complete_case()
def the_end_of_a_client_that_is_sent_late_after_a_failed_try(run: RunRecorder) -> None:
    run.wait(60_000)
    everywhere(run)
    run.disconnect("a")
    run.due()
    deleted(run, "b")
    call(run, "a", "c", "DELETE", Outcome.TIMEOUT)
    run.due(3_000)
    deleted(run, "c")


@complete_case()
def the_end_of_a_client_that_is_sent_late_as_its_last_change_failed_meanwhile(run: RunRecorder) -> None:
    run.wait(60_000)
    everywhere(run)
    run.change("a", 2, "Y")
    run.due()
    synced(run, "b", 2, "Y")
    lost = {"message": run.recorder.new_message_id(), "operation": "CHANGE", "client": "c1"}
    run.row("a", Kind.REQUEST_SENT, after_ms=CALL_MS, peer="c", **lost, revision=2, digest="Y")
    run.disconnect("a")
    run.due()
    deleted(run, "b")
    run.row("a", Kind.REPLY_RECEIVED, after_ms=1_500, peer="c", **lost, outcome=Outcome.TIMEOUT)
    run.wait(2_000)
    deleted(run, "c")


@complete_case()
def calls_that_leave_before_their_delay_is_over(run: RunRecorder) -> list[Expected]:
    """A change and an end, at once; a retry when the delay of a change is over."""
    run.wait(60_000)
    run.connect("a")
    change = run.change("a", 1, "X")
    early = [synced(run, peer, 1, "X").sent for peer in "bc"]
    run.change("a", 2, "Y")
    run.due()
    synced(run, "b", 2, "Y")
    failed = call(run, "a", "c", "CHANGE", Outcome.FAIL, revision=2, digest="Y").ended
    run.due(1_000)
    retry = synced(run, "c", 2, "Y").sent
    left = run.disconnect("a")
    ends = [deleted(run, peer).sent for peer in "bc"]
    return [
        *(Expected("INV-DELAY", "a", change, sent) for sent in early),
        Expected("INV-DELAY", "a", failed, retry),
        *(Expected("INV-DELAY", "a", left, sent) for sent in ends),
    ]


@complete_case()
def changes_that_are_sent_when_the_first_of_them_is_due(run: RunRecorder) -> None:
    """A change, one that joins it, and one that joins a waiting retry, which has waited long enough for it."""
    run.wait(60_000)
    run.connect("a")
    run.change("a", 1, "X")
    run.row("a", Kind.CLIENT_CHANGED, after_ms=900, client="c1", owned=True, revision=2, digest="Y")
    synced(run, "b", 2, "Y")
    call(run, "a", "c", "CHANGE", Outcome.FAIL, revision=2, digest="Y")
    run.row("a", Kind.CLIENT_CHANGED, after_ms=2_500, client="c1", owned=True, revision=3, digest="X")
    synced(run, "c", 3, "X")
    run.due(900)
    synced(run, "b", 3, "X")
    run.disconnect("a")
    run.due()
    deleted(run, "b")
    deleted(run, "c")


@complete_case()
def changes_of_which_each_puts_off_the_sync(run: RunRecorder) -> list[Expected]:
    run.wait(60_000)
    run.connect("a")
    change = run.change("a", 1, "X")
    run.row("a", Kind.CLIENT_CHANGED, after_ms=800, client="c1", owned=True, revision=2, digest="Y")
    run.due()
    late = [synced(run, peer, 2, "Y").sent for peer in "bc"]
    return [Expected("INV-DELAY", "a", change, sent) for sent in late]


@case("strict", "nacos-2.1.2", of=("INV-DELAY",))
def a_retry_that_is_late(run: RunRecorder) -> list[Expected]:
    """After twice the delay of 3 s, which is 5 s up to 2.1.2; of a CHANGE and of a DELETE."""
    delay_ms, is_old = (2_000, True) if "2.1.2" in run.recorder.header.profile else (1_000, False)
    run.wait(60_000)
    run.connect("a")
    run.change("a", 1, "X")
    run.due(delay_ms)
    synced(run, "b", 1, "X")
    change = call(run, "a", "c", "CHANGE", Outcome.FAIL, revision=1, digest="X").ended
    run.due(5_200 if is_old else 6_000)
    late = [synced(run, "c", 1, "X").sent]
    run.disconnect("a")
    run.due(delay_ms)
    deleted(run, "b")
    end = call(run, "a", "c", "DELETE", Outcome.TIMEOUT).ended
    run.due(5_200 if is_old else 6_000)
    late += [deleted(run, "c").sent]
    run.checkpoint()
    expected = zip((change, end), late, strict=True)
    return [] if is_old else [Expected("INV-DELAY", "a", failed, sent) for failed, sent in expected]


@complete_case()
def content_that_a_failed_verify_asks_for_and_that_waits_like_a_change(run: RunRecorder) -> list[Expected]:
    """It is sent at once. Where the client changes meanwhile, it waits for the delay of the change."""
    run.wait(60_000)
    everywhere(run)
    verified(run, 5, peers="b", first_ms=4_400)
    run.row("c", Kind.REPLICA_REMOVED, after_ms=0, client="c1", detail="lost")
    failed = call(run, "a", "c", "VERIFY", Outcome.FAIL, revision=1).ended
    run.due()
    late = synced(run, "c", 1, "X").sent
    verified(run, 5, peers="b", first_ms=3_700)
    run.row("c", Kind.REPLICA_REMOVED, after_ms=0, client="c1", detail="lost")
    call(run, "a", "c", "VERIFY", Outcome.FAIL, revision=1)
    run.row("a", Kind.CLIENT_CHANGED, after_ms=50, client="c1", owned=True, revision=2, digest="Y")
    run.due()
    synced(run, "b", 2, "Y")
    synced(run, "c", 2, "Y")
    return [Expected("INV-DELAY", "a", failed, late)]


# INV-SOURCE: what a node sends of a client is what it holds of it


@case(of=("INV-SOURCE",))
def calls_that_say_something_else_than_the_sender_holds(run: RunRecorder) -> list[Expected]:
    """The state of before in a CHANGE, another revision in a VERIFY, and the DELETE of a client that is connected."""
    everywhere(run)
    change = run.change("a", 2, "Y")
    run.due()
    stale = synced(run, "b", 1, "X").sent
    synced(run, "c", 2, "Y")
    verify = call(run, "a", "b", "VERIFY", Outcome.FAIL, revision=3).sent
    synced(run, "b", 2, "Y")
    delete = deleted(run, "c").sent
    return [Expected("INV-SOURCE", "a", change, wrong) for wrong in (stale, verify, delete)]


@case(of=("INV-SOURCE",))
def calls_about_a_client_that_has_left(run: RunRecorder) -> list[Expected]:
    everywhere(run)
    left = run.disconnect("a")
    run.due()
    change = synced(run, "b", 1, "X").sent
    verify = call(run, "a", "c", "VERIFY", revision=1).sent
    deleted(run, "b")
    deleted(run, "c")
    return [Expected("INV-SOURCE", "a", left, wrong) for wrong in (change, verify)]


@case(of=("INV-SOURCE",))
def calls_that_were_made_when_the_client_had_just_changed(run: RunRecorder) -> None:
    run.connect("a")
    run.change("a", 1, "X")
    run.due()
    run.row("a", Kind.CLIENT_CHANGED, client="c1", after_ms=50, owned=True, revision=2, digest="Y")
    synced(run, "b", 1, "X")
    run.row("a", Kind.CLIENT_DISCONNECTED, client="c1", after_ms=50, owned=True)
    call(run, "a", "c", "VERIFY", Outcome.FAIL, revision=2)
    run.due()
    deleted(run, "b")
    deleted(run, "c")


@case(of=("INV-AIM",))
def a_connection_that_members_are_sent(run: RunRecorder) -> list[Expected]:
    run.connect("a")
    run.due()
    first = synced(run, "b", 0, EMPTY).sent
    call(run, "a", "c", "VERIFY", Outcome.FAIL, revision=0)
    synced(run, "c", 0, EMPTY)
    return [Expected("INV-AIM", "a", first, first)]


@case(of=("INV-AIM",))
def deletes_that_are_sent_again(run: RunRecorder) -> list[Expected]:
    """To b, which has confirmed it, and to c, where it failed."""
    everywhere(run)
    run.disconnect("a")
    run.due()
    first = deleted(run, "b").sent
    call(run, "a", "c", "DELETE", Outcome.TIMEOUT)
    run.due(3_000)
    again = call(run, "a", "b", "DELETE").sent
    deleted(run, "c")
    return [Expected("INV-AIM", "a", first, again)]


@case("strict", "nacos-2.0.4", of=("INV-VERIFY",))
def verifies_that_fail_for_a_copy_of_that_revision(run: RunRecorder) -> list[Expected]:
    """Once; the others fail for another revision, before the copy has it, or as it loses it meanwhile."""
    run.connect("a")
    run.change("a", 1, "X")
    run.due()
    call(run, "a", "b", "VERIFY", Outcome.FAIL, revision=1)
    held = synced(run, "b", 1, "X").done
    assert held is not None
    call(run, "a", "b", "VERIFY", Outcome.FAIL, revision=2)
    call(run, "a", "b", "VERIFY", Outcome.FAIL, revision=1, does=lambda _: run.apply("b", 1, "X"))
    wrong = call(run, "a", "b", "VERIFY", Outcome.FAIL, revision=1)
    held = next(event for event in reversed(run.events) if event.kind is Kind.REPLICA_APPLIED)
    return [Expected("INV-VERIFY", "b", held, wrong.replied)] if run.recorder.header.has_revisions else []


@case(of=("INV-ACK",))
def calls_that_are_applied_and_fail(run: RunRecorder) -> list[Expected]:
    """A revision beyond 32 bits is known too late."""
    run.connect("a")
    run.change("a", 1, "X")
    run.due()
    change = synced(run, "b", 1, "X", Outcome.FAIL)
    run.change("a", 2**31, "Y")
    run.due()
    synced(run, "c", 2**31, "Y", Outcome.FAIL)
    run.disconnect("a")
    run.due()
    removed = partial(run.row, "b", Kind.REPLICA_REMOVED, after_ms=0, client="c1")
    delete = call(run, "a", "b", "DELETE", Outcome.FAIL, does=lambda message: removed(message=message))
    call(run, "a", "c", "DELETE", Outcome.FAIL)
    return [Expected("INV-ACK", "b", wrong.received, wrong.replied) for wrong in (change, delete)]


@case("strict", "nacos-2.2.4", "nacos-2.0.4", of=("INV-NATIVE",))
def revisions_that_are_not_counted(run: RunRecorder) -> list[Expected]:
    """A batch may leave the revision as it was in 2.2.4; up to 2.1.1 there are none."""
    first = run.row("a", Kind.CLIENT_CONNECTED, client="c1", owned=True, revision=1, digest=EMPTY)
    one = run.change("a", 2, "X")
    skipped = run.change("a", 4, "Y")
    batch = run.change("a", 4, "Y", detail=BATCH)
    same = run.change("a", 4, "Y")
    run.change("a", 5, "X")
    run.checkpoint()
    wrong = [(first, first), (one, skipped)]
    wrong += [(skipped, batch), (batch, same)] if run.recorder.header.profile == "strict" else []
    return [Expected("INV-NATIVE", "a", *each) for each in wrong] if run.recorder.header.has_revisions else []


@case(of=("INV-ROUND",))
def a_member_that_is_verified_twice_in_a_round(run: RunRecorder) -> list[Expected]:
    """And once more after a suspension of the node."""
    run.wait(60_000)
    everywhere(run)
    verified(run, 10, first_ms=4_600)
    last = next(event for event in reversed(run.events) if (event.kind, event.peer) == (Kind.REQUEST_SENT, "c"))
    again = call(run, "a", "c", "VERIFY", revision=1).sent
    verified(run, 5)
    run.row("a", Kind.LINK_FAULT, detail="paused")
    run.row("a", Kind.LINK_FAULT, detail="resumed")
    verified(run, 5, first_ms=0)
    return [Expected("INV-ROUND", "a", last, again)]


@case(of=("INV-DELAY",))
def a_registration_that_changes_nothing_is_not_sent(run: RunRecorder) -> list[Expected]:
    run.wait(60_000)
    everywhere(run)
    change = run.change("a", 2, "X")
    run.due(3_000)
    late = [synced(run, peer, 2, "X").sent for peer in "bc"]
    return [Expected("INV-DELAY", "a", change, sent) for sent in late]


@complete_case()
def a_change_that_waits_for_the_call_to_another_member(run: RunRecorder) -> list[Expected]:
    run.wait(60_000)  # by then all members are known to be up
    run.connect("a")
    run.change("a", 1, "X")
    run.due()
    late = {"message": run.recorder.new_message_id(), "operation": "CHANGE", "client": "c1"}
    lead = run.row("a", Kind.REQUEST_SENT, after_ms=CALL_MS, peer="b", **late, revision=1, digest="X")
    run.row("a", Kind.REPLY_RECEIVED, after_ms=3_000, peer="b", **late, outcome=Outcome.TIMEOUT)
    sent = synced(run, "c", 1, "X").sent
    call(run, "a", "c", "VERIFY", revision=1)
    call(run, "a", "b", "VERIFY", Outcome.FAIL, revision=1)
    synced(run, "b", 1, "X")
    run.checkpoint()
    change = next(event for event in run.events if event.kind is Kind.CLIENT_CHANGED)
    return [Expected("INV-DELAY", "a", change, sent), Expected("INV-ISOLATE", "a", lead, sent)]


@complete_case()
def a_retry_that_waits_for_its_own_time(run: RunRecorder) -> None:
    run.wait(60_000)
    run.connect("a")
    run.change("a", 1, "X")
    run.due()
    synced(run, "b", 1, "X")
    lost(run, "a", "c", "CHANGE", revision=1, digest="X")
    run.due(3_000)
    synced(run, "c", 1, "X")


@complete_case()
def a_verify_that_brings_a_client_into_being(run: RunRecorder) -> list[Expected]:
    everywhere(run)
    run.row("b", Kind.REPLICA_REMOVED, after_ms=0, client="c1", detail="lost")

    def made_up(message: str) -> Event:
        return run.row("b", Kind.REPLICA_APPLIED, after_ms=0, client="c1", owned=False, revision=0, digest=EMPTY)

    verify = call(run, "a", "b", "VERIFY", Outcome.FAIL, does=made_up, revision=1)
    synced(run, "b", 1, "X")
    run.checkpoint()
    assert verify.done is not None
    return [Expected("INV-ASKS", "b", verify.received, verify.done)]


def _arrives(run: RunRecorder, peer: str, operation: str, **about: object) -> tuple[Callable[[Outcome], Event], Event]:
    """A call of `peer` for c1 that b receives: what records its answer and its end, and the row of its receipt."""
    rows = {"message": run.recorder.new_message_id(), "operation": operation, "client": "c1"}
    run.row(peer, Kind.REQUEST_SENT, after_ms=100, peer="b", **rows, **about)
    received = run.row("b", Kind.REQUEST_RECEIVED, after_ms=1, peer=peer, **rows, **about)

    def answers(outcome: Outcome) -> Event:
        run.row("b", Kind.REPLY_SENT, after_ms=1, peer=peer, **rows, outcome=outcome)
        return run.row(peer, Kind.REPLY_RECEIVED, after_ms=1, peer="b", **rows, outcome=outcome)

    return answers, received


@complete_case()
def a_verify_that_brings_a_client_into_being_while_another_arrives(run: RunRecorder) -> list[Expected]:
    everywhere(run)
    run.row("b", Kind.REPLICA_REMOVED, after_ms=0, client="c1", detail="lost")

    one, _ = _arrives(run, "a", "VERIFY", revision=1)
    other, received = _arrives(run, "a", "VERIFY", revision=1)
    made = run.row("b", Kind.REPLICA_APPLIED, after_ms=0, client="c1", owned=False, revision=0, digest=EMPTY)
    for answers in (one, other):
        answers(Outcome.FAIL)
    synced(run, "b", 1, "X")
    return [Expected("INV-ASKS", "b", received, made)]


@complete_case()
def a_change_that_arrives_while_a_verify_is_answered(run: RunRecorder) -> None:
    run.connect("a")
    run.change("a", 1, "X")
    synced(run, "c", 1, "X")
    change, _ = _arrives(run, "a", "CHANGE", revision=1, digest="X")
    verify, _ = _arrives(run, "a", "VERIFY", revision=1)
    run.apply("b", 1, "X")
    verify(Outcome.FAIL)
    change(Outcome.SUCCESS)


@complete_case()
def a_change_that_is_applied_and_answered_while_a_verify_is_answered(run: RunRecorder) -> None:
    run.connect("a")
    run.change("a", 1, "X")
    synced(run, "c", 1, "X")
    call(run, "a", "b", "VERIFY", Outcome.FAIL, does=lambda _: synced(run, "b", 1, "X").done, revision=1)


@complete_case()
def a_client_that_comes_with_a_snapshot_while_a_verify_is_answered(run: RunRecorder) -> list[Expected]:
    everywhere(run)
    run.row("b", Kind.NODE_STOPPED, detail="crash")
    run.row("b", Kind.NODE_STARTED, detail="a,b,c")
    load = {"peer": "a", "operation": "SNAPSHOT", "message": run.recorder.new_message_id()}
    run.row("b", Kind.REQUEST_SENT, **load)

    def loaded(message: str) -> Event:
        run.row("b", Kind.REPLY_RECEIVED, after_ms=0, **load, outcome=Outcome.SUCCESS)
        return run.apply("b", 1, "X")

    call(run, "a", "b", "VERIFY", does=loaded, revision=1)
    return []


@complete_case()
def a_silent_client_whose_connection_stays(run: RunRecorder) -> list[Expected]:
    everywhere(run)
    silent = run.row("a", Kind.LINK_FAULT, client="c1", detail="silent")
    verified(run, 40)
    late = next(event for event in run.events if event.node == "a" and event.at_ms - silent.at_ms > 35_000)
    return [Expected("INV-SILENT", "a", silent, late)]


@complete_case()
def a_silent_client_that_answers_again_and_one_whose_connection_ends(run: RunRecorder) -> None:
    everywhere(run)
    run.row("a", Kind.LINK_FAULT, after_ms=0, client="c1", detail="silent")
    verified(run, 20)
    run.row("a", Kind.LINK_FAULT, after_ms=0, client="c1", detail="answers")
    verified(run, 20)
    run.row("a", Kind.LINK_FAULT, after_ms=0, client="c1", detail="silent")
    verified(run, 25)
    run.disconnect("a")
    run.due()
    deleted(run, "b")
    deleted(run, "c")
    run.wait(60_000)


@complete_case()
def a_full_sync_to_a_member_whose_calls_succeeded(run: RunRecorder) -> list[Expected]:
    everywhere(run)
    run.row("b", Kind.REPLICA_REMOVED, after_ms=0, client="c1", detail="lost")
    failed = call(run, "a", "b", "VERIFY", Outcome.FAIL, revision=1).ended
    synced(run, "b", 1, "X")
    unprovoked = synced(run, "c", 1, "X").sent
    return [Expected("INV-AIM", "a", failed, unprovoked)]


def sent_again_after_a_change(run: RunRecorder, *, in_the_moment_of_the_call: bool) -> tuple[Event, Event]:
    """The rows that sent it to b first and again."""
    run.connect("a")
    run.change("a", 1, "X")
    call = {"peer": "b", "message": run.recorder.new_message_id(), "operation": "CHANGE", "client": "c1"}
    content = {"revision": 1, "digest": "X"}
    sent = run.row("a", Kind.REQUEST_SENT, after_ms=49 if in_the_moment_of_the_call else 50, **call, **content)
    run.apply("b", 1, "X")
    run.row("a", Kind.REPLY_RECEIVED, after_ms=1, **call, outcome=Outcome.SUCCESS)
    again = synced(run, "b", 1, "X").sent
    synced(run, "c", 1, "X")
    run.checkpoint()
    return sent, again


@complete_case()
def a_change_at_the_moment_of_a_call_is_sent_again(run: RunRecorder) -> None:
    sent_again_after_a_change(run, in_the_moment_of_the_call=True)


@complete_case()
def a_change_before_a_call_is_not_sent_again(run: RunRecorder) -> list[Expected]:
    sent, again = sent_again_after_a_change(run, in_the_moment_of_the_call=False)
    return [Expected("INV-AIM", "a", sent, again)]


@complete_case()
def a_change_is_under_way_when_its_verify_fails(run: RunRecorder) -> None:
    """The failure queues a second CHANGE: one too many, but to the right member."""
    run.connect("a")
    run.change("a", 1, "X")
    synced(run, "c", 1, "X")
    call(run, "a", "b", "VERIFY", Outcome.FAIL, revision=1)
    synced(run, "b", 1, "X")
    synced(run, "b", 1, "X")


def two_calls_fail_before_either_retry(run: RunRecorder) -> None:
    """As seen on a busy 2.2.4: the retry of the first call is already queued when the second call fails."""
    everywhere(run)
    run.change("a", 2, "Y")
    synced(run, "c", 2, "Y")
    call(run, "a", "b", "CHANGE", Outcome.TIMEOUT, revision=2, digest="Y")
    call(run, "a", "b", "VERIFY", Outcome.FAIL, revision=2)
    synced(run, "b", 2, "Y")
    synced(run, "b", 2, "Y")


@complete_case()
def as_many_full_syncs_as_failures(run: RunRecorder) -> None:
    two_calls_fail_before_either_retry(run)


@complete_case()
def one_full_sync_more_than_failures(run: RunRecorder) -> list[Expected]:
    two_calls_fail_before_either_retry(run)
    before = run.events[-1]
    unprovoked = synced(run, "b", 2, "Y").sent
    confirmed = next(
        row for row in reversed(run.events) if row.message == before.message and row.kind == "request_sent"
    )
    return [Expected("INV-AIM", "a", confirmed, unprovoked)]


def sent_twice_of_the_http_api(
    run: RunRecorder, *, after_a_list_changed: bool = False, after_a_cut: bool = False
) -> list[Expected]:
    client, content = "10.0.0.1:80#true", {"revision": 77, "digest": "X"}
    run.change("a", 77, "X", client=client)
    run.apply("bc", 77, "X", client=client)
    for peer in "bc":
        sent = call(run, "a", peer, "CHANGE", client=client, **content).sent
    if after_a_list_changed:
        run.row("a", Kind.MEMBERS_CHANGED, detail="a,c")
    if after_a_cut:
        run.row("b", Kind.LINK_FAULT, peer="c", detail="cut")
    again = call(run, "a", "c", "CHANGE", client=client, **content).sent
    run.checkpoint()
    return [] if after_a_list_changed or after_a_cut else [Expected("INV-AIM", "a", sent, again, client=client)]


def registered_and_never_sent(run: RunRecorder, client: str) -> tuple[Event, Event]:
    """At a, which only reports that its copy is removed at last."""
    run.wait(60_000)  # no member counts as unreachable any more
    change = run.change("a", 77, "X", client=client)
    run.wait(30_000)
    removed = run.row("a", Kind.REPLICA_REMOVED, client=client, detail="DELETE")
    run.checkpoint()
    return change, removed


@case("nacos-2.5.1", of=("INV-DELAY",))
def a_client_of_the_http_api_that_its_owner_never_sends(run: RunRecorder) -> list[Expected]:
    client = "10.0.0.1:80#true"
    change, removed = registered_and_never_sent(run, client)
    return [Expected("INV-DELAY", "a", change, removed, client=client) for _ in "bc"]


@case("nacos-2.5.1", of=("INV-DELAY",))
def a_client_of_the_http_api_that_another_member_owns(run: RunRecorder) -> None:
    """A request by version 2 stays at the receiving node (D7), which must send nothing about it."""
    registered_and_never_sent(run, "10.0.0.2:80#true")


@complete_case()
def a_client_of_the_http_api_that_is_handed_over_after_a_cut_link(run: RunRecorder) -> list[Expected]:
    return sent_twice_of_the_http_api(run, after_a_cut=True)


@complete_case()
def a_client_of_the_http_api_that_is_handed_over(run: RunRecorder) -> list[Expected]:
    return sent_twice_of_the_http_api(run, after_a_list_changed=True)


@complete_case()
def a_client_of_the_http_api_that_is_sent_twice_by_its_owner(run: RunRecorder) -> list[Expected]:
    return sent_twice_of_the_http_api(run, after_a_list_changed=False)


@complete_case()
def a_full_sync_to_a_member_whose_call_failed(run: RunRecorder) -> None:
    everywhere(run)
    run.row("b", Kind.REPLICA_REMOVED, after_ms=0, client="c1", detail="lost")
    call(run, "a", "b", "VERIFY", Outcome.FAIL, revision=1)
    synced(run, "b", 1, "X")


@complete_case()
def a_delete_refused_by_a_node_without_a_copy(run: RunRecorder) -> list[Expected]:
    run.connect("a")
    run.disconnect("a")
    refused = call(run, "a", "b", "DELETE", Outcome.FAIL)
    deleted(run, "b")
    deleted(run, "c")
    return [Expected("INV-GONE", "b", refused.received, refused.replied)]


def without_rounds(run: RunRecorder, *answers: tuple[str, Outcome]) -> tuple[Event, Event]:
    """A client of a node that has requested snapshots since its start and received these answers; no VERIFY of it is
    sent. Returns the first and the last row about the client."""
    run.row("a", Kind.NODE_STOPPED, detail="crash")
    run.row("a", Kind.NODE_STARTED, detail="a,b,c")
    for peer, outcome in answers:
        asked = {"peer": peer, "operation": "SNAPSHOT", "message": run.recorder.new_message_id()}
        run.row("a", Kind.REQUEST_SENT, after_ms=CALL_MS, **asked)
        run.row("a", Kind.REPLY_RECEIVED, after_ms=1, **asked, outcome=outcome)
    run.wait(60_000)  # by then all members are known to be up
    run.connect("a")
    changed = run.change("a", 1, "X")
    run.due()
    synced(run, "b", 1, "X")
    last = synced(run, "c", 1, "X").ended
    run.wait(30_000)
    run.checkpoint()
    return changed, last


@complete_case()
def no_rounds_of_a_node_that_waits_for_a_snapshot(run: RunRecorder) -> None:
    without_rounds(run, ("b", Outcome.TIMEOUT), ("c", Outcome.FAIL))


@complete_case()
def no_rounds_of_a_node_that_has_a_snapshot(run: RunRecorder) -> list[Expected]:
    changed, last = without_rounds(run, ("b", Outcome.FAIL), ("c", Outcome.SUCCESS))
    return [Expected("INV-ROUND", "a", changed, last)] * 2  # with b and with c


def c_is_left_out(run: RunRecorder) -> list[Expected]:
    """c is left out of four rounds."""
    last = [event for event in run.events if event.kind is Kind.REQUEST_SENT and event.peer == "c"][-1]
    verified(run, 20, peers="b")
    late = next(event for event in run.events if event.node == "a" and event.at_ms - last.at_ms > 6_000)
    run.checkpoint()
    return [Expected("INV-ROUND", "a", last, late)]


@complete_case()
def rounds_that_leave_one_member_out(run: RunRecorder) -> list[Expected]:
    run.wait(60_000)  # by then all members are known to be up
    everywhere(run)
    verified(run, 10, first_ms=4_600)
    return c_is_left_out(run)


@complete_case()
def rounds_that_leave_one_member_out_when_all_can_be_reached_again(run: RunRecorder) -> list[Expected]:
    run.wait(60_000)
    everywhere(run)
    for _ in range(5):
        run.wait(4_600)
        for peer in "bc":
            call(run, "a", peer, "VERIFY", Outcome.UNREACHABLE, revision=1)
    verified(run, 5)
    return c_is_left_out(run)


@complete_case()
def rounds_that_leave_out_a_member_that_cannot_be_reached(run: RunRecorder) -> None:
    everywhere(run)
    verified(run, 10)
    run.row("a", Kind.LINK_FAULT, peer="c", detail="cut")
    verified(run, 20, peers="b")
    run.row("a", Kind.LINK_FAULT, peer="c", detail="healed")


@complete_case()
def rounds_that_leave_out_a_member_that_is_long_down_or_cut_off(run: RunRecorder) -> None:
    run.row("b", Kind.LINK_FAULT, peer="a", detail="cut")
    run.row("c", Kind.NODE_STOPPED, detail="crash")
    run.wait(120_000)
    run.connect("a")
    run.change("a", 1, "X")
    verified(run, 30, peers="")
    run.wait(120_000)
    run.row("c", Kind.NODE_STARTED, detail="a,b,c")
    run.load("c", "a")
    run.row("b", Kind.LINK_FAULT, peer="a", detail="healed")
    synced(run, "b", 1, "X")
    synced(run, "c", 1, "X")


@complete_case()
def rounds_that_leave_out_members_that_are_back_in_the_list_and_still_cut_off(run: RunRecorder) -> None:
    for peer in "bc":
        run.row("a", Kind.LINK_FAULT, peer=peer, detail="cut")
    run.row("a", Kind.MEMBERS_CHANGED, detail="a")
    run.row("a", Kind.MEMBERS_CHANGED, detail="a,b,c")
    run.wait(120_000)
    run.connect("a")
    run.change("a", 1, "X")
    verified(run, 30, peers="")
    for peer in "bc":
        run.row("a", Kind.LINK_FAULT, peer=peer, detail="healed")
        synced(run, peer, 1, "X")


@pytest.mark.parametrize(("clock", "rounds", "nodes"), [("virtual", 1, ["a"]), ("wall", 2, []), ("wall", 4, ["a"])])
def test_each_round_counts_without_a_checkpoint_too_and_real_servers_may_be_late(
    tmp_path: Path, clock: str, rounds: int, nodes: list[str]
) -> None:
    """c is left out of so many."""
    with Recorder(tmp_path, "r", profile="strict", target="test", nodes=NODES, clock=clock) as recorder:  # type: ignore[arg-type]
        run = RunRecorder(recorder)
        run.wait(60_000)
        run.connect("a")
        published(run, 1, "X")
        verified(run, 10, first_ms=4_600)
        verified(run, 5 * rounds, peers="b")
        verified(run, 5)
    assert [each.node for each in in_process(tmp_path, invariants=["INV-ROUND"]).violations] == nodes


@dataclass(frozen=True)
class Library:
    directory: Path
    result: CheckResult
    expected: dict[str, list[Expected]]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """All cases, recorded and checked at once."""
    directory: Path = tmp_path_factory.mktemp("cases")
    expected = {}
    for name, (record, profile, _) in CASES.items():
        with Recorder(directory, name, profile=profile, target="test", nodes=NODES) as recorder:
            expected[name] = recorded(record, recorder)
    return Library(directory, in_process(directory, convergence=True), expected)


@pytest.mark.spark
def test_spark_finds_the_same(library: Library, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_spark_engine, "RESULTS_AT_ONCE", 20)
    assert on_spark(spark, library.directory, convergence=True).without_times() == library.result.without_times()


@pytest.mark.slow
def test_in_parts_the_same_is_found(library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of clients, and of violations that are in memory at once; every fifth recording."""
    monkeypatch.setattr(tally, "PART_ROWS", 60)
    monkeypatch.setattr(tally, "RESULTS_AT_ONCE", 4)
    measured = {"convergence": True, "responsibility": True}
    some = sorted(library.directory.iterdir())[::5]
    found = in_process(some, sinks=[ParquetSink(tmp_path / "parts")], **measured)
    monkeypatch.undo()
    whole = in_process(some, sinks=[ParquetSink(tmp_path / "whole")], **measured)
    assert found.without_times() == whole.without_times()
    assert len(list((tmp_path / "parts").iterdir())) > 1
    ids = [sorted(pl.read_parquet(tmp_path / name)["id"]) for name in ("parts", "whole")]
    assert ids[0] == ids[1]


class Partly(Recorder):
    """Records only the observed rows of a run."""

    def record(self, node: str, kind: Kind, **fields: object) -> Event:
        whole = Event(run="", node=node, seq=0, kind=kind, **fields)  # type: ignore[arg-type]
        row = as_observed(whole, self.header.observed)
        if row is None:
            return whole
        return super().record(node, kind, **{name: getattr(row, name) for name in fields})


def _subject(run: str, found: Violation) -> tuple[str, ...]:
    """INV-REV without the node: where the owner was not observed, the first of two contents counts as the right one."""
    return run, found.invariant, found.client, "" if found.invariant == "INV-REV" else found.node


NOT_DECIDED = {
    "state": {*INVARIANTS} - {"INV-OWNER", "INV-REV", "INV-LOAD", "INV-INIT"},
    "sent": {"INV-DELETE", "INV-LOAD", "INV-INIT", "INV-RETRY", "INV-DELAY", "INV-AIM", "INV-ROUND", "INV-ISOLATE"}
    | {"INV-ASKS", "INV-SOURCE"},
    "received": {"INV-LIVE", "INV-EXPIRE", "INV-RENEW", "INV-ACK", "INV-VERIFY", "INV-GONE", "INV-ASKS"} | {"INV-REV"},
    "owned": {"INV-CONV", "INV-OWNER", "INV-REV", "INV-NATIVE"},
    "revision": {"INV-VERIFY", "INV-REV", "INV-AIM"},
    "digest": {*INVARIANTS} - {"INV-OWNER", "INV-REV", "INV-LOAD", "INV-INIT"},
    "CHANGE": {"INV-LIVE", "INV-EXPIRE", "INV-RENEW", "INV-RETRY", "INV-ACK", "INV-DELAY", "INV-AIM", "INV-ROUND"}
    | {"INV-ISOLATE", "INV-ASKS", "INV-REV", "INV-SOURCE"},
    "DELETE": {"INV-DELETE", "INV-RETRY", "INV-ACK", "INV-DELAY", "INV-AIM", "INV-GONE", "INV-ROUND", "INV-ISOLATE"}
    | {"INV-SOURCE"},
    "VERIFY": {"INV-LIVE", "INV-EXPIRE", "INV-RENEW", "INV-INIT", "INV-VERIFY", "INV-DELAY", "INV-AIM", "INV-ROUND"}
    | {"INV-ASKS", "INV-SOURCE"},
    "SNAPSHOT": {"INV-LOAD", "INV-INIT", "INV-ROUND", "INV-ASKS"},
    "QUERY": set(),
}
"""By the rows that were not observed."""


@pytest.mark.parametrize("lacks", NOT_DECIDED)
def test_invariants_are_not_judged_without_the_rows_they_need(lacks: str) -> None:
    judged = {name for name, each in INVARIANTS.items() if each.needs.met(WITHOUT[lacks], "a", ("b", "c"))}
    assert {*INVARIANTS} - judged == NOT_DECIDED[lacks]


@pytest.mark.slow
@pytest.mark.parametrize("lacks", [[*WITHOUT][i : i + 3] for i in range(0, len(WITHOUT), 3)], ids=", ".join)
def test_fewer_observed_rows_cause_no_further_violation(library: Library, tmp_path: Path, lacks: Sequence[str]) -> None:
    """The needs of the invariants suffice: no case has more violations when fewer of its rows are observed."""
    for name, (record, profile, _) in CASES.items():
        for each in lacks if profile == "strict" else ():
            options = {"profile": profile, "target": "test", "nodes": NODES, "observed": WITHOUT[each]}
            with Partly(tmp_path / each, f"{each}: {name}", **options) as recorder:  # type: ignore[arg-type]
                recorded(record, recorder)
    found = in_process(tmp_path)
    assert found.violations_left_out == 0
    known = {_subject(each.run, each) for each in library.result.violations}
    news = [each for each in found.violations if _subject(each.run.partition(": ")[2], each) not in known]
    assert [f"{each.run}: {each.invariant}: {each.message}" for each in news] == []


def reference(event: Event) -> EventReference:
    return EventReference(event.node, event.seq, event.at_ms, event.kind.value, event.message)


@pytest.mark.parametrize("name", CASES)
def test_a_run_has_exactly_its_violations(library: Library, name: str) -> None:
    _, profile, judged = CASES[name]
    found = [each for each in library.result.violations if each.run == name and each.invariant in judged]
    expected = library.expected[name]
    assert [
        (each.invariant, each.node, each.client, each.first_event, each.last_event, each.known) for each in found
    ] == [
        (each.invariant, each.node, each.client, reference(each.first), reference(each.last), each.known)
        for each in expected
    ]
    assert all(each.expected for each in found)
    for violation, wanted in zip(found, expected, strict=True):
        assert violation.evidence.items() >= wanted.evidence.items()
        if judged == AT_REST:
            assert ("signature" in violation.evidence) == (
                violation.invariant == "INV-REV" or "signature" in wanted.evidence
            )
        assert violation.profile == profile


def test_the_message_names_node_time_and_last_message(library: Library) -> None:
    name = "a_change_that_one_node_acknowledged_and_never_applied on strict"
    (found,) = (each for each in library.result.violations if each.run == name and each.invariant == "INV-CONV")
    assert (found.after, found.expected) == ("m4", "b holds Y of c1 at checkpoint 2")
    assert found.message == (
        "b holds X (revision 1) of c1 at checkpoint 2 while its owner a holds Y; they differ since client_changed of a "
        "at 11000 ms (seq 7); the last content message that reached it is m4 (CHANGE, success)"
    )


def test_known_failures_are_listed_and_counted_apart(library: Library) -> None:
    by_name = {each.name: each for each in library.result.invariants}
    assert by_name["INV-REV"].known == 2 + len(NODES)
    assert by_name["INV-REV"].violations == sum(
        each.known is None and each.invariant == "INV-REV" for case_ in library.expected.values() for each in case_
    )
    assert library.result.violations_left_out == 0


def test_all_recorded_runs_are_judged(library: Library) -> None:
    assert library.result.verdict == "violates"
    assert library.result.reasons == ()
    assert library.result.runs == library.result.runs_with_checkpoint == len(CASES)
