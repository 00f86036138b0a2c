"""What `check` excuses, and what it must not: each known failure with its symptom, and near misses that are news.

All runs are checked in one job. A run's name says what it is; beside it stands what has to be known of its violations,
None for a violation that counts.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from engines import on_both
from pyspark.sql import SparkSession

from distro_spark.check import CHECKPOINT
from distro_spark.history import LEASE
from distro_spark.known import KNOWN
from distro_spark.result import CheckResult
from distro_traces.content import digest
from distro_traces.event import BATCH, Event, Kind, Outcome
from distro_traces.ndjson import Recorder

pytestmark = pytest.mark.spark

EMPTY = digest(())

STEP_MS = 100


class Told:
    """A run on a, b and c. Time passes by `after`, and `STEP_MS` before each row unless it says otherwise."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.at_ms = 0
        self.step_ms = STEP_MS
        self.is_over = False
        """Whether the story has told its last checkpoint itself."""
        for node in "abc":
            self.row(node, Kind.NODE_STARTED, detail="a,b,c")

    def after(self, ms: int) -> None:
        self.at_ms += ms

    def row(self, node: str, kind: Kind, **fields: object) -> Event:
        self.at_ms += self.step_ms
        return self.recorder.record(node, kind, at_ms=self.at_ms, **fields)  # type: ignore[arg-type]

    def connect(self, node: str = "a", client: str = "c1") -> None:
        self.row(node, Kind.CLIENT_CONNECTED, client=client, owned=True, revision=0, digest=EMPTY)

    def change(self, revision: int, content: str, node: str = "a", client: str = "c1") -> None:
        self.row(node, Kind.CLIENT_CHANGED, client=client, owned=True, revision=revision, digest=content)

    def apply(
        self, nodes: str, revision: int, content: str, message: str | None = None, *, owned: bool = False
    ) -> None:
        for node in nodes:
            self.row(
                node, Kind.REPLICA_APPLIED, client="c1", owned=owned, revision=revision, digest=content, message=message
            )

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
            self.row(node, Kind.CHECKPOINT, detail="1")

    def registered(self, revision: int = 1, content: str = "A") -> None:
        self.connect()
        self.change(revision, content)
        self.apply("bc", revision, content)


@dataclass(frozen=True)
class Case:
    profile: str
    tell: Callable[[Told], None]
    known: dict[str, list[str | None]] = field(default_factory=dict)
    """By invariant, for each of its violations."""
    target: str = ""
    """Whose nodes these are; empty: nobody else's."""


CASES: dict[str, Case] = {}


def case(
    profile: str, target: str = "", **known: list[str | None]
) -> Callable[[Callable[[Told], None]], Callable[[Told], None]]:
    def register(tell: Callable[[Told], None]) -> Callable[[Told], None]:
        bugs = {name.replace("_", "-"): bugs for name, bugs in known.items()}
        CASES[tell.__name__] = Case(profile, tell, bugs, target)
        return tell

    return register


# B10: the stamp of creation


@case("nacos-2.2.4", INV_REV=["B10", "B10"])
def a_copy_that_keeps_the_stamp_of_its_creation(run: Told) -> None:
    run.registered()
    run.change(2, "B")
    run.apply("bc", 1, "B")


def a_copy_that_took_over_one_revision_of_two(run: Told, *, batch: bool) -> None:
    run.registered()
    if batch:
        run.change(1, "B")  # not counted
    run.change(2, "C")
    run.send("b", "CHANGE", revision=2, digest="C")
    run.apply("bc", 2, "C")
    run.change(3, "D")
    run.apply("b", 2, "D")


@case("nacos-2.2.4", INV_REV=["B10", "B18"])
def a_copy_that_keeps_the_stamp_of_its_last_batch(run: Told) -> None:
    a_copy_that_took_over_one_revision_of_two(run, batch=True)


@case("nacos-2.2.4", INV_REV=[None])
def a_copy_that_takes_over_revisions_and_then_one_not(run: Told) -> None:
    a_copy_that_took_over_one_revision_of_two(run, batch=False)


def a_batch_and_a_change_that_are_applied_at_once(run: Told, detail: str | None) -> None:
    """The copy has the revision of the one, the content of the other (B05), and later CHANGEs keep the revision."""
    run.registered()
    run.change(2, "B")
    batch = run.arrives("CHANGE", revision=2, digest="B", detail=detail)
    run.change(3, "C")
    change = run.arrives("CHANGE", revision=3, digest="C")
    run.apply("b", 1, "C", message=change)
    run.apply("b", 2, "C", message=batch)
    run.answers("CHANGE", change)
    run.answers("CHANGE", batch)
    run.change(4, "D")
    last = run.arrives("CHANGE", revision=4, digest="D")
    run.apply("b", 2, "D", message=last)
    run.answers("CHANGE", last)
    run.apply("c", 1, "D")


@case("nacos-2.2.4", INV_REV=["B05", "B10", "B10", "B10"])
def a_copy_that_keeps_the_stamp_of_a_torn_batch(run: Told) -> None:
    a_batch_and_a_change_that_are_applied_at_once(run, BATCH)


@case("nacos-2.2.4", INV_REV=[None, "B05", "B10", "B10"])
def a_copy_that_keeps_the_stamp_of_a_torn_change(run: Told) -> None:
    a_batch_and_a_change_that_are_applied_at_once(run, None)


def sent_on(run: Told, node: str) -> None:
    call = {
        "message": run.recorder.new_message_id(),
        "operation": "CHANGE",
        "client": "c1",
        "revision": 1,
        "digest": "B",
    }
    run.row(node, Kind.REQUEST_SENT, peer="b", **call)
    run.row("b", Kind.REQUEST_RECEIVED, peer=node, **call)
    run.apply("b", 2, "B")


@case("nacos-2.2.4", INV_REV=["B10", "B10"])
def a_copy_that_is_sent_on_with_the_stamp_of_its_creation(run: Told) -> None:
    run.registered()
    run.change(2, "B")
    run.apply("c", 1, "B")
    sent_on(run, "c")


@case("nacos-2.2.4", INV_REV=[None, None, "B10"])
def an_owner_that_sends_a_later_content_under_the_stamp_of_a_copy(run: Told) -> None:
    run.registered()
    run.change(2, "B")
    run.apply("c", 1, "B")
    sent_on(run, "a")


@case("nacos-2.2.4", INV_REV=[None])
def an_old_content_under_a_new_stamp_though_it_comes_back_later(run: Told) -> None:
    """B05 with the contents A, B, A: the copy moved on with its stamp, then A of revision 1 was written over."""
    run.registered(1, "A")
    run.change(2, "B")
    run.apply("bc", 2, "B")
    run.apply("b", 2, "A")
    run.change(3, "A")
    run.apply("bc", 3, "A")


@case("nacos-2.2.4", INV_REV=[None])
def an_old_content_on_a_copy_that_was_created_late(run: Told) -> None:
    """Its stamp is that of its creation, but what came was older: the owner published A again only afterwards."""
    run.connect()
    run.change(1, "A")
    run.change(2, "B")
    run.apply("bc", 2, "B")
    run.apply("b", 2, "A")
    run.change(3, "A")


@case("nacos-2.2.4", INV_REV=[None])
def an_old_content_by_a_message_that_says_so(run: Told) -> None:
    run.connect()
    run.change(1, "A")
    old = run.send("b", "CHANGE", revision=1, digest="A")
    run.change(2, "B")
    run.apply("bc", 2, "B")
    run.change(3, "A")
    run.apply("b", 2, "A", old)


@case("nacos-2.3.2", INV_REV=[None, None])
def the_stamp_of_creation_where_it_was_repaired(run: Told) -> None:
    run.registered()
    run.change(2, "B")
    run.apply("bc", 1, "B")


