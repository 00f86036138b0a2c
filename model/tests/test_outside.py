"""A node seen from outside in real time: the delays of a busy machine, and the differences that they excuse."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from distro_model.clock.cluster import View
from distro_model.events import ClientConnected, ClientDisconnected, InstanceRegistered
from distro_model.messages import Answer, CallResult, Change, Delete, Snapshot, Verify
from distro_model.outside import NodeOutside, Slack, Undecided, Unexplained
from distro_model.profiles import beside_nodes, profile_named

INSTANCES = ("10.0.0.1:80", "10.0.0.1:81")


def test_the_time_of_the_machine_is_added_to_the_delay_at_leisure() -> None:
    slack = at_leisure()
    assert (slack.late_ms, slack.skew_ms) == (2_500, 300)
    slack.measure(4_000, 800)
    assert (slack.late_ms, slack.skew_ms) == (6_500, 1_100)
    slack.measure(0, 0)
    assert (slack.late_ms, slack.skew_ms) == (2_500, 300)


def test_a_client_that_was_lost_sight_of_may_be_anything() -> None:
    outside = changed_once(answers_take_ms=0)
    outside.lose("c1", 3_000)
    outside.shown({}, 3_000, 3_000, "it shows")
    outside.check(5_400)
    assert outside.undecided == {Undecided.LOST: 1}
    with pytest.raises(Unexplained, match="it shows c1 as unknown"):
        changed_once(answers_take_ms=0).shown({}, 3_000, 3_000, "it shows")


def test_in_virtual_time_nothing_is_measured() -> None:
    slack = Slack()
    slack.measure(400, 400)
    assert (slack.late_ms, slack.skew_ms) == (0, 0)


def at_leisure() -> Slack:
    """The delay of a server in real time there."""
    return Slack(2_500, 300)


@pytest.mark.parametrize(
    ("taken_ms", "now_ms", "undecided"),
    [(0, 5_700, 0), (1_000, 5_700, 0), (1_000, 5_900, 1)],
    ids=["in time", "in time though the machine took some", "late by no more than that"],
)
def test_a_delay_within_the_time_of_the_machine_is_neither_explained_nor_wrong(
    taken_ms: int, now_ms: int, undecided: int
) -> None:
    """c1 has registered at 2,000 ms: a CHANGE is due a second later, and at leisure by 5,700 ms."""
    outside = changed_once(answers_take_ms=2)
    outside.slack.measure(taken_ms, 0)
    outside.check(now_ms)
    assert outside.undecided[Undecided.LATE] == outside.undecided.total() == undecided
    outside.slack.measure(0, 0)
    if not undecided:
        with pytest.raises(
            Unexplained, match="by 5900 ms it has sent nothing; the model expects CHANGE c1 to b by 5700 ms"
        ):
            outside.check(5_900)


def test_a_report_that_is_late_by_no_more_than_the_machine_took_is_counted() -> None:
    outside = changed_once(answers_take_ms=2)
    outside.sent("c", "b", Change("c1", 1, (("web", INSTANCES[0]),)), 3_200)
    outside.ended("c", CallResult.SUCCESS, (), 3_210)
    for at_ms in range(6_000, 12_000, 5_000):
        outside.sent(f"v{at_ms}", "b", Verify("c1", 1), at_ms)
        outside.ended(f"v{at_ms}", CallResult.SUCCESS, (), at_ms)
    outside.slack.measure(2_000, 0)
    outside.check(11_500)
    assert outside.late == 1
    outside.slack.measure(0, 0)
    with pytest.raises(Unexplained, match="it has not reported itself to b"):
        outside.check(11_500)


@pytest.mark.parametrize(("taken_ms", "is_open"), [(5_100, True), (4_900, False)])
def test_a_report_that_is_missing_is_open_where_the_machine_took_more_than_half_of_the_time(
    taken_ms: int, *, is_open: bool
) -> None:
    outside = NodeOutside("a", ["b"], beside_nodes(profile_named("nacos-2.3.2")), at_leisure())
    outside.sent("s", "b", Snapshot(), 0)
    outside.ended("s", CallResult.SUCCESS, (), 10)
    outside.slack.measure(taken_ms, 0)
    with nullcontext() if is_open else pytest.raises(Unexplained, match="it has not reported itself to b"):
        outside.check(60_000)
    assert outside.late == is_open


def changed_once(answers_take_ms: int, slack: Slack | None = None, profile: str = "nacos-2.3.2") -> NodeOutside:
    """c1 has registered at a, which has sent nothing of it so far."""
    slack = slack or at_leisure()
    outside = NodeOutside("a", ["b"], beside_nodes(profile_named(profile)), slack)
    outside.sent("s", "b", Snapshot(), 0)
    outside.ended("s", CallResult.SUCCESS, (), 10)
    ask(outside, ClientConnected(0, "c1"), 1_000, answers_take_ms)
    ask(outside, InstanceRegistered(0, "c1", "web", INSTANCES[0]), 2_000, answers_take_ms)
    return outside


def changed_twice(answers_take_ms: int) -> NodeOutside:
    """c1 at a, which has sent its first change to b, has just been changed again."""
    outside = changed_once(answers_take_ms)
    outside.sent("c", "b", Change("c1", 1, (("web", INSTANCES[0]),)), 3_200)
    outside.ended("c", CallResult.SUCCESS, (), 3_210)
    ask(outside, InstanceRegistered(0, "c1", "web", INSTANCES[1]), 5_000, answers_take_ms)
    return outside


def ask(outside: NodeOutside, event: ClientConnected | InstanceRegistered, now_ms: int, takes_ms: int) -> None:
    outside.begin(f"k{now_ms}", "c1", event, now_ms)
    answer = None if isinstance(event, ClientConnected) else Answer(CallResult.SUCCESS)
    outside.finish(f"k{now_ms}", "c1", answer, now_ms + takes_ms, "it answers")


def test_a_round_says_of_all_clients_how_they_were_when_it_began() -> None:
    """However long it takes to send; the round before may not speak for this one."""
    slow = changed_twice(2)
    slow.begin("k", "c2", ClientConnected(0, "c2"), 3_500)
    slow.finish("k", "c2", None, 3_502, "it answers")
    slow.sent("v2", "b", Verify("c2", 0), 4_900)
    slow.sent("v1", "b", Verify("c1", 1), 5_950)
    late = changed_twice(2)
    late.sent("c2", "b", Change("c1", 2, (("web", INSTANCES[1]),)), 6_100)
    late.ended("c2", CallResult.SUCCESS, (), 6_110)
    late.sent("v1", "b", Verify("c1", 2), 10_000)
    with pytest.raises(Unexplained, match="VERIFY c1 revision 1"):
        late.sent("v1", "b", Verify("c1", 1), 15_000)


def test_a_verify_from_before_a_change_may_be_under_way_for_as_long_as_the_machine_took_at_a_time() -> None:
    before = Verify("c1", 1)
    changed_twice(2).sent("v", "b", before, 5_250)
    stalled = changed_twice(2)
    stalled.slack.measure(0, 800)
    stalled.sent("v", "b", before, 5_950)
    with pytest.raises(Unexplained, match="VERIFY c1 revision 1"):
        changed_twice(2).sent("v", "b", before, 5_950)


def test_a_round_that_waited_for_a_connection_may_have_read_the_revisions_one_interval_earlier() -> None:
    before = Verify("c1", 1)
    waited = changed_twice(2)
    waited.peer_left("b", 5_500)
    waited.peer_back("b", 8_000)
    waited.sent("v", "b", before, 9_900)
    waited.sent("w", "b", before, 10_100)  # the next round, on time
    for left_ms, sent_ms in ((5_500, 10_500), (2_000, 9_900)):
        read_later = changed_twice(2)
        read_later.peer_left("b", left_ms)
        read_later.peer_back("b", left_ms + 2_500)
        read_later.reported("b", CallResult.SUCCESS, left_ms + 2_600)
        with pytest.raises(Unexplained, match="VERIFY c1 revision 1"):
            read_later.sent("v", "b", before, sent_ms)


def test_the_next_verify_is_due_one_round_after_the_last_even_where_that_one_waited() -> None:
    outside = NodeOutside("a", ["b"], beside_nodes(profile_named("nacos-2.3.2")), at_leisure())
    outside.sent("s", "b", Snapshot(), 0)
    outside.ended("s", CallResult.SUCCESS, (), 10)
    ask(outside, ClientConnected(0, "c1"), 1_000, 2)
    outside.peer_left("b", 5_500)
    outside.peer_back("b", 6_000)
    outside.reported("b", CallResult.SUCCESS, 6_000)
    outside.check_clients(["c1"], 6_100)
    outside.sent("v", "b", Verify("c1", 0), 9_900)
    outside.ended("v", CallResult.SUCCESS, (), 9_900)
    outside.check_clients(["c1"], 17_400)
    with pytest.raises(Unexplained, match="it has sent no VERIFY to b since 9900 ms"):
        outside.check_clients(["c1"], 17_600)


def test_a_confirmed_copy_resets_no_deadline_however_long_answers_take() -> None:
    outside = changed_twice(300)
    with pytest.raises(Unexplained, match="it has sent nothing; the model expects CHANGE c1 revision 2"):
        confirm_each_round(outside, until_ms=60_000)


def confirm_each_round(outside: NodeOutside, until_ms: int) -> None:
    for at_ms in range(6_000, until_ms, 5_000):
        outside.sent(f"v{at_ms}", "b", Verify("c1", 2), at_ms)
        outside.ended(f"v{at_ms}", CallResult.SUCCESS, (), at_ms + 300)
        outside.reported("b", CallResult.SUCCESS, at_ms)
        outside.check(at_ms + 300)


def test_the_state_of_a_client_under_change_is_counted_and_not_judged() -> None:
    outside = changed_once(2)
    outside.begin("k", "c1", InstanceRegistered(0, "c1", "web", INSTANCES[1]), 3_000)
    outside.shown({"c1": View(1, (("web", INSTANCES[1]),))}, 3_001, 3_002, "it shows")
    assert outside.in_parts == 1


def away_for(ms: int, slack: Slack) -> NodeOutside:
    """d cannot be reached for so long, and is back."""
    outside = NodeOutside("a", ["b", "c", "d"], beside_nodes(profile_named("nacos-2.2.4")), slack)
    outside.sent("s", "b", Snapshot(), 0)
    outside.ended("s", CallResult.SUCCESS, (), 10)
    ask(outside, ClientConnected(0, "c1"), 1_000, takes_ms=2)
    outside.peer_left("d", 20_000)
    outside.peer_back("d", 20_000 + ms)
    return outside


def test_a_server_that_waits_for_other_members_notices_a_lost_member_later() -> None:
    """Three seconds each, before the turn of the one that left: 13.5 s from one report to it to the next were seen."""
    verify = Verify("c1", 0)
    away_for(16_000, at_leisure()).sent("v", "d", verify, 36_100)
    for slack, ms in ((Slack(), 16_000), (at_leisure(), 24_000)):
        with pytest.raises(Unexplained, match="d is DOWN or SUSPICIOUS there"):
            away_for(ms, slack).sent("v", "d", verify, 20_100 + ms)


def test_a_request_sent_before_a_report_failed_may_arrive_after_it() -> None:
    """The member answers the report while another request is on its way, and the server has no answer yet."""
    verify = Verify("c1", 0)
    for slack, later_ms in ((Slack(), 0), (at_leisure(), 400)):
        refused = reported_in_vain(slack)
        with pytest.raises(Unexplained, match="d is SUSPICIOUS there"):
            refused.sent("v", "d", verify, 30_000 + later_ms)
    reported_in_vain(at_leisure()).sent("v", "d", verify, 30_004)


def test_a_report_that_is_answered_after_a_long_stall_may_have_been_given_up() -> None:
    """Five seconds in which nothing ran: the server kept the member for UP."""
    slack = at_leisure()
    slack.measure(0, 5_000)
    stalled = reported_in_vain(slack)
    slack.measure(0, 0)
    stalled.sent("v", "d", Verify("c1", 0), 50_001)


@pytest.mark.parametrize(
    ("unsettled_ms", "is_held", "may_be_unread"),
    [(28_000, False, True), (26_000, False, False), (28_000, True, True), (26_000, True, False), (None, False, False)],
)
def test_the_answer_to_a_report_may_be_unread_if_its_connection_was_lost_or_held_meanwhile(
    unsettled_ms: int | None, *, is_held: bool, may_be_unread: bool
) -> None:
    """A real 2.5.1 sent a DELETE to a member 1.5 s after that had refused a report, and 2.2 s after it had replaced its
    connection to it."""
    outside = away_for(0, at_leisure())
    outside.reported("d", CallResult.SUCCESS, 25_000)
    if unsettled_ms is not None and is_held:
        outside.peer_waits("d", unsettled_ms - 500, waits=True)
        outside.peer_waits("d", unsettled_ms, waits=False)
    elif unsettled_ms is not None:
        outside.peer_left("d", unsettled_ms)
        outside.peer_back("d", unsettled_ms + 2)
    outside.reported("d", CallResult.FAIL, 30_000)
    with nullcontext() if may_be_unread else pytest.raises(Unexplained, match="SUSPICIOUS there"):
        outside.sent("v", "d", Verify("c1", 0), 31_500)


@pytest.mark.parametrize(("answered_ms", "is_read"), [(35_002, False), (38_500, True)])
def test_the_success_of_a_report_that_was_held_may_be_unread(answered_ms: int, *, is_read: bool) -> None:
    """A real 2.5.1 had given up a report 0.5 s before it reached its member, and did not verify with that for 8 s."""
    outside = reported_in_vain(at_leisure())
    outside.peer_waits("d", 30_500, waits=True)
    outside.peer_waits("d", 35_000, waits=False)
    outside.reported("d", CallResult.SUCCESS, answered_ms)
    for at_ms in range(answered_ms + 100, answered_ms + 9_900, 4_900):
        outside.check_clients(["c1"], at_ms)
        for peer in "bc":
            outside.sent(f"v{peer}{at_ms}", peer, Verify("c1", 0), at_ms)
            outside.ended(f"v{peer}{at_ms}", CallResult.SUCCESS, (), at_ms + 1)
    with pytest.raises(Unexplained, match="it has sent no VERIFY to d") if is_read else nullcontext():
        outside.check_clients(["c1"], answered_ms + 9_900)


def reported_in_vain(slack: Slack) -> NodeOutside:
    """d has answered a report with failure at 30,000 ms."""
    outside = away_for(0, slack)
    outside.reported("d", CallResult.SUCCESS, 30_000)
    outside.reported("d", CallResult.FAIL, 30_000)
    return outside


@pytest.mark.parametrize("result", [CallResult.SUCCESS, CallResult.UNREADABLE, CallResult.UNHEARD])
@pytest.mark.parametrize("answered_ms", [3_210, 6_150])
@pytest.mark.parametrize("is_repeated", [True, False])
def test_an_answer_that_takes_as_long_as_the_node_waits_may_come_too_late(
    result: CallResult, answered_ms: int, *, is_repeated: bool
) -> None:
    """Answers after which a node does not repeat its request: it may have repeated it after its own time-out."""
    outside = changed_once(2)
    change = Change("c1", 1, (("web", INSTANCES[0]),))
    outside.sent("c", "b", change, 3_200)
    outside.ended("c", result, (), answered_ms)
    if not is_repeated:
        outside.clients["c1"].settle(20_000)
    elif answered_ms == 6_150:
        outside.sent("c", "b", change, 9_200)
    else:
        with pytest.raises(Unexplained, match="expects no CHANGE and no DELETE"):
            outside.sent("c", "b", change, 9_200)


@pytest.mark.parametrize(("answered_ms", "is_owed"), [(6_010, True), (8_950, False)])
def test_a_failed_verify_is_repaired_unless_the_failure_may_have_come_too_late(
    answered_ms: int, *, is_owed: bool
) -> None:
    outside = changed_once(2)
    outside.sent("c", "b", Change("c1", 1, (("web", INSTANCES[0]),)), 3_200)
    outside.ended("c", CallResult.SUCCESS, (), 3_210)
    outside.sent("v", "b", Verify("c1", 1), 6_000)
    outside.ended("v", CallResult.FAIL, (), answered_ms)
    with pytest.raises(Unexplained, match="the model expects CHANGE c1 to b") if is_owed else nullcontext():
        outside.clients["c1"].settle(20_000)


@pytest.mark.parametrize(("left_ms", "may_be_lost"), [(3_300, True), (4_000, False)])
def test_an_answer_may_be_lost_with_the_connection_on_which_it_comes(left_ms: int, *, may_be_lost: bool) -> None:
    outside = changed_once(2)
    change = Change("c1", 1, (("web", INSTANCES[0]),))
    outside.sent("c", "b", change, 3_200)
    outside.ended("c", CallResult.SUCCESS, (), 3_210)
    outside.peer_left("b", left_ms)
    outside.peer_back("b", 6_000)
    with nullcontext() if may_be_lost else pytest.raises(Unexplained, match="expects no CHANGE and no DELETE"):
        outside.sent("again", "b", change, 7_000)


@pytest.mark.parametrize(
    ("profile", "content", "revision", "sent_ms", "is_torn"),
    [
        ("nacos-2.3.2", 1, 1, 5_100, True),
        ("nacos-2.3.2", 0, 2, 5_100, True),
        ("nacos-2.3.2", 1, 1, 6_000, False),
        ("nacos-2.3.2", 1, 3, 5_100, False),
        ("strict", 1, 1, 5_100, False),
    ],
)
def test_a_change_sent_in_the_moment_of_another_may_have_the_content_of_one_and_the_revision_of_the_other(
    profile: str, content: int, revision: int, sent_ms: int, *, is_torn: bool
) -> None:
    """B05, seen on a real 2.5.1. c1 changes at 5,000 ms, while a retry of its first CHANGE is due."""
    outside = changed_once(2, profile=profile)
    change = Change("c1", 1, (("web", INSTANCES[0]),))
    outside.sent("c", "b", change, 3_200)
    outside.ended("c", CallResult.ERROR, (), 3_210)
    ask(outside, InstanceRegistered(0, "c1", "web", INSTANCES[1]), 5_000, 2)
    torn = Change("c1", revision, (("web", INSTANCES[content]),))
    if is_torn:
        outside.sent("t", "b", torn, sent_ms)
        assert outside.undecided == {Undecided.IN_PARTS: 1}
    else:
        with pytest.raises(Unexplained, match="it sends CHANGE"):
            outside.sent("t", "b", torn, sent_ms)


def left_at_3000(slack: Slack) -> NodeOutside:
    """c1 closes its connection, 2 s after it has registered; b has been sent nothing of it so far."""
    outside = changed_once(2, slack)
    outside.begin("k", "c1", ClientDisconnected(0, "c1"), 3_000)
    outside.notice("k", "c1", 3_005)
    return outside


def test_a_server_finds_out_later_that_a_client_has_left() -> None:
    """A busy 2.3.2 was observed to send its content 357 ms after that."""
    change = Change("c1", 1, (("web", INSTANCES[0]),))
    left_at_3000(at_leisure()).sent("c", "b", change, 3_500)
    with pytest.raises(Unexplained, match="expects DELETE c1 to b by 3205 ms"):
        left_at_3000(Slack()).sent("c", "b", change, 3_500)
    never = left_at_3000(at_leisure())
    with pytest.raises(Unexplained, match="DELETE c1 to b by"):
        never.shown({"c1": View(1, (("web", INSTANCES[0]),))}, 20_000, 20_000, "it shows")


def test_a_client_in_too_many_states_is_left_alone_from_the_very_observation_that_shows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its earlier states explain nothing after that."""
    outside = changed_twice(2)
    monkeypatch.setattr("distro_model.outside.client.STATES_MAX", 0)
    outside.shown({"c1": View(7, ())}, 6_000, 6_000, "it shows")
    assert outside.undecided == {Undecided.STATES: 1}


