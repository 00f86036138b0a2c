"""The members that claimed a client, over time: one, or for how long none or several."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engines import in_process

from distro_spark.responsibility import ROUNDS_MS
from distro_spark.result import ClaimedInterval, Responsibility, Violation
from distro_traces.content import digest
from distro_traces.event import Kind
from distro_traces.ndjson import Recorder
from distro_traces.observed import EVERYTHING, Observed

EMPTY = digest(())
WEB = "10.0.0.1:8080#true"


class RunRecorder:
    def __init__(
        self, place: Path, observed: Observed = EVERYTHING, *, run: str = "r", profile: str = "strict"
    ) -> None:
        nodes = ("a", "b", "c")
        self._recorder = Recorder(place, run, profile=profile, target="test", nodes=nodes, observed=observed)
        for node in "abc":
            self.row(node, Kind.NODE_STARTED, 0, detail="a,b,c")

    def row(self, node: str, kind: Kind, at_ms: int, **fields: Any) -> None:
        self._recorder.record(node, kind, at_ms=at_ms, **fields)

    def owns(self, node: str, at_ms: int, client: str = "c1") -> None:
        self.row(node, Kind.CLIENT_CONNECTED, at_ms, client=client, owned=True, revision=0, digest=EMPTY)

    def copies(self, node: str, at_ms: int, client: str = "c1") -> None:
        self.row(node, Kind.REPLICA_APPLIED, at_ms, client=client, owned=False, revision=1, digest=EMPTY)

    def drops(self, node: str, at_ms: int, client: str = "c1") -> None:
        self.row(node, Kind.REPLICA_REMOVED, at_ms, client=client)

    def verifies(self, node: str, peer: str, at_ms: int, client: str) -> None:
        fields = {"message": f"m{at_ms}", "operation": "VERIFY", "client": client, "revision": 1}
        self.row(node, Kind.REQUEST_SENT, at_ms, peer=peer, **fields)

    def ends(self, at_ms: int) -> None:
        for node in "abc":
            self.row(node, Kind.CHECKPOINT, at_ms, detail="1")
        self._recorder.close()


def measured(place: Path) -> Responsibility:
    found = in_process(place, invariants=["INV-REV"], responsibility=True).responsibility
    assert found is not None
    return found


def test_a_client_has_one_claimer_until_its_node_removes_it(tmp_path: Path) -> None:
    """The copy that stays has no claimer until it is removed too."""
    run = RunRecorder(tmp_path / "run")
    run.owns("a", 1000)
    run.copies("b", 1500)
    run.row("a", Kind.CLIENT_DISCONNECTED, 9000, client="c1")
    run.drops("b", 9700)
    run.ends(20_000)
    unclaimed = ClaimedInterval("r", "c1", 9000, 9700, 0, ())
    assert measured(tmp_path / "run") == Responsibility(1, 0, 700, 8000, 0, (unclaimed,), 0, "conforms")


def test_clients_of_a_stopped_node_have_no_claimer(tmp_path: Path) -> None:
    run = RunRecorder(tmp_path / "run")
    run.owns("a", 1000)
    run.copies("b", 1500)
    run.row("a", Kind.NODE_STOPPED, 4000, detail="crash")
    run.ends(30_000)
    unclaimed = ClaimedInterval("r", "c1", 4000, 30_000, 0, ())
    assert measured(tmp_path / "run") == Responsibility(1, 0, 26_000, 3000, 0, (unclaimed,), 0, "conforms")


def test_two_owners_are_named_with_the_time_in_which_both_were(tmp_path: Path) -> None:
    run = RunRecorder(tmp_path / "run")
    run.owns("a", 1000)
    run.owns("c", 3000)
    run.copies("c", 8000)
    run.owns("a", 1000, "c2")
    run.ends(10_000)
    both = ClaimedInterval("r", "c1", 3000, 8000, 2, ("a", "c"))
    found = measured(tmp_path / "run")
    assert set(found.intervals[0].nodes) == {"a", "c"}
    assert (found.clients, found.several_ms, found.one_ms, found.none_ms) == (2, 5000, 13_000, 0)
    assert (found.intervals[0].from_ms, found.intervals[0].until_ms) == (both.from_ms, both.until_ms)


def test_a_client_of_an_address_is_claimed_by_the_member_that_verifies_it(tmp_path: Path) -> None:
    """No row shows the change of owner: the first owner's claim ends two rounds after its last verify."""
    run = RunRecorder(tmp_path / "run")
    run.row("a", Kind.CLIENT_CHANGED, 1000, client=WEB, owned=True, revision=1, digest=EMPTY)
    run.copies("b", 1500, WEB)
    for at_ms in range(5000, 21_000, 5000):
        run.verifies("a", "b", at_ms, WEB)
    for at_ms in range(25_000, 61_000, 5000):
        run.verifies("b", "a", at_ms, WEB)
    run.ends(62_000)
    found = measured(tmp_path / "run")
    assert [(each.claimers, each.from_ms, each.until_ms) for each in found.intervals] == [
        (2, 25_000, 20_000 + ROUNDS_MS)
    ]
    assert (found.none_ms, found.several_ms) == (0, ROUNDS_MS - 5000)