def loads(run: Told, node: str, giver: str) -> str:
    call = {"operation": "SNAPSHOT", "message": run.recorder.new_message_id()}
    run.row(node, Kind.REQUEST_SENT, peer=giver, **call)
    run.row(node, Kind.REPLY_RECEIVED, peer=giver, **call, outcome=Outcome.SUCCESS)
    return call["message"]


@contextmanager
def at_one_instant(run: Told) -> Iterator[None]:
    """Rows of embedded nodes do not say which message brought a copy, only when it came."""
    run.step_ms = 0
    yield
    run.step_ms = STEP_MS


def an_old_copy_over_a_new_one(run: Told, message: str | None = None) -> None:
    """b was told of C before the content of B came; by a snapshot, where no message is said."""
    run.connect()
    run.change(1, "B")
    run.apply("c", 1, "B")
    run.change(2, "C")
    run.apply("bc", 2, "C")
    run.apply("b", 2, "B", message or loads(run, "b", "c"))


@case("nacos-2.2.4", INV_REV=["B10"], INV_CONV=["B10"])
def a_late_snapshot_under_the_stamp_of_a_newer_copy(run: Told) -> None:
    an_old_copy_over_a_new_one(run)


def an_empty_copy_over_a_new_one(run: Told, also_sent: str | None = None) -> None:
    """As embedded nodes record it, whose rows do not say which message brought them; c had missed the change."""
    run.connect()
    run.apply("c", 0, EMPTY)
    run.change(1, "B")
    run.send("b", "CHANGE", revision=1, digest="B")
    run.apply("b", 1, "B")
    with at_one_instant(run):
        if also_sent is None:
            loads(run, "b", "c")
        else:
            run.send("b", "CHANGE", revision=0, digest=also_sent)
        run.apply("b", 1, EMPTY)
    run.leave()
    run.removed("bc")


@case("nacos-2.2.4", INV_REV=["B10"])
def a_late_snapshot_of_which_no_row_tells(run: Told) -> None:
    an_empty_copy_over_a_new_one(run)


def an_earlier_copy_over_a_new_one(run: Told, told_before_start: bool) -> None:
    """b was told both contents, the one or both of them since it was started."""
    run.connect()
    run.change(1, "A")
    if told_before_start:
        run.send("b", "CHANGE", revision=1, digest="A")
        run.apply("b", 1, "A")
    run.row("b", Kind.NODE_STOPPED, detail="crash")
    run.row("b", Kind.NODE_STARTED, detail="a,b,c")
    run.apply("c", 1, "A")
    run.change(2, "B")
    run.send("b", "CHANGE", revision=2, digest="B")
    run.apply("b", 2, "B")
    with at_one_instant(run):
        loads(run, "b", "c")
        if not told_before_start:
            run.send("b", "CHANGE", revision=1, digest="A")
        run.apply("b", 2, "A")
    run.leave()
    run.removed("bc")


@case("nacos-2.2.4", INV_REV=["B10"])
def a_late_snapshot_with_what_was_told_to_the_node_before_it_started(run: Told) -> None:
    an_earlier_copy_over_a_new_one(run, told_before_start=True)


@case("nacos-2.2.4", INV_REV=["B10", "B10"])
def a_snapshot_of_who_took_a_late_one_over_a_newer_copy(run: Told) -> None:
    an_old_copy_over_a_new_one(run)
    run.row("c", Kind.NODE_STOPPED, detail="crash")
    run.row("c", Kind.NODE_STARTED, detail="a,b,c")
    run.apply("c", 2, "B", loads(run, "c", "b"))


@case("nacos-2.2.4", INV_REV=[None])
def a_snapshot_of_who_had_no_late_one(run: Told) -> None:
    run.connect()
    run.change(1, "B")
    run.change(2, "C")
    run.apply("c", 2, "C")
    run.apply("b", 2, "B", loads(run, "b", "c"))


@case("nacos-2.2.4", INV_REV=[None])
def a_late_change_of_which_its_arrival_tells_after_the_node_started(run: Told) -> None:
    an_earlier_copy_over_a_new_one(run, told_before_start=False)


@case("nacos-2.2.4", INV_REV=[None])
def a_late_change_of_which_only_its_arrival_tells(run: Told) -> None:
    an_empty_copy_over_a_new_one(run, also_sent=EMPTY)


@case("nacos-2.2.4", INV_REV=[None], INV_CONV=[None])
def a_late_change_under_the_stamp_of_a_newer_copy(run: Told) -> None:
    run.connect()
    run.change(1, "B")
    message = run.send("b", "CHANGE", revision=1, digest="B")
    an_old_copy_over_a_new_one(run, message)


@case("nacos-2.2.4", INV_REV=[None], INV_CONV=[None])
def a_late_snapshot_on_a_copy_that_moves_on(run: Told) -> None:
    """Its stamp is not the one that it was created with: it takes over revisions."""
    run.registered()
    run.change(2, "B")
    run.apply("c", 2, "B")
    run.change(3, "C")
    run.apply("bc", 3, "C")
    run.apply("b", 3, "B", loads(run, "b", "c"))


@case("nacos-2.2.4", INV_REV=["B10", "B18", "B18", "B18"], INV_CONV=["B10"])
def a_late_snapshot_under_the_stamp_that_came_with_a_batch(run: Told) -> None:
    run.connect()
    run.change(1, "A")
    run.change(1, "B")
    run.apply("bc", 1, "B")
    run.change(2, "C")
    run.send("b", "CHANGE", revision=2, digest="C")
    run.apply("bc", 2, "C")
    run.apply("b", 2, "A", loads(run, "b", "c"))


@case("nacos-2.3.2", INV_REV=[None], INV_CONV=[None])
def a_late_snapshot_under_a_newer_stamp_where_it_was_repaired(run: Told) -> None:
    an_old_copy_over_a_new_one(run)


# B05: a CHANGE that is applied in steps


def a_snapshot_of_c(run: Told, *, while_applied: bool) -> None:
    """b loads from c, to which a's first CHANGE comes; what c gives has the revision of that, and nothing in it."""
    run.connect()
    run.change(1, "A")
    change = {"message": "m1", "operation": "CHANGE", "client": "c1"}
    load = {"message": "m-load", "operation": "SNAPSHOT"}
    run.row("b", Kind.REQUEST_SENT, peer="c", **load)
    run.row("c", Kind.REQUEST_RECEIVED, peer="b", **load)
    if while_applied:
        run.row("c", Kind.REQUEST_RECEIVED, peer="a", **change, revision=1, digest="A")
    run.row("c", Kind.REPLY_SENT, peer="b", **load, outcome=Outcome.SUCCESS)
    if not while_applied:
        run.row("c", Kind.REQUEST_RECEIVED, peer="a", **change, revision=1, digest="A")
    run.apply("c", 1, "A", "m1")
    run.row("c", Kind.REPLY_SENT, peer="a", **change, outcome=Outcome.SUCCESS)
    run.row("b", Kind.REPLY_RECEIVED, peer="c", **load, outcome=Outcome.SUCCESS)
    run.apply("b", 1, EMPTY, "m-load")
    run.apply("b", 1, "A")


@case("nacos-2.3.2", INV_REV=["B05"])
def a_snapshot_that_is_made_while_a_change_is_applied(run: Told) -> None:
    a_snapshot_of_c(run, while_applied=True)


@case("nacos-2.3.2", INV_REV=[None])
def a_snapshot_that_is_made_before_a_change_came(run: Told) -> None:
    a_snapshot_of_c(run, while_applied=False)


