"""A client of the HTTP API at a node seen from outside: whose it is, when its beats are missed, how it is compared."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext

import pytest

from distro_model.clock.cluster import View
from distro_model.events import HttpAction, HttpReceived
from distro_model.messages import Answer, CallResult, Change, Delete, Snapshot, Verify
from distro_model.outside import NodeOutside, Slack, Undecided, Unexplained
from distro_model.profiles import beside_nodes, profile_named

OWN, OF_B, OF_D = "10.0.1.4:80", "10.0.1.3:80", "10.0.1.1:80"
"""Whose they are while all four are there; without d, that of b is of a, and the others are of b."""
HEALTHY, UNHEALTHY = (("web", OWN),), (("web", f"{OWN} (unhealthy)"),)


def node(profile: str = "nacos-2.2.4", slack: Slack | None = None) -> NodeOutside:
    """a, which has loaded from b at 10 ms."""
    outside = NodeOutside("a", ["b", "c", "d"], beside_nodes(profile_named(profile)), slack or Slack())
    outside.sent("s", "b", Snapshot(), 0)
    outside.ended("s", CallResult.SUCCESS, (), 10)
    return outside


def ask(
    outside: NodeOutside, action: HttpAction, address: str, now_ms: int, *, is_done: bool = True, by_v2: bool = False
) -> None:
    client, key = f"{address}#true", f"k{now_ms}"
    outside.begin(key, client, HttpReceived(0, client, action, "web", address, by_v2=by_v2), now_ms)
    outside.finish(key, client, Answer(CallResult.SUCCESS if is_done else CallResult.FAIL), now_ms, "it answers")


def show(outside: NodeOutside, content: Iterable[tuple[str, str]] | None, now_ms: int, address: str = OWN) -> None:
    held = {} if content is None else {f"{address}#true": View(0, tuple(content))}
    outside.shown(held, now_ms, now_ms, "it shows")


def receive(outside: NodeOutside, request: Change | Delete | Verify, now_ms: int, peers: str = "bcd") -> None:
    for peer in peers:
        call = f"{request} {peer} {now_ms}"
        outside.sent(call, peer, request, now_ms)
        outside.ended(call, CallResult.SUCCESS, (), now_ms)


def registered() -> NodeOutside:
    """At 1,000 ms, and announced."""
    outside = node()
    ask(outside, HttpAction.REGISTER, OWN, 1_000)
    receive(outside, Change(f"{OWN}#true", 0, HEALTHY), 2_000)
    return outside


def test_the_owner_carries_a_request_out_and_another_node_forwards_it() -> None:
    outside = node()
    ask(outside, HttpAction.REGISTER, OF_D, 1_000, is_done=False)
    show(outside, None, 1_000, OF_D)
    with pytest.raises(Unexplained, match="route-a-request"):
        ask(outside, HttpAction.REGISTER, OWN, 2_000, is_done=False)


def test_a_release_keeps_what_version_2_asks_it_for_and_announces_nothing_of_it() -> None:
    outside = node()
    ask(outside, HttpAction.REGISTER, OF_D, 1_000, by_v2=True)
    show(outside, [("web", OF_D)], 1_000, OF_D)
    with pytest.raises(Unexplained, match="no CHANGE and no DELETE"):
        receive(outside, Change(f"{OF_D}#true", 0, (("web", OF_D),)), 2_000)


def test_a_missed_beat_is_found_between_its_time_and_the_next_check() -> None:
    early, late = registered(), registered()
    with pytest.raises(Unexplained, match="unhealthy"):
        show(early, UNHEALTHY, 15_900)
    show(early, HEALTHY, 16_100)
    show(early, UNHEALTHY, 19_000)
    receive(early, Change(f"{OWN}#true", 0, UNHEALTHY), 20_000)
    with pytest.raises(Unexplained, match="unhealthy"):
        show(late, HEALTHY, 21_500)


def test_a_beat_in_time_keeps_it_healthy() -> None:
    outside = registered()
    ask(outside, HttpAction.BEAT, OWN, 14_000)
    show(outside, HEALTHY, 28_000)
    with pytest.raises(Unexplained, match="unhealthy"):
        show(outside, UNHEALTHY, 28_900)


def test_an_instance_without_beats_is_removed_forgotten_and_deleted() -> None:
    outside = registered()
    receive(outside, Change(f"{OWN}#true", 0, UNHEALTHY), 19_000)
    receive(outside, Change(f"{OWN}#true", 0, ()), 34_000)
    show(outside, (), 34_000)
    show(outside, None, 36_000)
    receive(outside, Delete(f"{OWN}#true"), 37_000)


def test_clients_of_a_member_known_to_be_gone_belong_to_others_and_until_then_to_either() -> None:
    """No observer sees which reports have failed."""
    gone, unsure = node(), node()
    for each in (gone, unsure):
        each.peer_left("d", 1_000)
    gone.shown({}, 50_000, 50_000, "it shows")
    assert [_is_done(gone, each, 50_000) for each in (OWN, OF_D, OF_B)] == [False, False, True]
    assert [_is_done(unsure, each, 8_000) for each in (OWN, OF_D, OF_B)] == [True, False, True]


def _is_done(outside: NodeOutside, address: str, now_ms: int) -> bool:
    try:
        ask(outside, HttpAction.BEAT, address, now_ms)
    except Unexplained:
        return False
    return True


def test_the_hash_that_is_its_revision_is_known_to_no_other_node() -> None:
    outside = registered()
    receive(outside, Verify(f"{OWN}#true", 0), 5_000)
    with pytest.raises(Unexplained, match="VERIFY"):
        outside.sent("v", "b", Verify(f"{OF_D}#true", 0), 5_000)


def test_an_owner_that_says_no_verify_is_found_out() -> None:
    outside = registered()
    outside.check(2_500)
    with pytest.raises(Unexplained, match="it has sent no VERIFY to b"):
        outside.check(7_700)


@pytest.mark.parametrize("is_real", [True, False])
def test_a_check_that_goes_from_service_to_service_may_be_seen_on_its_way(*, is_real: bool) -> None:
    """Seen on a busy 2.3.2: of two services whose beats stayed out together one was still healthy."""
    outside = node(slack=Slack(2_500, 300) if is_real else None)
    client = f"{OWN}#true"
    for service in ("api", "web"):
        outside.begin(service, client, HttpReceived(0, client, HttpAction.REGISTER, service, OWN), 1_000)
        outside.finish(service, client, Answer(CallResult.SUCCESS), 1_000, "it answers")
    receive(outside, Change(client, 0, (("api", OWN), ("web", OWN))), 2_000)
    one_of_two = (("api", OWN), ("web", f"{OWN} (unhealthy)"))
    if is_real:
        show(outside, one_of_two, 17_000)
        show(outside, [(service, f"{OWN} (unhealthy)") for service in ("api", "web")], 18_000)
    with pytest.raises(Unexplained, match="unhealthy"):
        show(outside, one_of_two, 18_500)


def test_an_observation_from_before_a_change_is_no_evidence_for_the_time_after_it() -> None:
    """Seen on a 2.3.2 beside many programs: windows so wide that the end of the client explained the look."""
    slack = Slack(2_500, 300)
    outside = node(slack=slack)
    slack.measure(15_000, 15_000)
    ask(outside, HttpAction.REGISTER, OWN, 10_000)
    outside.shown({}, 9_900, 10_100, "it shows")
    show(outside, HEALTHY, 11_000)


@pytest.mark.parametrize(
    ("shown_ms", "sent_ms", "is_explained"), [(41_100, 41_300, True), (41_100, 43_500, False), (40_600, 41_100, False)]
)
def test_a_retry_may_be_under_way_while_its_client_ends(shown_ms: int, sent_ms: int, *, is_explained: bool) -> None:
    """Seen on a real 2.5.1: a CHANGE that waited for its connection arrived after a look without the client. The last
    retry is due at 41,000 ms."""
    outside, client = node(slack=Slack(1_000, 300)), f"{OWN}#true"
    emptied = Change(client, 0, ())
    ask(outside, HttpAction.REGISTER, OWN, 1_000)
    receive(outside, Change(client, 0, HEALTHY), 2_000)
    ask(outside, HttpAction.DEREGISTER, OWN, 10_000)
    receive(outside, emptied, 11_000, "bd")
    for at_ms in range(11_000, 41_000, 3_000):
        outside.sent(f"c{at_ms}", "c", emptied, at_ms)
        outside.ended(f"c{at_ms}", CallResult.UNREACHABLE, (), at_ms)
    show(outside, None, shown_ms)
    with nullcontext() if is_explained else pytest.raises(Unexplained, match="execute-a-task"):
        outside.sent("again", "c", emptied, sent_ms)


@pytest.mark.parametrize(
    ("left", "left_ms", "sent_ms", "is_explained"),
    [
        ("c", 41_050, 41_500, True),
        ("d", 41_050, 41_500, True),
        ("c", 41_050, 46_500, False),
        ("d", 41_050, 46_500, False),
        (None, 0, 41_500, False),
    ],
)
def test_a_verify_that_waited_for_a_connection_may_be_of_a_client_that_has_ended(
    left: str | None, left_ms: int, sent_ms: int, *, is_explained: bool
) -> None:
    """Seen on a real 2.5.1: the round read the client before a look without it, and sent its VERIFY after that. Calls
    to several members share a worker."""
    outside, client = node(slack=Slack(1_000, 300)), f"{OWN}#true"
    ask(outside, HttpAction.REGISTER, OWN, 1_000)
    receive(outside, Change(client, 0, HEALTHY), 2_000)
    ask(outside, HttpAction.DEREGISTER, OWN, 10_000)
    receive(outside, Change(client, 0, ()), 11_000)
    show(outside, (), 40_500)
    if left is not None:
        outside.peer_left(left, left_ms)
        outside.peer_back(left, left_ms + 20)
    show(outside, None, 41_100)
    with nullcontext() if is_explained else pytest.raises(Unexplained, match="verify"):
        outside.sent("v", "c", Verify(client, 0), sent_ms)


@pytest.mark.parametrize(("address", "is_in_parts"), [(OWN, True), (OF_B, False)])
def test_a_change_may_be_read_while_the_beats_of_its_services_are_checked(address: str, *, is_in_parts: bool) -> None:
    """Both services are registered in the same millisecond. One of them may be unhealthy in a CHANGE and the other one
    not yet; none may have an instance that was never registered."""
    outside, client = node(slack=Slack(1_000, 300)), f"{OWN}#true"
    for service in ("api", "web"):
        outside.begin(service, client, HttpReceived(0, client, HttpAction.REGISTER, service, OWN), 1_000)
    for service in ("api", "web"):
        outside.finish(service, client, Answer(CallResult.SUCCESS), 1_000, "it answers")
    receive(outside, Change(client, 0, (("api", OWN), ("web", OWN))), 2_000)
    outside.shown({client: View(0, (("api", f"{OWN} (unhealthy)"), ("web", OWN)))}, 16_500, 16_500, "it shows")
    change = Change(client, 0, (("api", f"{OWN} (unhealthy)"), ("web", address)))
    if is_in_parts:
        outside.sent("c", "b", change, 17_500)
        assert (outside.undecided, outside.in_parts) == ({Undecided.IN_PARTS: 1}, 2)
    else:
        with pytest.raises(Unexplained, match="it sends CHANGE"):
            outside.sent("c", "b", change, 17_500)