def test_without_sent_requests_clients_of_an_address_are_not_judged(tmp_path: Path) -> None:
    run = RunRecorder(tmp_path / "run", replace(EVERYTHING, sent=()))
    run.row("a", Kind.CLIENT_CHANGED, 1000, client=WEB, owned=True, revision=1, digest=EMPTY)
    run.owns("a", 1000)
    run.ends(62_000)
    assert measured(tmp_path / "run") == Responsibility(1, 1, 0, 61_000, 0, (), 0, "conforms")


def test_it_is_measured_only_on_request(tmp_path: Path) -> None:
    run = RunRecorder(tmp_path / "run")
    run.owns("a", 1000)
    run.ends(2000)
    assert in_process(tmp_path / "run", invariants=["INV-REV"]).responsibility is None


# The owner of a client of an address: the member that its hash selects, by each node's own list


OF_C = "10.0.0.5:8080#true"
"""Of c; among a and b alone it is of a."""

BY_HASH = {"a": "10.0.0.1:8080#true", "b": "10.0.0.3:8080#true", "c": OF_C}
"""By owner, where a, b and c are up."""

LASTS_MS = 200_000


def round_of(run: RunRecorder, node: str, client: str, from_ms: int, until_ms: int) -> None:
    for at_ms in range(from_ms, until_ms, 5000):
        for peer in "abc".replace(node, ""):
            run.verifies(node, peer, at_ms, client)


def registered(run: RunRecorder, node: str, client: str, holders: str = "abc") -> None:
    run.row(node, Kind.CLIENT_CHANGED, 1000, client=client, owned=True, revision=1, digest="X")
    for other in holders.replace(node, ""):
        run.row(other, Kind.REPLICA_APPLIED, 2000, client=client, owned=False, revision=1, digest="X")


def violations(place: Path) -> list[Violation]:
    return list(in_process(place, invariants=["INV-OWNER"]).violations)


@pytest.mark.parametrize("owner", BY_HASH)
def test_an_owner_that_verifies_its_client_is_the_only_one(tmp_path: Path, owner: str) -> None:
    run = RunRecorder(tmp_path / "run")
    registered(run, owner, BY_HASH[owner])
    round_of(run, owner, BY_HASH[owner], 5000, LASTS_MS)
    run.ends(LASTS_MS)
    assert violations(tmp_path / "run") == []


def test_a_second_member_that_verifies_a_client_is_a_violation(tmp_path: Path) -> None:
    run = RunRecorder(tmp_path / "run")
    registered(run, "c", OF_C)
    round_of(run, "c", OF_C, 5000, LASTS_MS)
    round_of(run, "a", OF_C, 100_000, LASTS_MS)
    run.ends(LASTS_MS)
    (found,) = violations(tmp_path / "run")
    assert (found.node, found.client, found.last_event.at_ms, found.first_event.node) == ("a", OF_C, 100_000, "c")
    assert found.evidence == {"owner": "c", "claims": "40"}
    assert found.message.startswith(f"a verifies {OF_C} since request_sent of a at 100000 ms")
    assert "by its member list (a, b, c) c is responsible, and c claims it since" in found.message
    assert found.expected == f"a leaves {OF_C} to c"


def test_an_owner_that_never_verifies_a_held_client_is_named(tmp_path: Path) -> None:
    run = RunRecorder(tmp_path / "run")
    registered(run, "c", OF_C)
    run.ends(LASTS_MS)
    (found,) = violations(tmp_path / "run")
    assert (found.node, found.client, found.first_event.at_ms) == ("c", OF_C, 1000)
    assert f"c is responsible for {OF_C} by its member list (a, b, c)" in found.message
    assert found.message.endswith("but never verified it from 60000 to 200000 ms")


