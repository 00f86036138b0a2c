"""Mutants of what goes on inside one node: requests, set-ups, local events, the service index."""

from __future__ import annotations

from dataclasses import replace

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.profiles import Profile


def without_second_line(profile: Profile) -> Profile:
    """A CHANGE whose client is gone is skipped, as in every release (B24).

    That is harmless by itself. It is what turns a CHANGE that took the place of a DELETE into a lost DELETE; `strict`
    sends the DELETE all the same, and would hide the mutants that are about the order of the two.
    """
    return replace(profile, change_of_gone_client_deletes=False)


INSIDE = (
    Mutant(
        "B08",
        "Each class of local events has its own queue: a client's change may be handled after its disconnection.",
        lambda profile: replace(without_second_line(profile), queue_per_event_class=True),
        ("INV-DELETE",),
        Bounds(changes=1, drops=0, swallows=0, event_queue=2),
    ),
    Mutant(
        "B12",
        "A request for a client that the node does not know is answered with SUCCESS.",
        lambda profile: replace(profile, refuses_unknown_client=False),
        ("INV-CLIENTACK",),
        Bounds(nodes=1, changes=1, drops=0, swallows=0, slow_setups=1),
    ),
    Mutant(
        "B13",
        "The index hears of registrations and of removed clients through two queues, in either order.",
        lambda profile: replace(profile, releases_in_order=False),
        ("INV-INDEX",),
        Bounds(nodes=1, changes=1, drops=0, swallows=0, event_queue=2, index=1),
    ),
    Mutant(
        "B14",
        "Nothing ever compares the service index with the table of clients: one lost event leaves it wrong for good.",
        lambda profile: replace(profile, audits_index=False),
        ("INV-INDEX",),
        Bounds(changes=1, drops=0, swallows=0, event_queue=2, index=1, lost_events=1, in_flight=1),
    ),
    Mutant(
        "B25",
        "A request changes and announces the client that it looked up, even if that has left the table since.",
        lambda profile: replace(without_second_line(profile), rechecks_client=False),
        ("INV-DELETE", "INV-INDEX"),
        Bounds(changes=2, drops=0, swallows=0, slow_requests=1, index=1),
    ),
    Mutant(
        "B28",
        "An event that finds its queue full is handled at once, ahead of those that wait.",
        lambda profile: replace(without_second_line(profile), overflow_overtakes=True),
        ("INV-DELETE", "INV-INDEX"),
        Bounds(changes=1, drops=0, swallows=0, event_queue=1, index=1),
    ),
    Mutant(
        "B40",
        "A transport that ends between the check and the insertion of its connection leaves a client for ever.",
        lambda profile: replace(profile, rechecks_transport=False),
        ("INV-OWNER", "INV-DELETE"),
        Bounds(nodes=1, changes=1, drops=0, swallows=0, slow_setups=1),
    ),
    Mutant(
        "B44",
        "A push is published before the index has the entry that caused it.",
        lambda profile: replace(profile, indexes_before_push=False),
        ("INV-INDEX",),
        Bounds(nodes=1, changes=1, drops=0, swallows=0, event_queue=2, index=1),
    ),
)