def two_changes(run: Told, *, at_once: bool) -> None:
    """The second one leaves what the first one carried, under its own revision."""
    run.registered()
    run.change(2, "B")
    first = run.arrives("CHANGE", revision=2, digest="B")
    run.change(3, "C")
    run.apply("c", 3, "C")
    if at_once:
        second = run.arrives("CHANGE", revision=3, digest="C")
    run.apply("b", 2, "B", first)
    run.answers("CHANGE", first)
    if not at_once:
        second = run.arrives("CHANGE", revision=3, digest="C")
    run.apply("b", 3, "B", second)
    run.answers("CHANGE", second)


@case("nacos-2.5.1", INV_REV=["B05"], INV_CONV=["B05"])
def two_changes_that_are_applied_at_once(run: Told) -> None:
    two_changes(run, at_once=True)


@case("nacos-2.5.1", INV_REV=[None], INV_CONV=[None])
def two_changes_that_are_applied_one_after_the_other(run: Told) -> None:
    two_changes(run, at_once=False)


@case("nacos-2.5.1", INV_CONV=[None])
def a_change_that_is_lost_after_two_that_were_applied_at_once(run: Told) -> None:
    """What b holds is what the later one of them carried, so its steps were not mixed with those of the other."""
    run.registered()
    run.change(2, "B")
    first = run.arrives("CHANGE", revision=2, digest="B")
    second = run.arrives("CHANGE", revision=2, digest="B")
    run.apply("bc", 2, "B", second)
    run.answers("CHANGE", first)
    run.answers("CHANGE", second)
    run.change(3, "C")
    run.apply("c", 3, "C")


@case("nacos-2.5.1", INV_REV=[None], INV_CONV=[None])
def two_changes_of_which_neither_the_content_nor_the_answer_is_recorded(run: Told) -> None:
    """As in logs. That a call is not seen to end excuses nothing, and that it is not seen what it carried neither."""
    run.registered()
    for content in ("B", "X"):
        message = run.arrives("CHANGE")
        run.change(2, "B")
        run.apply("b", 2, content, message)
    run.apply("c", 2, "B")


@case("nacos-2.5.1", INV_REV=[None], INV_CONV=[None])
def two_changes_of_which_no_answer_is_recorded(run: Told) -> None:
    run.registered()
    run.change(2, "B")
    for content in ("B", "X"):
        message = run.arrives("CHANGE", revision=2, digest="B")
        run.apply("b", 2, content, message)
    run.apply("c", 2, "B")


@case("nacos-2.5.1", INV_REV=[None], INV_CONV=[None])
def two_changes_at_once_of_which_it_is_not_recorded_what_they_carried(run: Told) -> None:
    run.registered()
    run.change(2, "B")
    run.apply("c", 2, "B")
    first, second = run.arrives("CHANGE"), run.arrives("CHANGE")
    run.apply("b", 2, "X", second)
    run.answers("CHANGE", first)
    run.answers("CHANGE", second)


def a_message_behind_its_revision(run: Told, *, waits_ms: int) -> None:
    run.registered()
    run.change(2, "B")
    run.apply("c", 2, "B")
    run.after(waits_ms)
    message = run.send("b", "CHANGE", revision=2, digest="A")
    run.apply("b", 2, "A", message)


@case("nacos-2.5.1", INV_REV=["B05", "B05"], INV_CONV=["B05"])
def a_content_that_is_read_just_before_its_revision_is(run: Told) -> None:
    a_message_behind_its_revision(run, waits_ms=0)


@case("nacos-2.5.1", INV_REV=[None, None], INV_CONV=[None])
def an_old_content_that_is_sent_long_after_the_change(run: Told) -> None:
    a_message_behind_its_revision(run, waits_ms=2_000)


def a_change_and(operation: str, run: Told, *, at_once: bool, **content: object) -> None:
    """The CHANGE is not applied, and another call about the client comes before it is answered, or afterwards."""
    run.connect()
    run.change(1, "A")
    run.apply("c", 1, "A")
    change = run.arrives("CHANGE", revision=1, digest="A")
    if at_once:
        other = run.arrives(operation, **content)
        run.answers(operation, other)
    run.answers("CHANGE", change)
    if not at_once:
        other = run.arrives(operation, **content)
        run.answers(operation, other)


@case("nacos-2.5.1", INV_ACK=["B05"])
def a_delete_between_two_steps_of_a_change(run: Told) -> None:
    a_change_and("DELETE", run, at_once=True)


@case("nacos-2.5.1", INV_ACK=[None])
def a_delete_after_a_change_that_was_not_applied(run: Told) -> None:
    a_change_and("DELETE", run, at_once=False)


@case("nacos-2.5.1", INV_VERIFY=["B05"])
def a_verify_between_two_steps_of_a_change(run: Told) -> None:
    a_change_and("VERIFY", run, at_once=True, revision=1)


@case("nacos-2.5.1", INV_VERIFY=[None])
def a_verify_after_a_change_that_was_not_applied(run: Told) -> None:
    a_change_and("VERIFY", run, at_once=False, revision=1)


@case("nacos-2.5.1", INV_VERIFY=[None])
def a_verify_of_a_revision_that_the_change_between_does_not_bring(run: Told) -> None:
    a_change_and("VERIFY", run, at_once=True, revision=2)


# B24: a DELETE that the retry of a CHANGE replaced


@case("nacos-2.2.4", INV_CONV=["B24"])
def a_change_that_fails_before_the_delete_is_due(run: Told) -> None:
    run.registered()
    change = run.send("b", "CHANGE", None, revision=1, digest="A")
    run.leave()
    run.after(500)
    run.fails(change, "b")
    run.send("c", "DELETE")
    run.removed("c")


@case("nacos-2.5.1", INV_CONV=["B24"])
def the_same_in_a_release_that_no_target_is_of(run: Told) -> None:
    a_change_that_fails_before_the_delete_is_due(run)


def a_delete_that_failed_and(run: Told, *, change_fails_ms: int | None) -> None:
    run.registered()
    change = run.send("b", "CHANGE", None, revision=1, digest="A")
    run.leave()
    run.after(1_000)
    run.send("b", "DELETE", Outcome.FAIL)
    if change_fails_ms is not None:
        run.after(change_fails_ms)
        run.fails(change, "b")
    run.send("c", "DELETE")
    run.removed("c")


@case("nacos-2.2.4", INV_CONV=["B24"])
def a_change_that_fails_before_the_delete_is_due_again(run: Told) -> None:
    a_delete_that_failed_and(run, change_fails_ms=1_000)


@case("nacos-2.2.4", INV_CONV=[None])
def a_change_that_fails_long_after_the_delete_was_due_again(run: Told) -> None:
    a_delete_that_failed_and(run, change_fails_ms=5_000)


@case("nacos-2.2.4", INV_CONV=[None])
def a_delete_that_failed_and_is_not_sent_again(run: Told) -> None:
    a_delete_that_failed_and(run, change_fails_ms=None)


@case("nacos-2.2.4", INV_CONV=[None])
def a_change_that_fails_long_after_the_delete_was_due(run: Told) -> None:
    run.registered()
    change = run.send("b", "CHANGE", None, revision=1, digest="A")
    run.leave()
    run.after(2_000)
    run.fails(change, "b")
    run.send("c", "DELETE")
    run.removed("c")


def a_change_that_the_cut_link_shows_nothing_of(
    run: Told, *, cut: bool = True, owed: bool = True, faults: tuple[str, str] = ("cut", "healed")
) -> None:
    """As links are recorded: who has no connection sends nothing, and nobody sees that it failed."""
    run.registered()
    if not owed:
        run.send("b", "CHANGE", revision=1, digest="A")
        run.apply("b", 1, "A")
    if cut:
        run.row("a", Kind.LINK_FAULT, peer="b", detail=faults[0])
    if owed:
        run.change(2, "B")
        run.send("c", "CHANGE", revision=2, digest="B")
        run.apply("c", 2, "B")
    run.leave()
    if cut:
        run.row("a", Kind.LINK_FAULT, peer="b", detail=faults[1])
    run.after(500)
    run.send("c", "DELETE")
    run.removed("c")


