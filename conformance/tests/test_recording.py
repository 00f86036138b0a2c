"""The rows that a journal writes for calls, faults and readings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from distro_conformance.recording.journal import READINGS_MAX, TraceJournal, read_state
from distro_conformance.targets.ports import free_base_ports
from distro_conformance.verdict import TargetError
from distro_conformance.wire.connection import Connection
from distro_conformance.wire.messages import DISTRO_RESPONSE, DistroCall, RoutedCall, pack, sync_data
from distro_protos import Message
from distro_traces.content import Replica, replica_from_sync
from distro_traces.event import STATE_KINDS, Event, Kind, Outcome
from distro_traces.ndjson import Recorder, read_ndjson

CLIENT = "1700000000000_10.0.0.9_40000"
FIRST = replica_from_sync(sync_data(CLIENT, 1, [("web", "10.0.0.9", 80)]))
SECOND = replica_from_sync(sync_data(CLIENT, 2, [("web", "10.0.0.9", 81)]))
OK = Message(DISTRO_RESPONSE, {"resultCode": 200, "errorCode": 0})


class Recording:
    """A journal of which the rows can be read back."""

    def __init__(self, directory: Path, *, infer_state: bool) -> None:
        self.recorder = Recorder(directory, "run", profile="nacos-2.2.4", target="test", nodes=("a", "b"))
        self.journal = TraceJournal(self.recorder, lambda: 7, infer_state=infer_state)

    def close(self) -> None:
        self.recorder.close()

    def call(self, operation: str, replica: Replica | None = None, reply: Message = OK) -> None:
        """One call from a to b, answered at once."""
        client = CLIENT if operation != "SNAPSHOT" else None
        call = DistroCall(operation, client, replica.revision if replica else None, replica)
        routed = RoutedCall(self.journal.new_id(), "a", "b", call)
        outcome = Outcome.SUCCESS if reply.succeeded else Outcome.FAIL
        self.journal.sent(routed)
        self.journal.received(routed)
        self.journal.replied(routed, outcome, reply)
        self.journal.ended(routed, outcome)

    @property
    def events(self) -> Sequence[Event]:
        return read_ndjson(self.recorder.path).events

    @property
    def states(self) -> list[tuple[str, Kind, int | None, str | None]]:
        return [(e.node, e.kind, e.revision, e.digest) for e in self.events if e.kind in STATE_KINDS]


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Recording]:
    """Of a server that reports nothing about itself."""
    with closing(Recording(tmp_path, infer_state=True)) as recording:
        yield recording


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Recording]:
    """Of a node whose observer reports its state."""
    with closing(Recording(tmp_path, infer_state=False)) as recording:
        yield recording


def test_a_call_is_four_rows_with_one_id_and_a_sequence_on_each_node(embedded: Recording) -> None:
    embedded.call("CHANGE", FIRST)
    assert [(e.node, e.seq, e.kind, e.peer, e.message) for e in embedded.events] == [
        ("a", 1, Kind.REQUEST_SENT, "b", "m1"),
        ("b", 1, Kind.REQUEST_RECEIVED, "a", "m1"),
        ("b", 2, Kind.REPLY_SENT, "a", "m1"),
        ("a", 2, Kind.REPLY_RECEIVED, "b", "m1"),
    ]


def test_an_acknowledged_change_is_held_from_then_on_under_an_unknown_revision(real: Recording) -> None:
    real.call("CHANGE", FIRST)
    assert real.states == [("b", Kind.REPLICA_APPLIED, None, FIRST.digest)]


def test_an_acknowledged_delete_removes(real: Recording) -> None:
    real.call("CHANGE", FIRST)
    real.call("DELETE")
    assert real.states[-1] == ("b", Kind.REPLICA_REMOVED, None, None)


@pytest.mark.parametrize(
    "body", [{"resultCode": 500, "errorCode": 500}, {"resultCode": 200, "errorCode": 500}], ids=["failed", "hidden"]
)
def test_a_change_that_was_not_handled_is_not_held(real: Recording, body: dict[str, int]) -> None:
    real.call("CHANGE", FIRST, Message(DISTRO_RESPONSE, body))
    assert real.states == []


def test_a_snapshot_is_held_by_the_node_that_asked(real: Recording) -> None:
    content = pack({"clientSyncDataList": [sync_data(CLIENT, 1, [("web", "10.0.0.9", 80)])]})
    real.call("SNAPSHOT", None, Message(DISTRO_RESPONSE, {**OK.body, "distroData": {"content": content}}))
    assert real.states == [("a", Kind.REPLICA_APPLIED, None, FIRST.digest)]
    assert real.events[-1].kind is Kind.REPLICA_APPLIED, "applied after the reply arrived"


def test_a_client_of_an_earlier_run_leaves_no_rows(real: Recording) -> None:
    """Its copies may outlive that run by a lease."""
    real.journal.is_of_run = lambda client: client != CLIENT
    content = pack({"clientSyncDataList": [sync_data(CLIENT, 1, [("web", "10.0.0.9", 80)])]})
    real.call("CHANGE", FIRST)
    real.call("SNAPSHOT", None, Message(DISTRO_RESPONSE, {**OK.body, "distroData": {"content": content}}))
    real.journal.observed("a", [FIRST, replace(FIRST, client="other")])
    assert [(e.kind, e.operation or e.client) for e in real.events] == [
        (Kind.REQUEST_SENT, "SNAPSHOT"),
        (Kind.REQUEST_RECEIVED, "SNAPSHOT"),
        (Kind.REPLY_SENT, "SNAPSHOT"),
        (Kind.REPLY_RECEIVED, "SNAPSHOT"),
        (Kind.OBSERVED, "other"),
    ]


def test_nothing_is_inferred_where_the_node_speaks_for_itself(embedded: Recording) -> None:
    embedded.call("CHANGE", FIRST)
    embedded.call("DELETE")
    assert embedded.states == []


def test_a_reading_shows_owners_and_missing_clients(real: Recording) -> None:
    real.journal.client_changed("a", CLIENT, FIRST.revision, FIRST.digest)
    real.journal.observed("a", [FIRST])
    real.journal.observed("b", [])
    assert [(e.node, e.owned, e.digest) for e in real.events if e.kind is Kind.OBSERVED] == [
        ("a", True, FIRST.digest),
        ("b", None, None),
    ]


def test_a_client_that_no_node_holds_any_more_is_not_missed(real: Recording) -> None:
    real.journal.client_changed("a", CLIENT, FIRST.revision, FIRST.digest)
    real.journal.client_disconnected("a", CLIENT)
    real.journal.observed("b", [])
    assert not [e for e in real.events if e.kind is Kind.OBSERVED]


def test_a_restarted_node_holds_nothing(real: Recording) -> None:
    real.journal.observed("b", [FIRST])
    real.journal.node_crashed("b")
    before = real.states
    real.journal.observed("b", [])
    assert real.states == before, "that it holds nothing is no news"


async def test_a_reading_that_a_change_overtook_is_made_again(real: Recording) -> None:
    readings = [FIRST, SECOND]

    async def overtaken() -> tuple[Replica, ...]:
        reading = readings.pop(0)
        if reading is FIRST:  # between the node's answer and its arrival the next change was acknowledged
            real.journal.replica_applied("b", CLIENT, None, SECOND.digest)
        return (reading,)

    await real.journal.probe("b", overtaken)
    assert [digest for *_, digest in real.states] == [SECOND.digest, SECOND.digest]


async def test_a_node_that_cannot_be_read_is_no_reading_and_no_silence(real: Recording) -> None:
    async def always_overtaken() -> tuple[Replica, ...]:
        real.journal.replica_applied("b", CLIENT, None, SECOND.digest)
        return (FIRST,)

    with pytest.raises(TargetError, match=f"b cannot be read: its state changed during each of {READINGS_MAX}"):
        await real.journal.probe("b", always_overtaken)
    assert FIRST.digest not in [digest for *_, digest in real.states]


@pytest.mark.wire
async def test_the_content_of_a_node_that_does_not_answer_is_unknown_and_not_empty() -> None:
    async with Connection.bare(f"127.0.0.1:{free_base_ports()[0]}") as connection:
        with pytest.raises(TargetError, match=r"127\.0\.0\.1:\d+ cannot be read: .*; is the node up\?"):
            await read_state(connection)
