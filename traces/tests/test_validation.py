"""A trace against the model: traces of its rules are accepted, one wrong row is found, with guard and minimal trace.

The traces are written by hand here, and recorded by `simulate`; `bench/validate.py` alters them by the thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from partly import WITHOUT, as_observed, numbered

from distro_conformance.simulation.run import SimulationOptions, simulate
from distro_model.profiles import profile_named
from distro_model.simulation.faults import faults_named
from distro_traces.content import digest
from distro_traces.event import Event, Kind, Outcome
from distro_traces.invalid import doubled, missing
from distro_traces.ndjson import Recorder, TraceFile, read_ndjson
from distro_traces.observed import EVERYTHING, INFERRED, Observed
from distro_traces.reading import read_run
from distro_validation.client import BY_BEATS, FIRST, NO_STATE, TO_UNJUDGED, UNSAID
from distro_validation.minimal import minimal
from distro_validation.validate import Slices, Validated, validate

NOTHING = digest(())
Change = Callable[[Event], Event | None]


def recorded(directory: Path, observed: Observed | None = None) -> TraceFile:
    """c1 registers at a; b receives it, receives a VERIFY, and removes it when it ends."""
    options = {} if observed is None else {"observed": observed}
    with Recorder(directory, "r", profile="strict", target="test", nodes=["a", "b"], **options) as recorder:  # type: ignore[arg-type]

        def call(at_ms: int, message: str, operation: str, effect: Kind | None, **content: object) -> None:
            asked = {"message": message, "operation": operation, "client": "c1"}
            recorder.record("a", Kind.REQUEST_SENT, at_ms=at_ms, peer="b", **asked, **content)  # type: ignore[arg-type]
            recorder.record("b", Kind.REQUEST_RECEIVED, at_ms=at_ms, peer="a", **asked, **content)  # type: ignore[arg-type]
            if effect is Kind.REPLICA_APPLIED:
                recorder.record("b", effect, at_ms=at_ms, client="c1", owned=False, message=message, **content)  # type: ignore[arg-type]
            elif effect is not None:
                recorder.record("b", effect, at_ms=at_ms, client="c1", message=message)
            recorder.record("b", Kind.REPLY_SENT, at_ms=at_ms, peer="a", outcome=Outcome.SUCCESS, **asked)  # type: ignore[arg-type]
            recorder.record("a", Kind.REPLY_RECEIVED, at_ms=at_ms, peer="b", outcome=Outcome.SUCCESS, **asked)  # type: ignore[arg-type]

        for node in "ab":
            recorder.record(node, Kind.NODE_STARTED, at_ms=0, detail="a,b")
        recorder.record("a", Kind.CLIENT_CONNECTED, at_ms=10, client="c1", owned=True, revision=0, digest=NOTHING)
        recorder.record("a", Kind.CLIENT_CHANGED, at_ms=20, client="c1", owned=True, revision=1, digest="d1")
        call(1_000, "m1", "CHANGE", Kind.REPLICA_APPLIED, revision=1, digest="d1")
        call(5_000, "m2", "VERIFY", None, revision=1)
        recorder.record("a", Kind.CLIENT_DISCONNECTED, at_ms=6_000, client="c1", owned=True)
        call(7_000, "m3", "DELETE", Kind.REPLICA_REMOVED)
    return read_ndjson(recorder.path)


def accepts(trace: TraceFile, rows: Iterable[Event], profile: str) -> bool:
    return not list(Slices(trace.header, profile_named(profile)).rejections(rows))


def judged(trace: TraceFile, change: Change = lambda event: event) -> Validated:
    """The trace with each row changed, or left out and the rest renumbered."""
    rows = numbered(event for event in map(change, trace.events) if event is not None)
    return validate(trace.header, rows, profile_named("strict"))


def at(kind: Kind, operation: str | None, change: Change) -> Change:
    """Only the rows of that kind and operation."""
    return lambda event: change(event) if (event.kind, event.operation) == (kind, operation) else event


def test_a_trace_that_the_rules_allow_is_accepted(tmp_path: Path) -> None:
    result = judged(recorded(tmp_path))
    assert (result.accepted, result.undecided, result.events) == (True, 0, 19)


DROP: Change = lambda _: None  # noqa: E731
FAIL: Change = lambda event: replace(event, outcome=Outcome.FAIL)  # noqa: E731


@pytest.mark.parametrize(
    ("change", "transition", "guard"),
    [
        (at(Kind.REPLICA_APPLIED, None, lambda e: replace(e, revision=2)), "apply a request", "this is its revision"),
        (at(Kind.REPLICA_APPLIED, None, lambda e: replace(e, digest="d2")), "apply a request", "this is its content"),
        (at(Kind.REPLICA_APPLIED, None, lambda e: replace(e, owned=True)), "apply a request", "it is native"),
        (at(Kind.REPLICA_APPLIED, None, DROP), "answer", "what a request made is reported before"),
        (at(Kind.REPLICA_REMOVED, None, DROP), "answer", "what a request made is reported before"),
        (at(Kind.CLIENT_CHANGED, None, lambda e: replace(e, revision=2)), "register", "this is its revision"),
        (at(Kind.CLIENT_CHANGED, None, DROP), "send CHANGE", "it is the owner, and sends what it holds"),
        (at(Kind.CLIENT_DISCONNECTED, None, DROP), "send DELETE", "the client is gone here"),
        (at(Kind.CLIENT_DISCONNECTED, None, lambda e: replace(e, owned=False)), "disconnect", "it is native"),
        (at(Kind.REPLY_SENT, "VERIFY", FAIL), "answer", "it is what the model answers"),
        (at(Kind.REPLY_RECEIVED, "CHANGE", FAIL), "receive the answer", "it is the outcome of the answer"),
        (at(Kind.REQUEST_SENT, "VERIFY", DROP), "receive", "it was sent"),
        (at(Kind.REQUEST_RECEIVED, "CHANGE", lambda e: replace(e, revision=3)), "receive", "it arrives as it was sent"),
        (at(Kind.REQUEST_RECEIVED, "DELETE", DROP), "apply a request", "a request for it was received here"),
    ],
)  # fmt: skip
def test_one_wrong_row_is_found_with_the_guard_that_was_false(
    tmp_path: Path, change: Change, transition: str, guard: str
) -> None:
    result = judged(recorded(tmp_path), change)
    assert result.rejection is not None
    assert (transition, guard) in result.rejection.guards


@pytest.mark.parametrize(("profile", "is_accepted"), [("nacos-2.2.4", True), ("nacos-2.3.2", False)])
def test_a_change_that_is_not_counted_may_have_been_a_batch_of_a_release_that_counts_none(
    tmp_path: Path, profile: str, is_accepted: bool
) -> None:
    with Recorder(tmp_path, "r", profile=profile, target="test", nodes=["a"]) as recorder:
        recorder.record("a", Kind.NODE_STARTED, at_ms=0, detail="a")
        recorder.record("a", Kind.CLIENT_CONNECTED, at_ms=10, client="c1", owned=True, revision=0, digest=NOTHING)
        for revision, content in ((1, "d1"), (1, "d2"), (2, "d3")):
            row = {"client": "c1", "owned": True, "revision": revision, "digest": content}
            recorder.record("a", Kind.CLIENT_CHANGED, at_ms=20, **row)  # type: ignore[arg-type]
    trace = read_ndjson(recorder.path)
    found = validate(trace.header, trace.events, profile_named(profile))
    assert found.accepted is is_accepted
    assert found.rejection is None or found.rejection.event.digest == "d2"


@pytest.mark.parametrize(
    ("profile", "read", "is_accepted"),
    [("nacos-2.0.4", 0, True), ("nacos-2.0.4", 2, False), ("nacos-2.3.2", 0, False)],
)
def test_a_reading_of_a_release_whose_revisions_do_not_travel_has_none(
    tmp_path: Path, profile: str, read: int, is_accepted: bool
) -> None:
    """The snapshot of a real server is all that a recording reads of it."""
    trace = recorded(tmp_path)
    rows = numbered([*trace.events[:3], replace(trace.events[3], revision=read)])
    assert accepts(trace, rows, profile) is is_accepted


@pytest.mark.parametrize(
    ("profile", "detail", "applied", "is_accepted"),
    [
        ("nacos-2.2.4", "batch", {"revision": 2, "digest": "d2"}, True),  # beside the instance that b has
        ("nacos-2.2.4", "batch", {"revision": 1, "digest": "d2"}, False),  # what holds a batch brings its revision
        ("nacos-2.2.4", "batch", None, True),  # in place of that instance (B19)
        ("nacos-2.2.4", None, {"revision": 2, "digest": "d2"}, False),  # B10
        ("nacos-2.2.4", None, {"revision": 1, "digest": "d2"}, True),
        ("nacos-2.2.4", None, None, False),
        ("nacos-2.3.2", "batch", {"revision": 2, "digest": "d2"}, True),
        ("nacos-2.3.2", "batch", None, False),
    ],
)
def test_a_batch_may_come_beside_an_instance_or_in_its_place(
    tmp_path: Path, profile: str, detail: str | None, applied: dict[str, object] | None, is_accepted: bool
) -> None:
    """b has d1 and is sent d2."""
    with Recorder(tmp_path, "r", profile=profile, target="test", nodes=["a", "b"]) as recorder:

        def sent(at_ms: int, message: str, revision: int, content: str, detail: str | None) -> None:
            asked = {"message": message, "operation": "CHANGE", "client": "c1"}
            row = {**asked, "revision": revision, "digest": content, "detail": detail}
            recorder.record("a", Kind.REQUEST_SENT, at_ms=at_ms, peer="b", **row)  # type: ignore[arg-type]
            recorder.record("b", Kind.REQUEST_RECEIVED, at_ms=at_ms, peer="a", **row)  # type: ignore[arg-type]

        def answered(at_ms: int, message: str, applied: dict[str, object] | None) -> None:
            asked = {"message": message, "client": "c1"}
            if applied is not None:
                recorder.record("b", Kind.REPLICA_APPLIED, at_ms=at_ms, owned=False, **asked, **applied)  # type: ignore[arg-type]
            reply = {**asked, "operation": "CHANGE", "outcome": Outcome.SUCCESS}
            recorder.record("b", Kind.REPLY_SENT, at_ms=at_ms, peer="a", **reply)  # type: ignore[arg-type]
            recorder.record("a", Kind.REPLY_RECEIVED, at_ms=at_ms, peer="b", **reply)  # type: ignore[arg-type]

        for node in "ab":
            recorder.record(node, Kind.NODE_STARTED, at_ms=0, detail="a,b")
        own = {"client": "c1", "owned": True}
        recorder.record("a", Kind.CLIENT_CONNECTED, at_ms=10, revision=0, digest=NOTHING, **own)  # type: ignore[arg-type]
        recorder.record("a", Kind.CLIENT_CHANGED, at_ms=20, revision=1, digest="d1", **own)  # type: ignore[arg-type]
        sent(1_000, "m1", 1, "d1", None)
        answered(1_000, "m1", {"revision": 1, "digest": "d1"})
        recorder.record("a", Kind.CLIENT_CHANGED, at_ms=2_000, revision=2, digest="d2", **own)  # type: ignore[arg-type]
        sent(3_000, "m2", 2, "d2", detail)
        answered(3_000, "m2", applied)
    trace = read_ndjson(recorder.path)
    assert validate(trace.header, trace.events, profile_named(profile)).accepted is is_accepted


@pytest.mark.parametrize(
    ("profile", "is_applied", "is_accepted"),
    [("nacos-2.3.2", False, True), ("nacos-2.3.2", True, False), ("strict", False, False)],
)
def test_a_verify_may_come_between_the_steps_in_which_a_release_applies_a_change(
    tmp_path: Path, profile: str, is_applied: bool, is_accepted: bool
) -> None:
    """B05: the verify fails although the CHANGE that it would confirm has arrived, until that is applied."""
    trace = recorded(tmp_path)
    change, verify = ([e for e in trace.events if e.message == message] for message in ("m1", "m2"))
    sent, received, applied, *answers = change
    asked, arrived, *failed = map(FAIL, verify)
    asked, arrived = (replace(each, outcome=None) for each in (asked, arrived))
    begun = [sent, received, applied] if is_applied else [sent, received]
    rest = answers if is_applied else [applied, *answers]
    rows = [*trace.events[:4], *begun, asked, arrived, *failed, *rest]
    at_once = numbered(replace(row, at_ms=1_000) if row.message else row for row in rows)
    assert validate(trace.header, at_once, profile_named(profile)).accepted is is_accepted


def test_missing_or_duplicate_rows_are_reported_and_reject_nothing(tmp_path: Path) -> None:
    trace = recorded(tmp_path)
    for gone in range(2, len(trace.events)):
        rows = [*trace.events[:gone], *trace.events[gone + 1 :], trace.events[0], trace.events[1]]
        result = validate(trace.header, rows, profile_named("strict"))
        is_last = trace.events[gone].seq == max(e.seq for e in trace.events if e.node == trace.events[gone].node)
        gap = () if is_last else (missing(1),)
        if not is_last:  # a recording may end anywhere, but what its last row would have said is judged
            assert result.rejection is None, trace.events[gone]
        assert result.doubts == (*gap, doubled(2))


def test_a_row_that_is_wrong_is_rejected_although_others_are_missing(tmp_path: Path) -> None:
    """The first rows of a and b are missing, and a reply arrives that no node sent."""
    trace = recorded(tmp_path)
    wrong = at(Kind.REQUEST_RECEIVED, "CHANGE", lambda event: replace(event, revision=3))
    rows = [wrong(event) for event in trace.events[2:]]
    result = validate(trace.header, [row for row in rows if row is not None], profile_named("strict"))
    assert result.rejection is not None
    assert result.rejection.guards == {("receive", "it arrives as it was sent")}
    assert result.doubts == (missing(2),)


@pytest.mark.parametrize(
    ("starts", "at_ms", "is_accepted"), [(False, 11_000, True), (False, 90_000, False), (True, 11_000, False)]
)
def test_a_call_may_be_older_than_the_rows_of_a_node_that_did_not_start_in_them(
    tmp_path: Path, starts: bool, at_ms: int, is_accepted: bool
) -> None:
    with Recorder(tmp_path, "r", profile="strict", target="test", nodes=["a", "b"]) as recorder:
        recorder.record("a", Kind.NODE_STARTED if starts else Kind.LINK_FAULT, at_ms=0, peer="b", detail="cut")
        call = {"message": "m1", "operation": "SNAPSHOT", "outcome": Outcome.UNREACHABLE}
        recorder.record("a", Kind.REPLY_RECEIVED, at_ms=at_ms, peer="b", **call)  # type: ignore[arg-type]
    assert judged(read_ndjson(recorder.path)).accepted == is_accepted


@pytest.mark.parametrize(("kind", "is_accepted"), [(Kind.MEMBERS_CHANGED, True), (Kind.CHECKPOINT, False)])
def test_the_list_of_a_node_that_is_down_may_change(tmp_path: Path, kind: Kind, is_accepted: bool) -> None:
    with Recorder(tmp_path, "r", profile="strict", target="test", nodes=["a", "b"]) as recorder:
        for row in (Kind.NODE_STARTED, Kind.NODE_STOPPED, kind, Kind.NODE_STARTED):
            recorder.record("a", row, at_ms=0, detail="a,b")
    assert judged(read_ndjson(recorder.path)).accepted is is_accepted


@pytest.mark.parametrize(("fault", "is_accepted"), [("refusing", True), ("cut", False)])
def test_a_link_that_refuses_answers_in_the_place_of_its_node(tmp_path: Path, fault: str, is_accepted: bool) -> None:
    with Recorder(tmp_path, "r", profile="strict", target="test", nodes=["a", "b"]) as recorder:
        for node in "ab":
            recorder.record(node, Kind.NODE_STARTED, at_ms=0, detail="a,b")
        recorder.record("a", Kind.LINK_FAULT, at_ms=5, peer="b", detail=fault)
        recorder.record("a", Kind.CLIENT_CONNECTED, at_ms=10, client="c1", owned=True, revision=0, digest=NOTHING)
        asked = {"message": "m1", "operation": "VERIFY", "client": "c1"}
        recorder.record("a", Kind.REQUEST_SENT, at_ms=5_000, peer="b", revision=0, **asked)  # type: ignore[arg-type]
        fails = {**asked, "outcome": Outcome.FAIL}
        recorder.record("a", Kind.REPLY_RECEIVED, at_ms=5_000, peer="b", **fails)  # type: ignore[arg-type]
    assert judged(read_ndjson(recorder.path)).accepted == is_accepted


def test_no_row_of_the_minimal_trace_can_be_left_out(tmp_path: Path) -> None:
    trace = recorded(tmp_path)
    wrong = at(Kind.REPLY_SENT, "VERIFY", FAIL)
    found = judged(trace, wrong).rejection
    assert found is not None
    assert [(event.kind, event.message) for event in found.minimal] == [
        (Kind.REPLICA_APPLIED, "m1"),
        (Kind.REQUEST_SENT, "m2"),
        (Kind.REQUEST_RECEIVED, "m2"),
        (Kind.REPLY_SENT, "m2"),
    ]


def test_delta_debugging_ends_at_the_needed_rows() -> None:
    rows = [Event(run="r", node="a", seq=n, at_ms=0, kind=Kind.CHECKPOINT) for n in range(1, 40)]

    def still(part: Sequence[Event]) -> bool:
        return {3, 17, 38} <= {event.seq for event in part}

    assert [event.seq for event in minimal(rows, still)] == [3, 17, 38]


def test_answers_of_an_unobserved_node_are_judged_by_its_received_requests(tmp_path: Path) -> None:
    whole = recorded(tmp_path, Observed(reported=()))
    calls = replace(whole, events=tuple(event for event in whole.events if event.operation or event.client is None))
    result = judged(calls)
    assert (result.rejection, result.undecided > 0) == (None, True)
    rejection = judged(calls, at(Kind.REPLY_SENT, "VERIFY", FAIL)).rejection
    assert rejection is not None
    assert rejection.guards == {("answer", "it is what the model answers")}


def test_logs_may_record_the_content_of_a_message_at_one_end_only(tmp_path: Path) -> None:
    unsaid = at(Kind.REQUEST_SENT, "CHANGE", lambda e: replace(e, revision=None, digest=None))
    assert judged(recorded(tmp_path / "lossy", Observed(lossless=False)), unsaid).rejection is None
    other = at(Kind.REQUEST_SENT, "CHANGE", lambda e: replace(e, revision=7, digest=None))
    for found in (
        judged(recorded(tmp_path / "whole"), unsaid),
        judged(recorded(tmp_path / "other", Observed(lossless=False)), other),
    ):
        assert found.rejection is not None
        assert ("receive", "it arrives as it was sent") in found.rejection.guards


def test_undecided_rows_are_counted_by_reason(tmp_path: Path) -> None:
    whole = recorded(tmp_path)
    renamed = judged(whole, lambda e: replace(e, client=e.client and "10.0.0.1:80#true"))
    assert renamed.undecided_by == {BY_BEATS: renamed.undecided} != {}
    blind = judged(replace(whole, header=replace(whole.header, observed=Observed(reported=()))), lambda e: e)
    assert set(blind.undecided_by) == {NO_STATE}
    unsaid = at(Kind.REQUEST_RECEIVED, "CHANGE", lambda e: replace(e, digest=None))
    lossy = replace(whole, header=replace(whole.header, observed=Observed(lossless=False)))
    assert judged(lossy, unsaid).undecided_by == {UNSAID: 1, TO_UNJUDGED: 1, FIRST: 1}
    for found in (renamed, blind):
        assert sum(found.undecided_by.values()) == found.undecided


def test_where_rows_may_be_missing_a_state_that_does_not_fit_is_not_decided(tmp_path: Path) -> None:
    lossy = recorded(tmp_path, Observed(lossless=False))
    result = judged(lossy, at(Kind.REPLICA_APPLIED, None, lambda e: replace(e, revision=2)))
    assert (result.accepted, result.undecided > 0) == (True, True)


@pytest.mark.parametrize("profile", ["nacos-2.2.4", "strict"])
def test_unobserved_facts_cause_no_rejection(tmp_path: Path, profile: str) -> None:
    trace = simulated(tmp_path, profile, None)
    for lacks, observed in WITHOUT.items():
        rows = numbered(row for event in trace.events if (row := as_observed(event, observed)) is not None)
        found = validate(replace(trace.header, observed=observed), rows, profile_named(profile), shorten=False)
        assert found.rejection is None, lacks


@pytest.mark.parametrize("lacks", ["sent by b", "received by b", "owned", "VERIFY"])
def test_observed_facts_are_still_judged(tmp_path: Path, lacks: str) -> None:
    """a sends a revision that it does not have."""
    trace = recorded(tmp_path, WITHOUT[lacks])
    events = [row for event in trace.events if (row := as_observed(event, trace.header.observed)) is not None]
    wrong = at(Kind.REQUEST_SENT, "CHANGE", lambda event: replace(event, revision=5))
    assert judged(replace(trace, events=tuple(events))).rejection is None
    rejection = judged(replace(trace, events=tuple(events)), wrong).rejection
    assert rejection is not None
    assert rejection.guards == {("send CHANGE", "it is the owner, and sends what it holds")}


@pytest.mark.parametrize(
    ("profile", "sent_ms", "revision", "is_accepted"),
    [
        ("nacos-2.3.2", 1_001, 1, True),
        ("nacos-2.3.2", 1_001, 2, False),
        ("nacos-2.3.2", 1_100, 1, False),
        ("strict", 1_001, 1, False),
    ],
)
def test_a_change_of_a_client_that_leaves_may_be_sent_in_the_moment_in_which_it_is_read(
    tmp_path: Path, profile: str, sent_ms: int, revision: int, is_accepted: bool
) -> None:
    trace = recorded(tmp_path)
    started, (connected, changed, sent) = trace.events[:2], trace.events[2:5]
    left = replace(connected, kind=Kind.CLIENT_DISCONNECTED, at_ms=1_000, revision=None, digest=None)
    call = replace(sent, at_ms=sent_ms, revision=revision)
    rows = numbered([*started, connected, changed, left, call])
    assert accepts(trace, rows, profile) is is_accepted


@pytest.mark.parametrize(
    ("profile", "deleted", "is_accepted"),
    [("nacos-2.3.2", True, True), ("nacos-2.3.2", False, False), ("strict", True, False)],
)
def test_a_change_may_go_into_a_client_that_a_delete_removes_meanwhile(
    tmp_path: Path, profile: str, deleted: bool, is_accepted: bool
) -> None:
    """B05: b answers the CHANGE with SUCCESS and has applied it to nothing that is still held."""
    trace = recorded(tmp_path)
    *before, left = (row for row in trace.events if row.message is None)
    sent, received, _, *answers = (row for row in trace.events if row.message == "m1")
    delete = [row for row in trace.events if row.message == "m3"]
    between = [left, *delete] if deleted else []
    late = [replace(row, at_ms=8_000) for row in answers]
    rows = numbered([*before, sent, received, *between, *late])
    assert accepts(trace, rows, profile) is is_accepted


@pytest.mark.parametrize(
    ("profile", "first", "revision", "is_accepted"),
    [
        ("nacos-2.3.2", ["m1", "m4"], 1, True),
        ("nacos-2.3.2", ["m4", "m1"], 1, True),
        ("nacos-2.3.2", ["m1", "m4"], 7, False),
        ("nacos-2.3.2", ["m1"], 1, False),
        ("strict", ["m1", "m4"], 1, False),
    ],
)
def test_two_changes_applied_concurrently_may_result_in_a_content_of_neither(
    tmp_path: Path, profile: str, first: list[str], revision: int, is_accepted: bool
) -> None:
    """B05. `first`: the requests that b has received when it shows what it has made of m1."""
    trace = recorded(tmp_path)
    started, (connected, changed), (sent, received, applied) = trace.events[:2], trace.events[2:4], trace.events[4:7]
    again = replace(changed, at_ms=1_000, revision=2, digest="d2")
    calls = [replace(sent, at_ms=1_000), again]
    calls += [replace(sent, at_ms=1_000, message="m4", revision=2, digest="d2")]
    arrive = {"m1": received, "m4": replace(received, message="m4", revision=2, digest="d2")}
    shown = replace(applied, revision=revision, digest="mixed")
    rows = numbered([*started, connected, changed, *calls, *(arrive[message] for message in first), shown])
    assert accepts(trace, rows, profile) is is_accepted


@pytest.mark.parametrize(
    ("profile", "first", "shown", "is_accepted"),
    [
        ("nacos-2.2.4", ["m4", "m5"], (3, "mixed"), True),
        ("nacos-2.2.4", ["m4", "m5"], (3, "d2"), True),  # the content of m4 under the revision of m5
        ("nacos-2.2.4", ["m4", "m5"], (3, "other"), False),  # the row of m5 has shown another content
        ("nacos-2.2.4", ["m4", "m5"], (4, "mixed"), False),  # no request had this revision
        ("strict", ["m4", "m5"], (3, "mixed"), False),
    ],
)
def test_the_row_of_a_change_may_show_what_a_concurrent_batch_made_of_the_copy(
    tmp_path: Path, profile: str, first: list[str], shown: tuple[int, str], is_accepted: bool
) -> None:
    """B05: m4 and m5, a batch with its revision, change the copy at b step by step; the last step is of m5."""
    trace = recorded(tmp_path)
    before, changed, (sent, received, applied) = trace.events[:9], trace.events[3], trace.events[4:7]
    again = [replace(changed, at_ms=1_000, revision=2, digest="d2")]
    again += [replace(changed, at_ms=1_000, revision=3, digest="d3", detail="batch")]
    ids = {"m4": {"revision": 2, "digest": "d2"}, "m5": {"revision": 3, "digest": "d3", "detail": "batch"}}
    calls = [row for n, m in enumerate(ids) for row in (again[n], replace(sent, at_ms=1_000, message=m, **ids[m]))]  # type: ignore[arg-type]
    arrived = [replace(received, at_ms=1_000, message=m, **ids[m]) for m in first]  # type: ignore[arg-type]
    last = replace(applied, at_ms=1_000, message="m5", revision=3, digest="mixed")
    rows = numbered([*before, *calls, *arrived, last, replace(last, message="m4", revision=shown[0], digest=shown[1])])
    assert accepts(trace, rows, profile) is is_accepted


@pytest.mark.parametrize(
    ("profile", "is_answered", "is_accepted"),
    [("nacos-2.2.4", False, True), ("nacos-2.2.4", True, False), ("strict", False, False)],
)
def test_a_change_that_changes_nothing_alone_may_undo_a_concurrent_one(
    tmp_path: Path, profile: str, is_answered: bool, is_accepted: bool
) -> None:
    """B05: m4 carries what b has, and its steps come after those of m5, unless it was answered before."""
    trace = recorded(tmp_path)
    before, changed, (sent, received, applied, answered, _) = trace.events[:9], trace.events[3], trace.events[4:9]
    other = {"message": "m5", "revision": 2, "digest": "d2"}
    calls = [replace(sent, message="m4"), replace(changed, revision=2, digest="d2"), replace(sent, **other)]  # type: ignore[arg-type]
    first, second = replace(received, message="m4"), replace(received, **other)  # type: ignore[arg-type]
    arrived = [first, replace(answered, message="m4"), second] if is_answered else [first, second]
    shown = replace(applied, message="m5", revision=1 if profile != "strict" else 2)
    rows = numbered([*before, *(replace(row, at_ms=1_000) for row in (*calls, *arrived, shown))])
    assert accepts(trace, rows, profile) is is_accepted


@pytest.mark.parametrize(
    ("profile", "sent_ms", "content", "is_accepted"),
    [
        ("nacos-2.3.2", 1_001, "d1", True),
        ("nacos-2.3.2", 1_001, "d0", False),
        ("nacos-2.3.2", 1_100, "d1", False),
        ("strict", 1_001, "d1", False),
    ],
)
def test_a_change_may_have_the_content_of_before_in_the_moment_in_which_it_is_read(
    tmp_path: Path, profile: str, sent_ms: int, content: str, is_accepted: bool
) -> None:
    """B05: at 1,000 ms d2 takes the place of d1, between the steps in which a CHANGE is read."""
    trace = recorded(tmp_path)
    started, (connected, changed, sent) = trace.events[:2], trace.events[2:5]
    again = replace(changed, at_ms=1_000, revision=2, digest="d2")
    call = replace(sent, at_ms=sent_ms, revision=2, digest=content)
    rows = numbered([*started, connected, changed, again, call])
    assert accepts(trace, rows, profile) is is_accepted


@pytest.mark.parametrize(
    ("loaded", "is_accepted"),
    [
        ({"revision": 2, "digest": "d2"}, True),  # with a batch in it, which brings its revision
        ({"revision": 1, "digest": "d2"}, True),  # without one (B10)
        ({"revision": 3, "digest": "d2"}, False),
        ({"revision": 2, "digest": "d3"}, False),
    ],
)
def test_a_snapshot_that_comes_late_may_hold_a_batch(
    tmp_path: Path, loaded: dict[str, object], is_accepted: bool
) -> None:
    """b has asked a for its snapshot, gets revision 1 as a CHANGE, and then revision 2 in the snapshot."""
    trace = recorded(tmp_path)
    started, (connected, changed, *copied) = trace.events[:2], trace.events[2:9]
    asked = replace(started[1], kind=Kind.REQUEST_SENT, message="m0", operation="SNAPSHOT", peer="a", detail=None)
    again = replace(changed, at_ms=2_000, revision=2, digest="d2")
    row = replace(copied[2], at_ms=2_000, message="m0", **loaded)  # type: ignore[arg-type]
    rows = numbered([*started, asked, connected, changed, *copied, again, row])
    assert accepts(trace, rows, "nacos-2.2.4") is is_accepted


@pytest.mark.parametrize(
    ("profile", "comes_first", "shown", "is_accepted"),
    [
        ("nacos-2.3.0", True, (2, "d1"), True),
        ("nacos-2.3.0", False, (2, "d1"), False),
        ("nacos-2.3.0", True, (3, "d1"), False),
        ("strict", True, (2, "d1"), False),
    ],
)
def test_a_snapshot_may_be_taken_between_the_steps_of_a_change(
    tmp_path: Path, profile: str, shown: tuple[int, str], *, comes_first: bool, is_accepted: bool
) -> None:
    """B05: b has asked a for its snapshot, with revision 1, and takes it before or after m4 comes with revision 2."""
    trace = recorded(tmp_path)
    started, (connected, changed, sent, received, applied) = trace.events[:2], trace.events[2:7]
    asked = replace(started[1], kind=Kind.REQUEST_SENT, message="m0", operation="SNAPSHOT", peer="a", detail=None)
    change = {"at_ms": 1_000, "revision": 2, "digest": "d2"}
    calls = [replace(changed, **change), replace(sent, message="m4", **change)]  # type: ignore[arg-type]
    arrives = replace(received, message="m4", **change)  # type: ignore[arg-type]
    loaded = replace(applied, at_ms=1_000, message="m0", revision=1, digest="d1")
    last = replace(loaded, message="m4", revision=shown[0], digest=shown[1])
    meets = [arrives, loaded] if comes_first else [loaded, arrives]
    rows = numbered([*started, asked, connected, changed, *calls, *meets, last])
    assert accepts(trace, rows, profile) is is_accepted


@pytest.mark.parametrize("after", ["d3", NOTHING])
def test_a_request_replaces_all_that_a_snapshot_brought_its_client(tmp_path: Path, after: str) -> None:
    """B01: a is given a batch of b beside the instance that its own client registered there."""
    trace = recorded(tmp_path)
    started, (connected, changed) = trace.events[:2], trace.events[2:4]
    asked = replace(started[0], kind=Kind.REQUEST_SENT, message="m0", operation="SNAPSHOT", peer="b", detail=None)
    at_b = [replace(connected, node="b"), replace(changed, node="b", revision=0, digest="d2")]
    loaded = replace(changed, kind=Kind.REPLICA_APPLIED, message="m0", revision=0, digest="d2")
    again = replace(changed, revision=1, digest=after)
    rows = numbered([*started, asked, connected, changed, *at_b, loaded, again])
    assert accepts(trace, rows, "nacos-2.2.4")


@pytest.mark.parametrize(
    ("sent_ms", "content", "is_accepted"), [(1_001, "d1", True), (1_001, "d2", True), (1_100, "d1", False)]
)
def test_a_change_may_be_read_before_a_snapshot_overwrites_its_client(
    tmp_path: Path, sent_ms: int, content: str, *, is_accepted: bool
) -> None:
    """B01 and B05: at 1,000 ms a takes a snapshot with d2 of its own client, whose CHANGE is being read."""
    trace = recorded(tmp_path)
    started, (connected, changed, sent) = trace.events[:2], trace.events[2:5]
    asked = replace(started[0], kind=Kind.REQUEST_SENT, message="m0", operation="SNAPSHOT", peer="b", detail=None)
    at_b = [replace(connected, node="b"), replace(changed, node="b", revision=0, digest="d2")]
    loaded = replace(changed, at_ms=1_000, kind=Kind.REPLICA_APPLIED, message="m0", revision=1, digest="d2")
    rows = numbered([*started, asked, connected, changed, *at_b, loaded, replace(sent, at_ms=sent_ms, digest=content)])
    assert accepts(trace, rows, "nacos-2.2.4") is is_accepted


@pytest.mark.parametrize("content", [NOTHING, "d2"])
@pytest.mark.parametrize(
    ("profile", "asked", "is_accepted"),
    [
        ("nacos-2.5.1", "while it is applied", True),
        ("nacos-2.5.1", "after it was applied", False),
        ("nacos-2.5.1", "after a start meanwhile", False),
        ("strict", "while it is applied", False),
    ],
)
def test_a_snapshot_may_hold_a_part_of_a_change_that_its_source_applies(
    tmp_path: Path, profile: str, asked: str, content: str, is_accepted: bool
) -> None:
    """A release applies it in steps (B05), the revision of a new copy first, then one service after the other: b gives
    c what it has of it until then, of which no row of b says anything."""
    trace = recorded(tmp_path)
    applied = next(n for n, each in enumerate(trace.events) if each.kind is Kind.REPLICA_APPLIED)
    (started, start), changed = trace.events[:2], trace.events[3]
    call = {"message": "m0", "operation": "SNAPSHOT", "detail": None}
    asks = replace(started, node="c", kind=Kind.REQUEST_SENT, peer="b", **call)  # type: ignore[arg-type]
    receives = replace(start, kind=Kind.REQUEST_RECEIVED, peer="c", **call)  # type: ignore[arg-type]
    gives = replace(start, kind=Kind.REPLY_SENT, peer="c", outcome=Outcome.SUCCESS, **call)  # type: ignore[arg-type]
    copy = replace(changed, node="c", kind=Kind.REPLICA_APPLIED, owned=False, message="m0", digest=content)
    change = [trace.events[applied]] if asked == "after it was applied" else []
    stop = [replace(start, kind=Kind.NODE_STOPPED), start] if asked == "after a start meanwhile" else []
    first = [replace(started, node="c"), *trace.events[:applied], asks]
    rows = numbered([*first, *change, *stop, receives, gives, copy])
    found = list(Slices(trace.header, profile_named(profile)).rejections(rows))
    assert (found == []) is is_accepted, found


@pytest.mark.parametrize(
    ("stopped_ms", "is_accepted"), [((), False), ((5_000,), True), ((5_500,), False), ((500,), False)]
)
def test_a_call_may_fail_because_its_receiver_stops_after_it_has_answered(
    tmp_path: Path, stopped_ms: Sequence[int], is_accepted: bool
) -> None:
    """And before the answer has arrived; the rows of one instant do not say which came first."""
    trace = recorded(tmp_path)
    rows = [row for row in trace.events if row.at_ms <= 5_000]
    rows[-1] = replace(rows[-1], outcome=Outcome.UNREACHABLE)
    for at_ms in stopped_ms:
        stop, start = (
            replace(trace.events[1], at_ms=at_ms, kind=kind) for kind in (Kind.NODE_STOPPED, Kind.NODE_STARTED)
        )
        rows += [stop, start] if at_ms < 1_000 else [stop]
    rows.sort(key=lambda row: row.at_ms)
    assert validate(trace.header, numbered(rows), profile_named("strict")).accepted is is_accepted


@pytest.mark.parametrize(("has_left", "is_accepted"), [(True, True), (False, False)])
def test_a_delete_that_waits_is_sent_although_a_snapshot_restored_the_client(
    tmp_path: Path, has_left: bool, is_accepted: bool
) -> None:
    """B27: a is given its former client again before its DELETE has reached b. A node that has a copy alone, and never
    had the connection, sends no DELETE."""
    trace = recorded(tmp_path)
    started, (connected, changed) = trace.events[:2], trace.events[2:4]
    left = next(each for each in trace.events if each.kind is Kind.CLIENT_DISCONNECTED)
    delete = next(each for each in trace.events if each.operation == "DELETE" and each.kind is Kind.REQUEST_SENT)
    loads = replace(started[0], kind=Kind.REQUEST_SENT, message="m0", operation="SNAPSHOT", peer="b", detail=None)
    copy = replace(changed, at_ms=6_500, kind=Kind.REPLICA_APPLIED, owned=False, message="m0")
    at_b = [replace(connected, node="b"), replace(changed, node="b")]
    own = [connected, changed, left] if has_left else []
    rows = numbered([*started, loads, *own, *at_b, copy, delete])
    found = list(Slices(trace.header, profile_named("nacos-2.2.4")).rejections(rows))
    assert (found == []) is is_accepted, found


def rows_of(trace: TraceFile, *messages: str | None) -> list[Event]:
    return [row for row in trace.events if row.message in messages]


@pytest.mark.parametrize(
    ("observed", "late_ms", "is_accepted"), [(INFERRED, 200, True), (INFERRED, 6_000, False), (EVERYTHING, 200, False)]
)
@pytest.mark.parametrize("operation", ["VERIFY", "CHANGE", "DELETE"])
def test_a_server_may_send_what_its_client_did_before_the_kit_has_read_it(
    tmp_path: Path, operation: str, observed: Observed, late_ms: int, is_accepted: bool
) -> None:
    """A server reports nothing: the row of what its client did follows when the kit has read the server."""
    trace = recorded(tmp_path, observed)
    started, (connected, changed), left = trace.events[:2], trace.events[2:4], rows_of(trace, None)[-1]
    sent = next(row for row in trace.events if (row.operation, row.kind) == (operation, Kind.REQUEST_SENT))
    sent = replace(sent, at_ms=10_000)
    before, own = {
        "VERIFY": ([], [connected, changed]),
        "CHANGE": ([connected], [changed]),
        "DELETE": ([connected, changed], [left]),
    }[operation]
    rows = numbered([*started, *before, sent, *(replace(row, at_ms=10_000 + late_ms) for row in own)])
    if operation == "VERIFY":
        rows = numbered([*started, replace(sent, revision=0), replace(connected, at_ms=10_000 + late_ms)])
    found = list(Slices(trace.header, profile_named("strict")).rejections(rows))
    assert (found == []) is is_accepted, found
    assert all(each.event.kind is Kind.REQUEST_SENT for each in found)


@pytest.mark.parametrize(("revision", "digest_sent"), [(2, "d1"), (1, "d2")])
def test_a_server_that_sends_what_its_client_did_not_do_is_rejected(
    tmp_path: Path, revision: int, digest_sent: str
) -> None:
    trace = recorded(tmp_path, INFERRED)
    started, (connected, changed, sent) = trace.events[:2], trace.events[2:5]
    early = replace(sent, at_ms=15, revision=revision, digest=digest_sent)
    rows = numbered([*started, connected, early, changed])
    (found,) = Slices(trace.header, profile_named("strict")).rejections(rows)
    assert found.event.digest == digest_sent


def test_a_server_that_sends_a_delete_of_a_client_that_never_left_is_rejected(tmp_path: Path) -> None:
    trace = recorded(tmp_path, INFERRED)
    sent = next(row for row in trace.events if (row.operation, row.kind) == ("DELETE", Kind.REQUEST_SENT))
    rows = numbered([*trace.events[:4], sent])
    (found,) = Slices(trace.header, profile_named("strict")).rejections(rows)
    assert found.event.operation == "DELETE"


@pytest.mark.parametrize(
    ("observed", "read_ms", "is_accepted"),
    [(INFERRED, 186_000, True), (INFERRED, 150_000, False), (EVERYTHING, 186_000, False)],
)
def test_a_lease_of_a_server_ends_without_a_row(
    tmp_path: Path, observed: Observed, read_ms: int, is_accepted: bool
) -> None:
    """The last VERIFY of c1 is of 5,000 ms; what b holds is read."""
    trace = recorded(tmp_path, observed)
    before = trace.events[: trace.events.index(rows_of(trace, "m2")[-1]) + 1]
    gone = Event(run=trace.header.run, node="b", seq=0, at_ms=read_ms, kind=Kind.OBSERVED, client="c1")
    found = list(Slices(trace.header, profile_named("nacos-2.3.2")).rejections(numbered([*before, gone])))
    assert (found == []) is is_accepted, found


@pytest.mark.parametrize(("is_started", "is_accepted"), [(False, True), (True, False)])
def test_a_snapshot_of_a_source_with_unknown_state_may_hold_anything(
    tmp_path: Path, is_started: bool, is_accepted: bool
) -> None:
    """c ran before its rows begin, and may hold c1 since then, under any revision."""
    trace = recorded(tmp_path, INFERRED)
    started, changed = trace.events[0], trace.events[3]
    loads = replace(started, kind=Kind.REQUEST_SENT, message="m0", operation="SNAPSHOT", peer="c", detail=None)
    copy = replace(changed, kind=Kind.REPLICA_APPLIED, owned=False, message="m0", revision=None)
    read = replace(copy, kind=Kind.OBSERVED, message=None, revision=7)
    rows = numbered([started, *[replace(started, node="c")] * is_started, loads, copy, read])
    found = list(Slices(trace.header, profile_named("strict")).rejections(rows))
    assert (found == []) is is_accepted, found


@pytest.mark.parametrize(
    ("observed", "fault", "is_accepted"),
    [
        (INFERRED, "drop SNAPSHOT", True),
        (INFERRED, "drop QUERY", False),
        (INFERRED, None, False),
        (EVERYTHING, "drop SNAPSHOT", False),
    ],
)
def test_a_server_may_give_up_a_call_that_the_link_keeps_and_say_nothing(
    tmp_path: Path, observed: Observed, fault: str | None, is_accepted: bool
) -> None:
    """A Java server does not cancel a SNAPSHOT request when it stops waiting for the answer."""
    trace = recorded(tmp_path, observed)
    started = trace.events[0]
    kept = replace(started, kind=Kind.LINK_FAULT, peer="b", detail=fault)
    operation = (fault or "drop SNAPSHOT").removeprefix("drop ")
    asks = replace(started, kind=Kind.REQUEST_SENT, message="m0", operation=operation, peer="b", detail=None)
    rows = numbered([*trace.events[:2], *[kept] * (fault is not None), asks])
    found = list(Slices(trace.header, profile_named("strict")).rejections(rows, until_ms=100_000))
    assert (found == []) is is_accepted, found
    assert all(each.guards == {("send", "every call ends")} for each in found)


@pytest.mark.parametrize("profile", ["nacos-2.0.4", "nacos-2.2.4", "nacos-2.3.2", "strict"])
def test_simulated_runs_with_all_faults_are_accepted(tmp_path: Path, profile: str) -> None:
    trace = simulated(tmp_path, profile, None)
    result = validate(trace.header, trace.events, profile_named(profile))
    assert (result.rejection, result.undecided) == (None, 0)


@pytest.mark.parametrize(
    ("mutant", "guard"),
    [
        ("B02", ("answer", "it is what the model answers")),
        ("B07", ("apply a request", "it is native")),
        ("B10", ("apply a request", "this is its revision")),
    ],
)
def test_a_run_of_a_mutant_is_rejected_at_its_first_wrong_row(
    tmp_path: Path, mutant: str, guard: tuple[str, str]
) -> None:
    trace = simulated(tmp_path, "strict", mutant)
    rejection = validate(trace.header, trace.events, profile_named("strict")).rejection
    assert rejection is not None
    assert rejection.guards == {guard}
    assert len(rejection.minimal) <= 5


def simulated(out: Path, profile: str, mutant: str | None) -> TraceFile:
    simulate(
        SimulationOptions(
            out=out, clients=4, duration_s=120, seed=5, faults=faults_named("all"), profile=profile, mutant=mutant
        ),
        lambda *_: None,
    )
    return read_run(sorted(out.glob("run=*"))[0])