@case("nacos-2.2.4", INV_CONV=["B24"], INV_DELETE=["B24"])
def a_change_that_is_owed_while_the_link_is_cut(run: Told) -> None:
    a_change_that_the_cut_link_shows_nothing_of(run)


@case("nacos-2.2.4", INV_CONV=["B24"], INV_DELETE=["B24"])
def a_change_that_is_owed_while_the_link_is_held(run: Told) -> None:
    a_change_that_the_cut_link_shows_nothing_of(run, faults=("held", "released"))


@case("nacos-2.2.4", INV_CONV=[None], INV_DELETE=[None])
def a_change_that_is_not_confirmed_over_a_sound_link(run: Told) -> None:
    a_change_that_the_cut_link_shows_nothing_of(run, cut=False)


@case("nacos-2.2.4", INV_CONV=[None], INV_DELETE=[None])
def a_cut_while_nothing_is_owed(run: Told) -> None:
    a_change_that_the_cut_link_shows_nothing_of(run, owed=False)


@case("nacos-2.2.4", INV_CONV=[None])
def a_node_that_never_sends_a_delete(run: Told) -> None:
    """One CHANGE happened to fail after the client had left; c is told by nobody either, and loses it otherwise."""
    run.registered()
    change = run.send("b", "CHANGE", None, revision=1, digest="A")
    run.leave()
    run.after(500)
    run.fails(change, "b")
    run.removed("c")


@case("nacos-2.2.4", target="one that sends DELETEs elsewhere", INV_CONV=["B24"])
def a_delete_swallowed_in_a_run_that_has_no_other(run: Told) -> None:
    a_node_that_never_sends_a_delete(run)


@case("nacos-2.2.4", target="one that sends DELETEs elsewhere")
def a_delete_in_another_run_of_the_same_nodes(run: Told) -> None:
    run.registered()
    run.leave()
    run.after(500)
    for peer in "bc":
        run.send(peer, "DELETE")
        run.removed(peer)


@case("nacos-2.2.4", INV_CONV=[None])
def a_verify_that_fails_after_the_client_left(run: Told) -> None:
    run.registered()
    verify = run.send("b", "VERIFY", None, revision=1)
    run.leave()
    run.after(500)
    run.fails(verify, "b", "VERIFY")
    run.send("c", "DELETE")
    run.removed("c")


# B17: a sync that renews nothing


@case("nacos-2.5.1", INV_LIVE=["B17"])
def a_copy_that_expires_though_a_change_has_just_come(run: Told) -> None:
    run.registered()
    run.after(170_000)
    run.change(2, "B")
    run.apply("bc", 2, "B")
    run.after(11_000)
    run.row("b", Kind.REPLICA_REMOVED, client="c1", detail="lease")


def a_copy_ends_between_two_rounds(run: Told, operation: str, checked_after_ms: int) -> None:
    run.registered()
    run.after(170_000)
    run.change(2, "B")
    run.send("b", operation, revision=2, digest="B")
    run.apply("bc", 2, "B")
    run.after(11_000)
    run.row("b", Kind.REPLICA_REMOVED, client="c1", detail="lease")
    run.after(checked_after_ms)
    run.checkpoint()
    run.is_over = True


@case("nacos-2.5.1", INV_CONV=["B17"])
def a_copy_that_the_next_round_brings_back(run: Told) -> None:
    a_copy_ends_between_two_rounds(run, "CHANGE", 1000)


@case("nacos-2.5.1", INV_CONV=[None])
def a_copy_that_no_round_brings_back(run: Told) -> None:
    a_copy_ends_between_two_rounds(run, "CHANGE", 20_000)


@case("nacos-2.5.1", INV_CONV=[None])
def a_copy_that_ends_though_it_was_verified(run: Told) -> None:
    a_copy_ends_between_two_rounds(run, "VERIFY", 1000)


@case("nacos-2.5.1", INV_LIVE=[None])
def a_copy_that_expires_though_it_is_new(run: Told) -> None:
    run.registered()
    run.after(31_000)
    run.row("b", Kind.REPLICA_REMOVED, client="c1", detail="lease")


# D7: a request by version 2 of the HTTP API


def changed_at_who_is_not_the_owner(run: Told, *, tells: bool = False, client: str = "10.0.0.1:80#true") -> None:
    run.change(1, "A", client=client)
    run.row("a", Kind.CLIENT_DISCONNECTED, client=client, owned=True)
    run.change(1, "B", node="b", client=client)
    if tells:
        about = {"message": run.recorder.new_message_id(), "operation": "CHANGE", "client": client}
        run.row("b", Kind.REQUEST_SENT, peer="c", **about, revision=1, digest="B")
        run.row("b", Kind.REPLY_RECEIVED, peer="c", **about, outcome=Outcome.SUCCESS)


@case("nacos-2.2.4", INV_CONV=["D7"])
def what_is_registered_by_version_2_where_it_stays(run: Told) -> None:
    changed_at_who_is_not_the_owner(run)


@case("nacos-2.1.2", INV_CONV=[None])
def the_same_before_there_was_a_version_2(run: Told) -> None:
    changed_at_who_is_not_the_owner(run)


@case("nacos-2.2.4", INV_CONV=[None])
def what_a_node_tells_others_of_and_one_never_hears(run: Told) -> None:
    changed_at_who_is_not_the_owner(run, tells=True)


@case("nacos-3.0.3", INV_CONV=[None])
def what_its_own_owner_by_hash_sends_to_no_node(run: Told) -> None:
    """Of the members a, b and c the hash names b."""
    changed_at_who_is_not_the_owner(run, client="10.0.0.2:80#true")


@case("nacos-2.2.4", INV_CONV=[None])
def the_same_of_a_client_with_a_connection(run: Told) -> None:
    changed_at_who_is_not_the_owner(run, client="c1")


# B19: a node that is never loaded


def leases_end_while_the_owner_waits(run: Told, *, again: bool = True, verifies: bool = False) -> None:
    run.registered()
    for number in range(1 + again):
        load = {"operation": "SNAPSHOT", "message": f"m-load-{number}"}
        run.row("a", Kind.REQUEST_SENT, peer="b", **load)
        run.row("a", Kind.REPLY_RECEIVED, peer="b", **load, outcome=Outcome.SUCCESS)
        run.after(60_000)
    if verifies:
        run.send("b", "VERIFY", revision=1)
    run.after(185_000)
    run.row("b", Kind.REPLICA_REMOVED, client="c1", detail="lease")


@case("nacos-2.1.1", INV_CONV=["B19"])
def a_copy_whose_owner_asks_for_snapshots_for_ever(run: Told) -> None:
    leases_end_while_the_owner_waits(run)


@case("nacos-2.3.1", INV_CONV=[None])
def a_copy_whose_owner_asks_for_ever_where_it_was_repaired(run: Told) -> None:
    leases_end_while_the_owner_waits(run)


@case("nacos-2.1.1", INV_CONV=[None])
def a_copy_whose_owner_was_loaded_and_verifies_nobody(run: Told) -> None:
    leases_end_while_the_owner_waits(run, again=False)


@case("nacos-2.1.2", INV_CONV=[None])
def a_copy_that_ends_though_its_owner_verified(run: Told) -> None:
    leases_end_while_the_owner_waits(run, verifies=True)


# B31: a lease of half a minute


@case("nacos-2.0.2", INV_LIVE=["B31"])
def a_copy_that_expires_after_half_a_minute(run: Told) -> None:
    run.registered()
    run.after(31_000)
    run.row("b", Kind.REPLICA_REMOVED, client="c1", detail="lease")