def test_an_owner_without_the_client_need_not_verify_it(tmp_path: Path) -> None:
    """Who took the client from its former owner's copies has nothing until the client's next beat (B22)."""
    run = RunRecorder(tmp_path / "run")
    registered(run, "a", OF_C, "ab")
    run.ends(LASTS_MS)
    assert violations(tmp_path / "run") == []


@pytest.mark.parametrize(("after_ms", "violates"), [(55_000, False), (70_000, True)])
def test_responsibility_may_be_handed_over_for_a_while(tmp_path: Path, after_ms: int, violates: bool) -> None:
    """c, the owner by hash, is back at 100 s; a, which replaced it meanwhile, continues."""
    run = RunRecorder(tmp_path / "run")
    registered(run, "c", OF_C)
    round_of(run, "c", OF_C, 5000, 20_000)
    run.row("c", Kind.NODE_STOPPED, 20_000, detail="crash")
    for at_ms in range(25_000, 100_000, 5000):
        run.verifies("a", "b", at_ms, OF_C)
    run.row("c", Kind.NODE_STARTED, 100_000, detail="a,b,c")
    run.copies("c", 101_000, OF_C)
    round_of(run, "c", OF_C, 105_000, LASTS_MS)
    round_of(run, "a", OF_C, 105_000, 100_000 + after_ms)
    run.ends(LASTS_MS)
    assert [each.node for each in violations(tmp_path / "run")] == (["a"] if violates else [])


def test_while_a_link_is_cut_members_may_name_different_owners(tmp_path: Path) -> None:
    run = RunRecorder(tmp_path / "run")
    registered(run, "c", OF_C)
    round_of(run, "c", OF_C, 5000, LASTS_MS)
    run.row("a", Kind.LINK_FAULT, 50_000, peer="c", detail="cut")
    round_of(run, "a", OF_C, 100_000, LASTS_MS)
    run.ends(LASTS_MS)
    assert violations(tmp_path / "run") == []


def test_two_owners_by_their_own_lists_are_a_violation(tmp_path: Path) -> None:
    """The list of a lacks c for good: each is right by its own list, and the client has two owners."""
    run = RunRecorder(tmp_path / "run")
    registered(run, "c", OF_C)
    round_of(run, "c", OF_C, 5000, LASTS_MS)
    run.row("a", Kind.MEMBERS_CHANGED, 20_000, detail="a,b")
    round_of(run, "a", OF_C, 100_000, LASTS_MS)
    run.ends(LASTS_MS)
    (found,) = violations(tmp_path / "run")
    assert (found.node, found.evidence["owner"]) == ("a", "c")
    assert "c claims it since" in found.message
    assert "is responsible" not in found.message


def test_a_copy_that_no_member_ever_claimed_is_a_violation(tmp_path: Path) -> None:
    run = RunRecorder(tmp_path / "run")
    run.owns("a", 1000)
    run.copies("b", 1500)
    run.copies("b", 1600, "c2")
    run.copies("c", 1700, "c2")
    run.ends(20_000)
    (found,) = violations(tmp_path / "run")
    assert (found.node, found.client, found.first_event.at_ms) == ("b", "c2", 1600)
    assert found.message.startswith("b holds c2 since replica_applied of b at 1600 ms")


def test_without_recorded_claims_no_owner_is_missing(tmp_path: Path) -> None:
    partly = (replace(EVERYTHING, lossless=False), replace(EVERYTHING, reported=("a", "b"), inferred=("c",)))
    for number, observed in enumerate(partly):
        run = RunRecorder(tmp_path / str(number), observed)
        run.copies("b", 1600, "c2")
        registered(run, "c", OF_C)
        run.ends(LASTS_MS)
        assert violations(tmp_path / str(number)) == []


def test_with_the_times_comes_a_verdict(tmp_path: Path) -> None:
    run = RunRecorder(tmp_path / "run")
    registered(run, "c", OF_C)
    round_of(run, "c", OF_C, 5000, LASTS_MS)
    round_of(run, "a", OF_C, 100_000, LASTS_MS)
    run.ends(LASTS_MS)
    found = measured(tmp_path / "run")
    assert (found.verdict, found.violations) == ("violates", 1)
    run = RunRecorder(tmp_path / "run", run="two owners")
    run.owns("a", 1000)
    run.owns("b", 3000)
    run.row("a", Kind.NODE_STOPPED, 20_000, detail="crash")
    run.ends(LASTS_MS)
    found = in_process(tmp_path / "run", invariants=["INV-OWNER"], responsibility=True).responsibility
    assert found is not None
    assert {each.run for each in found.intervals} == {"r", "two owners"}