def test_requests_to_several_members_may_be_under_way_while_a_client_changes() -> None:
    """Seen on a real 2.5.1, whose connections to two members had just been made again."""
    first = Change("c1", 1, (("web", INSTANCES[0]),))
    for late_ms in (0, 2_000):
        outside = NodeOutside("a", ["b", "c", "d"], beside_nodes(profile_named("nacos-2.3.2")), Slack(1_000, 300))
        outside.sent("s", "b", Snapshot(), 0)
        outside.ended("s", CallResult.SUCCESS, (), 10)
        ask(outside, ClientConnected(0, "c1"), 1_000, 2)
        ask(outside, InstanceRegistered(0, "c1", "web", INSTANCES[0]), 2_000, 2)
        ask(outside, InstanceRegistered(0, "c1", "web", INSTANCES[1]), 3_100, 2)
        with pytest.raises(Unexplained, match="CHANGE c1 revision 1") if late_ms else nullcontext():
            for peer in "bcd":
                outside.sent(peer, peer, first, 3_400 + late_ms)


@pytest.mark.parametrize(("failed_ms", "sent_ms", "both"), [(3_300, 4_300, True), (5_500, 8_500, False)])
def test_a_change_may_fail_before_the_delete_of_its_client_is_queued(
    failed_ms: int, sent_ms: int, *, both: bool
) -> None:
    """Seen on a busy 2.5.1. A failure after that replaces the DELETE (B24), and nothing is sent."""
    for is_sent in (True, False):
        outside = changed_once(2, Slack(1_000, 300))
        outside.sent("c", "b", Change("c1", 1, (("web", INSTANCES[0]),)), 3_100)
        outside.begin("left", "c1", ClientDisconnected(0, "c1"), 3_200)
        outside.finish("left", "c1", None, 3_202, "it leaves")
        outside.ended("c", CallResult.UNREACHABLE, (), failed_ms)
        outside.check_clients(["c1"], failed_ms + 400)
        with nullcontext() if both or not is_sent else pytest.raises(Unexplained, match="execute-a-task"):
            if is_sent:
                outside.sent("d", "b", Delete("c1"), sent_ms)
            outside.check_clients(["c1"], failed_ms + 9_000)