@case("nacos-2.0.2", INV_LIVE=["B31"])
def a_copy_that_expires_half_a_minute_after_a_verify_though_a_change_came(run: Told) -> None:
    run.registered()
    run.send("b", "VERIFY")
    run.after(10_000)
    run.apply("b", 2, "B")
    run.after(20_000)
    run.row("b", Kind.REPLICA_REMOVED, client="c1", detail="lease")


@case("nacos-2.0.2", INV_LIVE=[None])
def a_copy_that_expires_after_a_second(run: Told) -> None:
    run.registered()
    run.after(1_000)
    run.row("b", Kind.REPLICA_REMOVED, client="c1", detail="lease")


# B33: a snapshot before the load


@case("nacos-2.5.1", INV_INIT=["B33"])
def a_snapshot_from_a_node_that_waits_for_its_own(run: Told) -> None:
    call = {"operation": "SNAPSHOT", "message": "m1"}
    run.row("a", Kind.REQUEST_SENT, peer="b", **call)
    run.row("a", Kind.REPLY_SENT, peer="c", operation="SNAPSHOT", message="m2", outcome=Outcome.SUCCESS)
    run.row("a", Kind.REPLY_RECEIVED, peer="b", **call, outcome=Outcome.SUCCESS)


@case("nacos-2.5.1", INV_INIT=[None])
def a_verify_from_a_node_that_waits_for_its_snapshot(run: Told) -> None:
    call = {"operation": "SNAPSHOT", "message": "m1"}
    run.row("a", Kind.REQUEST_SENT, peer="b", **call)
    run.registered()
    run.send("b", "VERIFY", revision=1)
    run.row("a", Kind.REPLY_RECEIVED, peer="b", **call, outcome=Outcome.SUCCESS)


# B27: a snapshot that comes late


@case("nacos-2.2.4", INV_CONV=["B27"])
def an_owner_that_loads_late_what_has_left_it(run: Told) -> None:
    run.registered()
    run.leave()
    run.apply("a", 1, "A", loads(run, "a", "b"))
    for peer in "bc":
        run.send(peer, "DELETE")
    run.removed("bc")


@case("nacos-2.2.4", INV_CONV=["B27"])
def a_node_that_loads_late_what_it_was_told_has_left(run: Told) -> None:
    run.connect()
    run.change(1, "A")
    run.apply("b", 1, "A")
    run.leave()
    run.send("c", "DELETE")
    run.apply("c", 1, "A", loads(run, "c", "b"))
    run.send("b", "DELETE")
    run.removed("b")


@case("nacos-2.2.4", INV_CONV=["B27"])
def an_owner_that_does_not_say_that_it_loads_what_has_left_it(run: Told) -> None:
    """Rows of embedded nodes do not say which message brought a copy; it comes in the instant of the answer."""
    has_what_has_left_it(run, after_ms=0)


@case("nacos-2.2.4", INV_CONV=[None])
def an_owner_that_has_what_has_left_it_later_than_its_load(run: Told) -> None:
    has_what_has_left_it(run, after_ms=100)


@case("nacos-2.2.4", INV_CONV=[None])
def a_snapshot_from_a_node_that_had_confirmed_the_delete(run: Told) -> None:
    run.registered()
    run.leave()
    for peer in "bc":
        run.send(peer, "DELETE")
    run.removed("bc")
    run.after(60_000)
    run.apply("a", 1, "A", loads(run, "a", "b"))


def has_what_has_left_it(run: Told, after_ms: int) -> None:
    run.registered()
    run.leave()
    loads(run, "a", "b")
    run.at_ms += after_ms - STEP_MS
    run.apply("a", 1, "A")
    for peer in "bc":
        run.send(peer, "DELETE")
    run.removed("bc")


@case("nacos-2.2.4", INV_CONV=[None])
def a_node_that_is_told_what_has_left_after_it_has_loaded(run: Told) -> None:
    run.connect()
    run.change(1, "A")
    run.apply("b", 1, "A")
    run.leave()
    loads(run, "c", "b")
    run.send("c", "CHANGE", revision=1, digest="A")
    run.apply("c", 1, "A")
    run.send("b", "DELETE")
    run.removed("b")


@case("nacos-2.2.4", INV_CONV=[None])
def an_owner_that_takes_back_what_has_left_it_with_no_snapshot(run: Told) -> None:
    run.registered()
    run.leave()
    run.apply("a", 1, "A")
    for peer in "bc":
        run.send(peer, "DELETE")
    run.removed("bc")


@case("nacos-2.2.4", INV_CONV=[None])
def a_copy_that_came_with_a_snapshot_while_its_client_was_there(run: Told) -> None:
    run.connect()
    run.change(1, "A")
    run.apply("b", 1, "A")
    run.apply("c", 1, "A", loads(run, "c", "b"))
    run.leave()
    for peer in "bc":
        run.send(peer, "DELETE")
    run.removed("b")


@case("nacos-2.2.4", INV_CONV=[None])
def a_copy_that_stays_at_one_node_and_its_owner_is_started_anew_later(run: Told) -> None:
    """What the owner holds at the checkpoint is nothing, whatever becomes of it afterwards."""
    run.registered()
    run.leave()
    for peer in "bc":
        run.send(peer, "DELETE")
    run.removed("c")
    run.after(20_000)
    run.checkpoint()
    run.row("a", Kind.NODE_STOPPED, detail="crash")
    run.row("a", Kind.NODE_STARTED, detail="a,b,c")
    run.is_over = True


# B02: a verify that looks at nothing


@case("nacos-2.0.4", INV_CONV=["B02"])
def a_lost_change_that_a_verify_confirms(run: Told) -> None:
    run.registered(0)
    run.change(0, "B")
    run.send("b", "CHANGE", revision=0, digest="B")
    run.apply("c", 0, "B")
    run.send("b", "VERIFY", revision=0)


@case("nacos-2.0.4", INV_CONV=["B02"])
def a_lost_change_of_a_client_that_leaves_in_the_millisecond_of_the_checkpoint(run: Told) -> None:
    a_lost_change_that_a_verify_confirms(run)
    run.checkpoint()
    run.at_ms -= 200  # that of the checkpoint of b, which is later than that of a
    run.leave()
    run.is_over = True


def a_lost_change_to_nothing(run: Told) -> None:
    run.registered(0)
    run.send("b", "CHANGE", revision=0, digest="A")
    run.change(0, EMPTY)
    run.apply("c", 0, EMPTY)
    run.send("b", "VERIFY", revision=0)


@case("nacos-2.0.4", INV_CONV=["B02"])
def a_lost_change_of_a_client_that_publishes_nothing_any_more(run: Told) -> None:
    a_lost_change_to_nothing(run)


@case("nacos-2.0.4", INV_CONV=["B02"])
def a_lost_change_to_nothing_of_a_client_that_leaves_in_the_millisecond_of_the_checkpoint(run: Told) -> None:
    a_lost_change_to_nothing(run)
    run.checkpoint()
    run.at_ms -= 200
    run.leave()
    run.is_over = True


@case("nacos-2.0.4", INV_CONV=["B02"])
def a_lost_change_to_nothing_of_a_client_that_its_former_owner_lets_go(run: Told) -> None:
    a_lost_change_to_nothing(run)
    for node in "ac":
        run.row(node, Kind.REPLICA_REMOVED, client="c1", owned=False, detail=LEASE)


@case("nacos-2.0.4", INV_CONV=[None])
def a_client_that_has_left_and_is_held_though_a_verify_confirmed_it(run: Told) -> None:
    a_lost_change_to_nothing(run)
    run.leave()


@case("nacos-2.0.4", INV_CONV=[None])
def a_lost_change_that_no_verify_confirms(run: Told) -> None:
    run.registered(0)
    run.change(0, "B")
    run.send("b", "CHANGE", revision=0, digest="B")
    run.apply("c", 0, "B")


