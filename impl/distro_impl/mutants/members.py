"""Members and owners."""

from __future__ import annotations

from typing import Any

from distro_impl.distro.mapper import DistroMapper
from distro_impl.membership import report_handler
from distro_impl.membership.members import Member, ServerMemberManager
from distro_impl.mutants.mutant import Change, Mutant, instead


def _listed(self: Any) -> tuple[str, ...]:
    return tuple(member.address for member in self._members.all_members())


def _nameless(old: Any) -> Any:
    return lambda self: {key: value for key, value in old(self).items() if key != "address"}


def _versionless(old: Any) -> Any:
    def to_json(self: Any) -> Any:
        data = old(self)
        return {**data, "extendInfo": {k: v for k, v in data["extendInfo"].items() if k != "version"}}

    return to_json


def _remembers_failures(old: Any) -> Any:
    def report_succeeded(self: Any, member: Any, node: Any) -> None:
        failures = member.fail_access_count
        old(self, member, node)
        member.fail_access_count = failures

    return report_succeeded


def _answers_nobody(old: Any) -> Any:
    def success(**fields: Any) -> Any:
        return old(**{name: value for name, value in fields.items() if name != "node"})

    return success


MUTANTS = (
    Mutant(
        "m-owner-includes-down",
        "Members that are DOWN keep their places among the owners.",
        changes=(instead(DistroMapper, "_read_places", _listed),),
    ),
    Mutant(
        "m-everybody-owns-everything",
        "Every ip:port client is served where it asks.",
        changes=(instead(DistroMapper, "responsible", lambda *_: True),),
    ),
    Mutant(
        "B36",
        "A node that is new in the member list is UP, whether or not anybody listens there.",
        {"newcomer_starts_down": False},
    ),
    Mutant(
        "m-nobody-goes-down",
        "A refused report leaves its member UP.",
        changes=(instead(ServerMemberManager, "report_failed", lambda *_, **__: None),),
    ),
    Mutant(
        "m-failures-are-never-forgotten",
        "A report that succeeds leaves the count of failures as it is.",
        changes=(Change(ServerMemberManager, "report_succeeded", _remembers_failures),),
    ),
    Mutant(
        "m-nobody-comes-back",
        "A report of a member that is DOWN leaves it so.",
        changes=(
            instead(ServerMemberManager, "receive_report", lambda *_: True),
            instead(ServerMemberManager, "report_succeeded", lambda *_: None),
        ),
    ),
    Mutant(
        "m-report-without-address", "A report does not say of whom.", changes=(Change(Member, "to_json", _nameless),)
    ),
    Mutant(
        "m-report-without-version",
        "A report does not tell the version.",
        changes=(Change(Member, "to_json", _versionless),),
    ),
    Mutant(
        "m-report-is-answered-by-nobody",
        "The answer to a report lacks the node.",
        changes=(Change(report_handler, "success", _answers_nobody),),
    ),
    Mutant(
        "m-anonymous-report-is-taken",
        "A report without an address is taken.",
        changes=(instead(report_handler, "is_legal", lambda _: True),),
    ),
)
