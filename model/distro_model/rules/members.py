"""Members: which are believed to be UP, and the reports that keep them so.

A report goes to one member at a time, round robin. Its end sets the state of the target, its arrival the state of the
sender; so a link that is broken in one direction makes a member flap (D16).
"""

from __future__ import annotations

from distro_model.events import CallEnded, MembersListed, Reply, ReportDue, ReportToNotUpDue, RequestReceived, Send
from distro_model.messages import SUCCESS, CallResult, Report
from distro_model.node import Member, MemberState, NodeState, Step
from distro_model.profile import Profile
from distro_model.rules.rule import instead_of, rule
from distro_model.rules.sync import sent_until_acknowledged


@rule("report", source="member-report; ServerMemberManager.MemberInfoReportTask")
def on_report_due(node: NodeState, event: ReportDue, profile: Profile) -> Step:
    """One member at a time, round robin."""
    return Step(node, (Send(reported_member(node, event.at_ms, profile), Report()),))


def reported_member(node: NodeState, at_ms: int, profile: Profile) -> str:
    """The n-th report goes to the n-th other member; n follows from the time, so the node does not store it."""
    reports_before = (at_ms - node.started_ms - profile.report_first_ms) // profile.report_interval_ms
    return node.others[reports_before % len(node.others)]


@rule("report-to-members-not-up", source="member-report-not-up; ServerMemberManager.UnhealthyMemberInfoReportTask")
def on_report_to_not_up_due(node: NodeState, _event: ReportToNotUpDue, _: Profile) -> Step:
    """From 2.3.0 on, in a separate period: a member that is back is found sooner than by the round of reports."""
    not_up = (each.name for each in node.members if each.state is not MemberState.UP)
    return Step(node, tuple(Send(name, Report()) for name in not_up))


@rule("take-a-report", source="member-reported; MemberReportHandler")
def on_report(node: NodeState, event: RequestReceived, _report: Report, _: Profile) -> Step:
    """The reporter is UP. Its count of failures stays, so that its next failure may lead straight to DOWN."""
    if event.source not in node.others:
        return Step(node, (Reply(SUCCESS),))
    reporter = node.member(event.source)
    after = node.with_member(Member(reporter.name, MemberState.UP, reporter.failures))
    return Step(after, (Reply(SUCCESS),))


@rule("end-a-report", source="member-report-end; MemberUtil.onSuccess, MemberUtil.onFail")
def on_report_ended(node: NodeState, event: CallEnded, _report: Report, profile: Profile) -> Step:
    """Success clears the target, failure makes it suspicious and in the end DOWN."""
    if event.target not in node.others:
        return Step(node)
    return Step(node.with_member(judged(node.member(event.target), event.answer.result, profile)))


@rule("judge-a-report", source="member-report-end; MemberUtil.onFail")
def judged(target: Member, result: CallResult, profile: Profile) -> Member:
    """Over gRPC a typed failure counts, and a connection that does not run; any other failure is ignored (D15)."""
    if result is CallResult.SUCCESS:
        return Member(target.name)
    return failed(target, profile) if result in (CallResult.FAIL, CallResult.UNREACHABLE) else target


@instead_of(judged)
def judged_over_http(target: Member, result: CallResult, profile: Profile) -> Member:
    """Over HTTP every failure counts, a time-out too, and a refused connection means DOWN at once."""
    if result is CallResult.SUCCESS:
        return Member(target.name)
    after = failed(target, profile)
    return Member(after.name, MemberState.DOWN, after.failures) if result is CallResult.UNREACHABLE else after


def failed(target: Member, profile: Profile) -> Member:
    failures = min(target.failures, profile.failures_until_down) + 1  # a higher count would change nothing
    is_down = failures > profile.failures_until_down
    return Member(target.name, MemberState.DOWN if is_down else MemberState.SUSPICIOUS, failures)


@rule("read-the-member-list", source="member-list, member-self; ServerMemberManager.memberChange")
def on_listed(node: NodeState, event: MembersListed, profile: Profile) -> Step:
    """A new member is DOWN until it reports or answers a report; the state of the others is unchanged: the list says
    only that they are members (B36).

    The node itself is a member, listed or not.
    """
    others = tuple(sorted(event.others))
    members = tuple(listed(node, name, profile) for name in others)
    joined = tuple(name for name in others if name not in node.others)
    pending = (each for each in node.unacknowledged if each[1] in others)
    after = node.changed(others=others, members=members).with_unacknowledged(pending)
    return Step(handed_over(after, joined, event.at_ms, profile))


@rule("hand-over-to-new-members", source="owner-handover")
def handed_over(node: NodeState, joined: tuple[str, ...], at_ms: int, profile: Profile) -> NodeState:
    """A member that joins is sent the changes that ip:port clients have requested from this node: it may own them from
    now on (B22). Changes that this node concluded from missing beats are not sent."""
    for client in node.clients:
        for peer in joined if client.accepted else ():
            node = sent_until_acknowledged(node, client.name, peer, at_ms, profile)
    return node


@instead_of(handed_over)
def not_handed_over(node: NodeState, _joined: tuple[str, ...], _at_ms: int, _: Profile) -> NodeState:
    """Nothing is sent because a member joins (B22)."""
    return node


@rule("list-a-member", source="member-list")
def listed(node: NodeState, name: str, profile: Profile) -> Member:
    """A new node in the list is DOWN until it reports or answers a report; the state of the others is unchanged."""
    return (
        Member(name, MemberState.DOWN, profile.failures_until_down + 1)
        if name not in node.others
        else node.member(name)
    )


@instead_of(listed)
def listed_up(node: NodeState, name: str, _: Profile) -> Member:
    """A node that appears in the list is UP, whether or not a server listens there (B36)."""
    return Member(name) if name not in node.others else node.member(name)