def a_change_while_b_is_listed(run: Told, members: str) -> None:
    run.registered(0)
    run.row("a", Kind.MEMBERS_CHANGED, detail=members)
    run.change(0, "B")
    run.apply("c", 0, "B")
    run.after(8_000)
    run.row("a", Kind.MEMBERS_CHANGED, detail="a,b,c")
    run.send("b", "VERIFY", revision=0)


@case("nacos-2.0.4", INV_CONV=["B02"])
def a_change_that_is_due_for_who_is_no_member_and_comes_back(run: Told) -> None:
    a_change_while_b_is_listed(run, "a,c")


@case("nacos-2.3.2", INV_CONV=[None])
def a_change_that_is_due_for_who_is_no_member_where_a_verify_asks_for_more(run: Told) -> None:
    a_change_while_b_is_listed(run, "a,c")


@case("nacos-2.0.4", INV_CONV=[None])
def a_change_that_is_due_for_who_is_a_member_and_is_never_sent(run: Told) -> None:
    a_change_while_b_is_listed(run, "a,b")


@case("nacos-2.0.4", INV_CONV=[None])
def a_change_that_was_never_sent(run: Told) -> None:
    run.registered(0)
    run.change(0, "B")
    run.apply("c", 0, "B")
    run.send("b", "VERIFY", revision=0)


@case("nacos-2.1.2", INV_CONV=[None])
def a_lost_change_that_a_verify_of_its_revision_confirms(run: Told) -> None:
    run.registered()
    run.change(2, "B")
    run.send("b", "CHANGE", revision=2, digest="B")
    run.apply("c", 2, "B")
    run.send("b", "VERIFY", revision=2)


# B10, B06: clients of the HTTP API, whose revision is a hash


def a_copy_of_a_hashed_client(run: Told, revision: int) -> None:
    """Its owner moves on to a smaller number, and the copy takes over the content only."""
    client = "10.0.1.1:80#true"
    run.connect(client=client)
    run.change(7, "A", client=client)
    run.row("b", Kind.REPLICA_APPLIED, client=client, owned=False, revision=7, digest="A")
    run.change(revision, "B", client=client)
    run.row("b", Kind.REPLICA_APPLIED, client=client, owned=False, revision=7, digest="B" if revision < 7 else "C")


@case("nacos-2.2.4", INV_REV=["B10"])
def a_copy_of_a_hashed_client_that_keeps_the_stamp_of_its_creation(run: Told) -> None:
    a_copy_of_a_hashed_client(run, -3)


@case("nacos-2.2.4", INV_REV=[None])
def a_copy_of_a_hashed_client_with_what_nobody_published(run: Told) -> None:
    a_copy_of_a_hashed_client(run, 9)


@case("nacos-2.3.2", INV_REV=[None])
def a_copy_of_a_hashed_client_that_keeps_its_stamp_where_that_was_repaired(run: Told) -> None:
    a_copy_of_a_hashed_client(run, -3)


def an_instance_that_falls_ill(run: Told, client: str, told: str = "B") -> None:
    run.connect(client=client)
    run.change(7, "A", client=client)
    run.change(7, "B", client=client)
    run.row("b", Kind.REPLICA_APPLIED, client=client, owned=False, revision=7, digest=told)


@case("nacos-2.3.2", INV_REV=["B06", "B06"])
def health_under_the_revision_of_the_registration(run: Told) -> None:
    an_instance_that_falls_ill(run, "10.0.1.1:80#true")


@case("nacos-2.3.2", INV_REV=[None, None])
def two_contents_of_a_connection_under_one_revision(run: Told) -> None:
    an_instance_that_falls_ill(run, "c1")


@case("nacos-2.3.2", INV_REV=[None, "B06"])
def a_content_that_no_owner_had_under_that_revision(run: Told) -> None:
    an_instance_that_falls_ill(run, "10.0.1.1:80#true", told="C")


@case("nacos-2.1.1")
def health_where_no_revision_travels(run: Told) -> None:
    an_instance_that_falls_ill(run, "10.0.1.1:80#true")


# B10, B06 as logs tell them: an owner does not say its revisions, a message says its own where it arrives


HASHED = "10.0.1.1:80#true"


def logged(run: Told, content: str, detail: str | None = None, kind: Kind = Kind.CLIENT_CHANGED) -> None:
    run.row("a", kind, client=HASHED, owned=True, digest=content, detail=detail)


def brought(run: Told, carried: int, revision: int | None, content: str) -> None:
    """A CHANGE of a to b, which has this revision and content afterwards."""
    call = {"message": run.recorder.new_message_id(), "operation": "CHANGE", "client": HASHED}
    run.row("a", Kind.REQUEST_SENT, peer="b", **call)
    run.row("b", Kind.REQUEST_RECEIVED, peer="a", revision=carried, **call)
    run.row(
        "b",
        Kind.REPLICA_APPLIED,
        client=HASHED,
        owned=False,
        revision=revision,
        digest=content,
        message=call["message"],
    )


def logs_of_a_change(run: Told, carried: int, came: str, *, read: bool = False) -> None:
    logged(run, "A")
    brought(run, 7, 7, "A")
    logged(run, "B")
    brought(run, carried, None if read else 7, came)
    if read:
        run.row("b", Kind.OBSERVED, client=HASHED, owned=False, revision=7, digest=came)


@case("nacos-2.2.4", INV_REV=["B10"])
def logs_of_a_copy_that_keeps_the_stamp_of_its_creation(run: Told) -> None:
    logs_of_a_change(run, 9, "B")


@case("nacos-2.2.4", INV_REV=["B10"])
def logs_of_a_copy_whose_stamp_a_failed_verify_tells(run: Told) -> None:
    logs_of_a_change(run, 9, "B", read=True)


@case("nacos-2.2.4", INV_REV=[None])
def logs_of_a_content_that_its_owner_did_not_have_when_it_sent_it(run: Told) -> None:
    logs_of_a_change(run, 9, "X")


@case("nacos-2.2.4", INV_REV=[None])
def logs_of_a_content_that_its_owner_did_not_have_and_a_failed_verify(run: Told) -> None:
    logs_of_a_change(run, 9, "X", read=True)


@case("nacos-2.2.4", INV_REV=[None])
def logs_of_another_content_by_a_message_of_the_same_revision(run: Told) -> None:
    logs_of_a_change(run, 7, "B")


def logs_of_an_expiry(run: Told, *, detail: str | None = "… in s expired", carried: int = 7, came: str = "B") -> None:
    logged(run, EMPTY, kind=Kind.CLIENT_CONNECTED)
    logged(run, "A")
    brought(run, 7, 7, "A")
    logged(run, "A", "… in s is unhealthy")
    logged(run, "B", detail)
    brought(run, carried, 7, came)


@case("nacos-2.3.2", INV_REV=["B06"])
def logs_of_an_expiry_that_is_sent_under_the_revision_of_before(run: Told) -> None:
    logs_of_an_expiry(run)


@case("nacos-2.3.2", INV_REV=["B06"])
def logs_of_two_expiries_that_are_sent_as_one(run: Told) -> None:
    logged(run, "A")
    brought(run, 7, 7, "A")
    logged(run, "B", "… in s expired")
    logged(run, EMPTY, "… in t expired")
    brought(run, 7, 7, EMPTY)


@case("nacos-2.3.2", INV_REV=[None])
def logs_of_a_withdrawal_that_is_sent_under_the_revision_of_before(run: Told) -> None:
    logs_of_an_expiry(run, detail=None)


@case("nacos-2.3.2", INV_REV=[None])
def logs_of_an_expiry_that_is_sent_under_another_revision(run: Told) -> None:
    logs_of_an_expiry(run, carried=9)