def test_the_time_of_an_unseen_request_is_kept_once() -> None:
    """A request is under way for a second while three tasks are due, and all checks run repeatedly."""
    outside = NodeOutside("a", ["b", "c", "d"], beside_nodes(profile_named("nacos-2.2.4")), at_leisure())
    ask(outside, ClientConnected(0, "c1"), 1_000, 2)
    ask(outside, InstanceRegistered(0, "c1", "web", INSTANCES[0]), 2_000, 2)
    outside.begin("k", "c1", InstanceRegistered(0, "c1", "api", INSTANCES[0]), 3_100)
    for now_ms in range(3_102, 4_100, 2):
        outside.check(now_ms)
    assert outside.undecided.total() == 0
    with pytest.raises(Unexplained, match=r"expects CHANGE c1 .* to b by"):
        outside.shown({}, 9_000, 9_000, "it shows")


def test_the_history_of_a_client_names_its_messages_and_those_of_members_and_no_other_client() -> None:
    outside = changed_once(answers_take_ms=0)
    outside.begin("k9", "c2", ClientConnected(4_000, "c2"), 4_000)
    outside.sent("c", "b", Change("c1", 1, (("web", INSTANCES[0]),)), 4_050)
    outside.peer_left("b", 4_100)
    history = outside.history.of("c1")
    assert history[-2:] == (
        "4050 ms: it sends CHANGE c1 revision 1 to b",
        "4100 ms: requests to b may fail from now on",
    )
    assert not any("c2" in line for line in history)


def test_a_view_that_stays_the_same_is_one_line_of_the_history() -> None:
    outside = changed_once(answers_take_ms=0)
    view = View(1, (("web", INSTANCES[0]),))
    for at_ms in (3_000, 3_100, 3_200):
        outside.shown({"c1": view}, at_ms, at_ms, "it shows")
    assert [line for line in outside.history.of("c1") if "it shows" in line] == [
        "3000 ms: it shows revision 1 with web 10.0.0.1:80"
    ]
