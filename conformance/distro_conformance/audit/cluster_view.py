"""The member list of each member, with states and releases. Other differences are often caused by a difference here.

A member sends no requests to a member that its list lacks or marks as DOWN; the clients of the HTTP API of a DOWN
member get another owner. Members know each other by the addresses in their lists, so the lists are compared with each
other, and not with the names on the command line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from distro_conformance.audit.difference_tracker import Views
from distro_conformance.audit.member import Reading
from distro_protos.addresses import one_name


class Matter(StrEnum):
    LIST = "list"
    STATE = "state"
    RELEASE = "release"


LISTED, MISSING = "lists it", "does not list it"


class About(NamedTuple):
    matter: Matter
    member: str  # the member about which views differ; empty for RELEASE, which each member reports of itself


@dataclass(frozen=True, slots=True)
class Disagreement:
    """`views`: the view of each member. Different releases are no violation: a cluster may be in an upgrade."""

    matter: Matter
    about: str
    since: datetime
    seen_for_s: float
    views: Views

    @property
    def is_violation(self) -> bool:
        return self.matter is not Matter.RELEASE

    def sentence(self) -> str:
        """The disagreement as a sentence."""
        members: dict[str, list[str]] = {}
        for member, view in self.views.items():
            members.setdefault(view, []).append(member)
        sides = (f"{view} {_verb(self.matter, len(who))} {', '.join(who)}" for view, who in sorted(members.items()))
        subject = f"member {self.about}" if self.about else "releases"
        since = f"since {self.since:%H:%M:%S} ({self.seen_for_s:.0f} s)"
        if self.matter is Matter.LIST:
            lacking, having = (", ".join(members.get(view, ())) for view in (MISSING, LISTED))
            return f"{subject} {since}: it is not in the list of {lacking}; it is in the list of {having}"
        return f"{subject} {since}: {'; '.join(sides)}"


def _verb(matter: Matter, count: int) -> str:
    return "to" if matter is Matter.STATE else "is" if count == 1 else "are"


def views_of_each_other(readings: Iterable[Reading]) -> Mapping[About, Views]:
    """The views of the members that report their list; the others are left out."""
    listing = {reading.member: _by_name(reading.peers) for reading in readings if reading.peers}
    listed = sorted(set().union(*listing.values())) if listing else []
    views: dict[About, Views] = {}
    for member in listed:
        views[About(Matter.LIST, member)] = {
            name: LISTED if member in peers else MISSING for name, peers in listing.items()
        }
        states = {name: peers[member] for name, peers in listing.items() if member in peers}
        views[About(Matter.STATE, member)] = states
    releases = {reading.member: reading.release for reading in readings if reading.release}
    views[About(Matter.RELEASE, "")] = releases
    return views


def _by_name(peers: Mapping[str, str]) -> dict[str, str]:
    return {one_name(address): state for address, state in peers.items()}