@case("nacos-2.3.2", INV_REV=[None])
def logs_of_an_expiry_after_which_a_copy_has_what_its_owner_never_had(run: Told) -> None:
    logs_of_an_expiry(run, came="X")


@case("nacos-2.3.2", INV_REV=[None])
def logs_of_an_expiry_after_a_withdrawal(run: Told) -> None:
    """That was the client's own, and should have moved the revision."""
    logged(run, "A")
    brought(run, 7, 7, "A")
    logged(run, "B")
    logged(run, EMPTY, "… in s expired")
    brought(run, 7, 7, EMPTY)


# B18: a batch that is not counted


def a_batch_that_one_member_misses(run: Told, revision: int = 1, detail: str | None = BATCH) -> None:
    run.registered()
    run.change(revision, "B")
    run.send("b", "CHANGE", revision=revision, digest="B", detail=detail)
    run.apply("c", revision, "B")
    run.send("b", "VERIFY", revision=revision)


@case("nacos-2.2.4", INV_CONV=["B18"], INV_REV=["B18", "B18", "B18"])
def a_batch_under_the_revision_of_what_it_replaced(run: Told) -> None:
    a_batch_that_one_member_misses(run)


@case("nacos-2.2.4", INV_REV=[None, None, None])
def a_change_that_is_not_counted_and_is_no_batch(run: Told) -> None:
    """As the message shows that carries it."""
    run.registered()
    run.change(1, "B")
    message = run.arrives("CHANGE", revision=1, digest="B")
    run.apply("b", 1, "B", message)
    run.answers("CHANGE", message)
    run.apply("c", 1, "B")


def a_first_batch_that_one_member_misses(run: Told) -> None:
    run.connect()
    run.apply("bc", 0, EMPTY)
    run.change(0, "B")
    run.send("b", "CHANGE", revision=0, digest="B", detail=BATCH)
    run.apply("c", 0, "B")


@case("nacos-2.2.4", INV_CONV=["B18"])
def a_first_batch_under_the_revision_of_nothing(run: Told) -> None:
    a_first_batch_that_one_member_misses(run)
    run.send("b", "VERIFY", revision=0)


@case("nacos-2.2.4", INV_CONV=[None])
def a_first_batch_and_a_copy_that_is_gone(run: Told) -> None:
    a_first_batch_that_one_member_misses(run)
    run.removed("b")


@case("nacos-2.2.4", INV_CONV=[None])
def a_batch_under_a_revision_of_its_own(run: Told) -> None:
    a_batch_that_one_member_misses(run, revision=2, detail=None)


@case("nacos-2.2.4", INV_CONV=[None])
def a_change_that_is_lost_after_a_batch_that_was_not_counted(run: Told) -> None:
    """b has neither of the two contents of that revision, but what came before them."""
    run.registered()
    run.change(2, "B")
    run.change(2, "C")
    run.apply("c", 2, "C")


@case("nacos-2.3.2", INV_CONV=[None])
def a_batch_that_is_not_counted_where_it_was_repaired(run: Told) -> None:
    a_batch_that_one_member_misses(run)


# B05 at the owner, which counts a change after it has made it


def a_change_that_is_sent_too_early(run: Told, then: str, after_ms: int = 0) -> None:
    run.registered()
    run.send("b", "CHANGE", revision=1, digest="B")
    run.after(after_ms)
    run.change(2, then)
    run.apply("bc", 2, then)


@case("nacos-2.2.4", INV_REV=["B05", "B05"])
def a_change_that_is_sent_before_it_is_counted(run: Told) -> None:
    a_change_that_is_sent_too_early(run, "B")


@case("nacos-2.2.4", INV_REV=[None, None])
def a_content_that_the_owner_never_held(run: Told) -> None:
    a_change_that_is_sent_too_early(run, "C")


@case("nacos-2.2.4", INV_REV=[None, None])
def a_content_that_the_owner_held_much_later(run: Told) -> None:
    a_change_that_is_sent_too_early(run, "B", after_ms=2_000)


# B19: a batch over a single instance


def a_change_that_is_acknowledged_and_left_out(run: Told, revision: int) -> None:
    run.registered()
    run.change(revision, "B")
    run.send("b", "CHANGE", revision=revision, digest="B")
    run.apply("c", revision, "B")


@case("nacos-2.2.4", INV_ACK=["B19"], INV_CONV=["B19"])
def a_batch_that_is_acknowledged_and_left_out(run: Told) -> None:
    a_change_that_is_acknowledged_and_left_out(run, 1)


@case("nacos-2.2.4", INV_ACK=["B19"], INV_CONV=["B19"])
def a_batch_that_keeps_what_comes_after_it_out_too(run: Told) -> None:
    run.registered()
    run.change(1, "B")
    run.apply("c", 1, "B")
    run.change(2, "C")
    run.send("b", "CHANGE", revision=2, digest="C")
    run.apply("c", 2, "C")


@case("nacos-2.2.4", INV_ACK=[None], INV_CONV=[None])
def a_counted_change_that_is_acknowledged_and_left_out(run: Told) -> None:
    a_change_that_is_acknowledged_and_left_out(run, 2)


@case("nacos-2.2.4", INV_ACK=[None])
def a_change_that_is_left_out_after_a_batch_that_was_not(run: Told) -> None:
    run.registered()
    run.change(1, "B")
    run.apply("bc", 1, "B")
    run.change(2, "C")
    run.send("b", "CHANGE", revision=2, digest="C")
    run.apply("c", 2, "C")


@case("nacos-2.3.2", INV_ACK=[None], INV_CONV=[None])
def a_batch_that_is_left_out_where_it_was_repaired(run: Told) -> None:
    a_change_that_is_acknowledged_and_left_out(run, 1)


def something_that_is_acknowledged_and_left_out(run: Told, **detail: str) -> None:
    run.registered()
    run.change(2, "B")
    run.send("b", "CHANGE", revision=2, digest="B", **detail)
    run.apply("c", 2, "B")


@case("nacos-2.3.0", INV_ACK=["B19"], INV_CONV=["B19"])
def a_counted_batch_that_is_left_out(run: Told) -> None:
    something_that_is_acknowledged_and_left_out(run, detail=BATCH)


@case("nacos-2.3.0", INV_ACK=[None], INV_CONV=[None])
def what_is_left_out_and_is_no_batch(run: Told) -> None:
    something_that_is_acknowledged_and_left_out(run)


@case("nacos-2.3.1", INV_ACK=[None], INV_CONV=[None])
def a_batch_that_is_left_out_by_who_can_take_it(run: Told) -> None:
    something_that_is_acknowledged_and_left_out(run, detail=BATCH)


@case("nacos-2.3.0", INV_CONV=[None])
def a_copy_that_is_older_than_what_was_left_out(run: Told) -> None:
    """It fell back later, and of that no batch can be the reason."""
    something_that_is_acknowledged_and_left_out(run, detail=BATCH)
    run.apply("b", 1, "O")


@case("nacos-2.2.4", INV_LIVE=["B17"])
def a_copy_that_was_loaded_twice_by_the_node_that_had_the_client_before_it_crashed(run: Told) -> None:
    run.registered()
    run.row("a", Kind.NODE_STOPPED, detail="crash")
    run.row("a", Kind.NODE_STARTED, detail="a,b,c")
    run.apply("a", 1, "A", "m1")
    run.after(60_000)
    run.apply("a", 1, "A", "m2")
    run.after(122_000)
    run.row("a", Kind.REPLICA_REMOVED, client="c1", detail="lease")


def kept_out_until_the_lease_ends(run: Told, *details: str | None) -> None:
    run.registered()
    run.change(2, "B")
    run.apply("c", 2, "B")
    run.after(170_000)
    for detail in details:
        run.send("b", "CHANGE", revision=2, digest="B", detail=detail)
        run.after(4_000)
    run.row("b", Kind.REPLICA_REMOVED, client="c1", detail="lease")


