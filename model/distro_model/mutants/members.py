"""Mutants of ip:port clients, of who owns them, and of who is a member."""

from __future__ import annotations

from dataclasses import replace

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.profiles import OwnerRing

MEMBERS = (
    Mutant(
        "B06",
        "What a beat or its absence changes in an ip:port client leaves its revision as it was.",
        lambda profile: replace(profile, health_changes_revision=False),
        ("INV-CONV", "INV-VERIFY", "INV-REV"),
        Bounds(clients=0, ip_clients=1, changes=1, drops=0, lapses=1),
    ),
    Mutant(
        "B15",
        "The owner is computed from the members that are not DOWN; with different views it may be nobody.",
        lambda profile: replace(profile, owner_ring=OwnerRing.ALIVE),
        ("INV-OWNER",),
        Bounds(nodes=3, clients=0, ip_clients=1, changes=1, drops=0, swallows=0, flips=1, in_flight=1),
    ),
    Mutant(
        "B22",
        "A change is announced by who is the owner when its event is handled, and nothing compares age.",
        lambda profile: replace(profile, hands_over=False),
        ("INV-CLIENTACK",),
        Bounds(clients=0, ip_clients=1, changes=2, drops=0, swallows=0, flips=1, in_flight=1),
    ),
    Mutant(
        "B30",
        "Two first requests create a client twice; the beat check watches the one that is lost.",
        lambda profile: replace(profile, creates_atomically=False),
        ("INV-DEAD",),
        Bounds(nodes=1, clients=0, ip_clients=1, drops=0, swallows=0, lapses=2, races=1),
    ),
    Mutant(
        "B36",
        "A node that is new in the member list is UP, whether or not anybody listens there.",
        lambda profile: replace(profile, new_members_start_down=False),
        ("INV-OWNER",),
        Bounds(clients=0, ip_clients=1, changes=1, drops=0, swallows=0, crashes=1, leaves=1, joins=1),
    ),
    Mutant(
        "B36-refresh",
        "Reading the member list makes every member UP again.",
        lambda profile: replace(profile, list_resets_states=True),
        ("INV-OWNER",),
        Bounds(clients=0, ip_clients=1, changes=1, drops=0, swallows=0, crashes=1, refreshes=1),
    ),
    Mutant(
        "B37",
        "A node is taken for a member when its address is a part of a member's.",
        lambda profile: replace(profile, matches_parts_of_addresses=True),
        ("INV-RETRY",),
        Bounds(nodes=3, changes=1, drops=0, swallows=0, leaves=1, in_flight=1),
    ),
    Mutant(
        "B37-fall-through",
        "A task for a node that has left the member list ends with success, and is executed all the same.",
        lambda profile: replace(profile, sends_to_members_that_left=True, sends_only_to_up_members=False),
        ("INV-RETRY",),
        Bounds(changes=1, drops=1, swallows=0, leaves=1),
    ),
    Mutant(
        "v1-checksum-dual-owner-delete",
        "A verify lists what its sender owns; what the receiver attributes to the sender and is not listed is deleted.",
        lambda profile: replace(profile, verify_lists_owned=True),
        ("INV-LIVE",),
        Bounds(clients=0, ip_clients=1, changes=1, drops=0, swallows=0, flips=1, in_flight=1),
    ),
    Mutant(
        "snapshot-range-after-jitter",
        "A load asks each member for what that one owns by now; what nobody owns that is asked is missing.",
        lambda profile: replace(profile, loads_ranges=True),
        ("INV-CONV",),
        Bounds(clients=0, ip_clients=1, changes=1, drops=0, swallows=0, crashes=1),
    ),
    Mutant(
        "single-member-never-initialised",
        "A node that knows no other member waits for one before it completes its load.",
        lambda profile: replace(profile, waits_for_second_member=True),
        ("INV-LOAD",),
        Bounds(nodes=1, clients=0, drops=0, swallows=0, crashes=1),
    ),
    Mutant(
        "m-owner-includes-down",
        "Members that are DOWN stay in the ring that names the owner.",
        lambda profile: replace(profile, owner_ring=OwnerRing.CONFIGURED),
        ("INV-OWNER",),
        Bounds(clients=0, ip_clients=1, changes=1, drops=0, swallows=0, crashes=1),
    ),
    Mutant(
        "m-ipport-verify-no-beat-renew",
        "An accepted verify of an ip:port client does not count as a beat.",
        lambda profile: replace(profile, verify_renews_beats=False),
        ("INV-LIVE",),
        Bounds(clients=0, ip_clients=1, changes=1, drops=0, swallows=0, flips=1, periods=3),
    ),
)
