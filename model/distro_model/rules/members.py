"""Members: who is believed to be UP, and the reports that keep it so.

A report goes to one member at a time, round robin. Its end decides about the target, its arrival about the sender; so
a link that is broken in one direction makes a member flap (D16).
"""

from __future__ import annotations

from distro_model.events import CallEnded, Reply, ReportDue, RequestReceived, Send
from distro_model.messages import SUCCESS, CallResult, Report
from distro_model.node import Member, MemberState, NodeState, Step
from distro_model.profiles import Profile
from distro_model.rules.rule import rule


@rule("member report", source="wire-protocol.md 4.3; ServerMemberManager.MemberInfoReportTask")
def on_report_due(node: NodeState, event: ReportDue, profile: Profile) -> Step:
    return Step(node, (Send(reported_member(node, event.at_ms, profile), Report()),))


def reported_member(node: NodeState, at_ms: int, profile: Profile) -> str:
    """The n-th report goes to the n-th other member; n follows from the time, so the node need not remember it."""
    reports_before = (at_ms - node.started_ms - profile.report_first_ms) // profile.report_interval_ms
    return node.others[reports_before % len(node.others)]


@rule("report received", source="wire-protocol.md 4.3; real-nacos.md 5 (failures are kept); MemberReportHandler")
def on_report(node: NodeState, event: RequestReceived) -> Step:
    """The reporter is UP. Its count of failures stays, so that its next failure may lead straight to DOWN."""
    reporter = node.member(event.source)
    return Step(node.with_member(Member(reporter.name, MemberState.UP, reporter.failures)), (Reply(SUCCESS),))


@rule("report ended", source="wire-protocol.md 4.3; MemberUtil.onSuccess, MemberUtil.onFail")
def on_report_ended(node: NodeState, event: CallEnded, profile: Profile) -> Step:
    """Success clears the target, failure makes it suspicious and in the end DOWN; a time-out says nothing (D15)."""
    target = node.member(event.target)
    match event.answer.result:
        case CallResult.SUCCESS:
            return Step(node.with_member(Member(target.name)))
        case CallResult.FAIL | CallResult.UNREACHABLE:
            failures = min(target.failures, profile.failures_until_down) + 1  # more would change nothing
            state = MemberState.DOWN if failures > profile.failures_until_down else MemberState.SUSPICIOUS
            return Step(node.with_member(Member(target.name, state, failures)))
        case _:
            return Step(node)