@case("nacos-2.3.0", INV_LIVE=["B19"])
def a_batch_that_is_kept_out_until_the_lease_ends(run: Told) -> None:
    kept_out_until_the_lease_ends(run, BATCH, BATCH, BATCH)


@case("nacos-2.3.0", INV_CONV=["B19"])
def a_copy_that_is_gone_since_batches_were_kept_out(run: Told) -> None:
    kept_out_until_the_lease_ends(run, BATCH, BATCH, BATCH)


@case("nacos-2.3.0", INV_CONV=[None])
def a_copy_that_is_gone_since_a_batch_and_something_else_were_kept_out(run: Told) -> None:
    kept_out_until_the_lease_ends(run, BATCH, None, BATCH)


@case("nacos-2.3.1", INV_CONV=[None])
def a_copy_that_is_gone_where_batches_can_be_taken(run: Told) -> None:
    kept_out_until_the_lease_ends(run, BATCH, BATCH, BATCH)


@case("nacos-2.3.0", INV_LIVE=[None])
def a_batch_and_something_else_that_are_kept_out(run: Told) -> None:
    kept_out_until_the_lease_ends(run, BATCH, None, BATCH)


@case("nacos-2.1.1", INV_LIVE=[None])
def a_batch_that_is_kept_out_where_any_copy_is_confirmed(run: Told) -> None:
    kept_out_until_the_lease_ends(run, BATCH, BATCH, BATCH)


# What is about revisions says nothing of releases that have none


def sent_twice(run: Told) -> None:
    run.registered()
    for _ in range(2):
        run.send("b", "CHANGE", revision=1, digest="A")


@case("nacos-2.3.2", INV_AIM=[None])
def a_content_that_is_sent_again_though_it_was_confirmed(run: Told) -> None:
    sent_twice(run)


@case("nacos-2.0.4", INV_AIM=[])
def a_content_that_is_sent_again_where_one_revision_stands_for_all(run: Told) -> None:
    sent_twice(run)


# B01: a message applied to a client of one's own


@case("nacos-2.5.1", INV_REV=["B01", "B01", "B01"])
def a_revision_used_twice_after_a_snapshot_took_the_client_back(run: Told) -> None:
    run.registered()
    run.change(2, "B")
    run.apply("a", 1, "A", owned=True)
    run.change(2, "C")
    run.apply("bc", 2, "C")


@case("nacos-2.5.1", INV_REV=[None])
def a_revision_used_twice_by_an_owner_that_nobody_touched(run: Told) -> None:
    run.registered()
    run.change(2, "B")
    run.change(2, "C")


@case("nacos-2.5.1", INV_REV=[None])
def a_revision_used_twice_before_the_snapshot_came(run: Told) -> None:
    run.registered()
    run.change(2, "B")
    run.change(2, "C")
    run.apply("bc", 2, "B")
    run.apply("a", 2, "B", owned=True)


def an_owner_that_takes_the_content_of_before(run: Told, revision: int, *, is_verified: bool = True) -> None:
    """By a snapshot, and what it sends of that b acknowledges without having got it."""
    run.registered()
    run.change(2, "B")
    run.apply("bc", 2, "B")
    run.apply("a", revision, "A", owned=True)
    run.apply("c", revision, "A")
    run.send("b", "CHANGE", revision=revision, digest="A")
    if is_verified:
        run.send("b", "VERIFY", revision=revision)


@case("nacos-2.5.1", INV_CONV=["B01"])
def a_copy_that_is_confirmed_since_its_owner_took_another_under_the_same_revision(run: Told) -> None:
    an_owner_that_takes_the_content_of_before(run, revision=2)


@case("nacos-2.5.1", INV_CONV=[None])
def a_copy_that_is_confirmed_although_its_owner_took_another_revision(run: Told) -> None:
    an_owner_that_takes_the_content_of_before(run, revision=1)


@case("nacos-2.5.1", INV_CONV=[None])
def a_copy_that_nobody_verified_since_its_owner_took_another(run: Told) -> None:
    an_owner_that_takes_the_content_of_before(run, revision=2, is_verified=False)


def silent_for_a_minute(run: Told) -> None:
    run.registered()
    run.row("a", Kind.LINK_FAULT, client="c1", detail="silent")
    run.after(60_000)
    run.checkpoint()


@case("nacos-2.2.4", INV_SILENT=["B03"])
def a_silent_client_that_is_never_asked(run: Told) -> None:
    silent_for_a_minute(run)


@case("nacos-2.3.2", INV_SILENT=[None])
def a_silent_client_that_is_never_asked_where_it_was_repaired(run: Told) -> None:
    silent_for_a_minute(run)


@case("strict", INV_REV=[None, None])
def what_is_known_of_releases_is_news_in_strict(run: Told) -> None:
    run.registered()
    run.change(2, "B")
    run.apply("bc", 1, "B")


@pytest.fixture(scope="module")
def result(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> CheckResult:
    directory: Path = tmp_path_factory.mktemp("known")
    for name, told in CASES.items():
        with Recorder(directory, name, profile=told.profile, target=told.target or name, nodes="abc") as recorder:
            run = Told(recorder)
            told.tell(run)
            if not run.is_over:
                run.after(20_000)
                run.checkpoint()
    return on_both(spark, directory)


def test_only_what_has_the_symptom_is_excused(result: CheckResult) -> None:
    found: dict[tuple[str, str], list[str | None]] = {}
    for violation in result.violations:
        found.setdefault((violation.run, violation.invariant), []).append(violation.known)
    expected = {(name, invariant): bugs for name, case in CASES.items() for invariant, bugs in case.known.items()}
    assert {key: found.get(key, []) for key in expected} == expected


def test_every_entry_is_seen_to_excuse_and_to_refuse() -> None:
    excused = {bug for told in CASES.values() for bugs in told.known.values() for bug in bugs if bug}
    assert excused == {failure.bug for failure in KNOWN}


def recorded(directory: Path, run: str, profile: str, tell: Callable[[Told], None], *, checkpoint: bool = True) -> None:
    with Recorder(directory, run, profile=profile, target="told", nodes="abc") as recorder:
        told = Told(recorder)
        tell(told)
        told.after(20_000)
        if checkpoint:
            told.checkpoint()


@pytest.fixture
def diverged_beside_healthy(tmp_path: Path) -> Path:
    def diverged(run: Told) -> None:
        run.registered()
        run.change(2, "B")
        run.apply("b", 2, "B")

    recorded(tmp_path, "healthy", "strict", Told.registered)
    recorded(tmp_path, "diverged", "strict", diverged, checkpoint=False)
    return tmp_path


def test_a_run_without_a_checkpoint_is_not_judged_by_its_neighbour(
    spark: SparkSession, diverged_beside_healthy: Path
) -> None:
    result = on_both(spark, diverged_beside_healthy)
    assert result.verdict == "inconclusive"
    (reason,) = result.reasons
    assert reason.startswith("INV-CONV, ")
    assert reason.endswith(f" cannot be judged: 1 of 2 runs, diverged for one, have no checkpoint ({CHECKPOINT})")
    verdicts = {each.name: each.verdict for each in result.invariants}
    assert (verdicts["INV-CONV"], verdicts["INV-OWNER"]) == ("not-judged", "conforms")


def test_what_a_release_does_not_have_is_not_applicable_and_no_pass(spark: SparkSession, tmp_path: Path) -> None:
    recorded(tmp_path, "old", "nacos-2.0.4", lambda run: run.registered(0))
    result = on_both(spark, tmp_path)
    assert {each.name: each.verdict for each in result.invariants}["INV-REV"] == "not-applicable"
    assert result.verdict == "conforms"
