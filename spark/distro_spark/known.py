"""How known defects show in traces: the symptoms by which a check of a release tells them from new violations.

A symptom explains a violation of an invariant in the releases that have the defect (`distro_model.defects`): a look at
the rows of the violation's client that says whether the defect was at work, by what was stamped, sent, answered and
when. "This release fails this invariant" excuses nothing. What is excused is never dropped: it is listed with the id of
the defect, counted apart, and does not make the verdict `violates`. `strict` has no defects; every violation there
counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from distro_model.defects import Clause, Symptom
from distro_model.defects.symptom import of
from distro_model.release import Span
from distro_spark.history import ClientHistory, Violation
from distro_spark.symptoms import batches, leases, receiving, revisions, sending, torn


class Shown(NamedTuple):
    """What a symptom of traces looks at: a violation and all rows of its client."""

    history: ClientHistory
    violation: Violation


def _symptom(
    bug: str,
    about: tuple[str, ...],
    shows: Callable[[ClientHistory, Violation], bool],
    sentence: str,
    releases: Span | None = None,
) -> Symptom[Shown]:
    clause = Clause[Shown](sentence, lambda found: shows(found.history, found.violation))
    return Symptom(bug=bug, about=about, sentence=sentence, clauses=(clause,), releases=releases)


KNOWN: tuple[Symptom[Shown], ...] = (
    _symptom(
        "B05",
        ("INV-CONV", "INV-REV"),
        torn.applied_among_others,
        "Two CHANGEs of a client are applied at once, service by service: the content is neither's, or the older "
        "one's under the newer revision.",
    ),
    _symptom(
        "B05",
        ("INV-REV",),
        torn.given_while_applied,
        "A snapshot is made while a CHANGE is being applied: it has the revision of that, and not its content.",
        Span(since="2.1.2"),
    ),
    _symptom(
        "B05",
        ("INV-CONV", "INV-REV"),
        torn.read_while_it_changed,
        "A CHANGE is made in two steps: the content is read, then the revision of what has become of it.",
        Span(since="2.1.2"),
    ),
    _symptom(
        "B05",
        ("INV-REV",),
        torn.sent_before_it_was_counted,
        "A change is made in two steps, the content and then the revision; a CHANGE between them has the old revision.",
        Span(since="2.1.2"),
    ),
    _symptom(
        "B05",
        ("INV-ACK",),
        torn.removed_while_applied,
        "A DELETE comes between two steps of a CHANGE, whose further ones go into a client that is gone.",
    ),
    _symptom(
        "B05",
        ("INV-VERIFY",),
        torn.verified_while_applied,
        "A verify comes between two steps of a CHANGE, and finds a client that is not whole yet.",
    ),
    _symptom(
        "B10",
        ("INV-REV",),
        revisions.creation_stamp,
        "A replica takes over the content of a later sync, but keeps the revision that it was created with.",
    ),
    _symptom(
        "B10",
        ("INV-CONV", "INV-REV"),
        revisions.stamp_over_a_snapshot,
        "A late snapshot replaces the content of a newer copy, which keeps the revision that it was created with.",
    ),
    _symptom(
        "B24",
        ("INV-CONV", "INV-DELETE"),
        sending.swallowed_delete,
        "The retry of a CHANGE that fails after the client left replaces the queued DELETE; no DELETE is sent.",
    ),
    _symptom(
        "B27",
        ("INV-CONV",),
        receiving.came_back,
        "A snapshot that comes late brings a client back that has left, until its lease ends.",
    ),
    _symptom(
        "B31",
        ("INV-LIVE",),
        leases.half_a_minute,
        "The lease is 30 s: a short outage removes the copies of clients that are connected.",
    ),
    _symptom(
        "B33",
        ("INV-INIT",),
        receiving.gave_a_snapshot,
        "A node that is not loaded itself gives a snapshot.",
    ),
    _symptom(
        "B17",
        ("INV-LIVE",),
        leases.not_renewed_by_sync,
        "Only a verify renews a lease: the copy of a client that changes before each one expires.",
    ),
    _symptom(
        "B17",
        ("INV-CONV",),
        leases.about_to_come_back,
        "Only a verify renews a lease: the copy of a client that changes before each one ends, until the next round.",
    ),
    _symptom(
        "D7",
        ("INV-CONV",),
        sending.not_passed_on,
        "A request by version 2 of the HTTP API stays at the node that was asked.",
    ),
    _symptom(
        "B03",
        ("INV-SILENT",),
        leases.fell_silent,
        "No connection is asked for a sign of life: one that died in silence is kept.",
    ),
    _symptom(
        "B06",
        ("INV-REV",),
        revisions.health_not_counted,
        "The revision of a client of the HTTP API stays when its beats stay out, and is a sum over its services.",
    ),
    _symptom(
        "B06",
        ("INV-REV",),
        revisions.expired_at_its_owner,
        "The revision of a client of the HTTP API stays when its beats stay out, and is a sum over its services.",
    ),
    _symptom(
        "B18",
        ("INV-CONV", "INV-REV"),
        revisions.not_counted,
        "A batch leaves the revision as it was: one revision stands for two contents, and a verify confirms the copy "
        "that missed the batch.",
    ),
    _symptom(
        "B19",
        ("INV-ACK", "INV-CONV"),
        batches.batch_not_put_over,
        "A batch over a single instance raises, is acknowledged and not applied.",
    ),
    _symptom(
        "B19",
        ("INV-ACK", "INV-CONV"),
        batches.uncounted_not_put_over,
        "A batch over a single instance raises, is acknowledged and not applied. (Where a recording does not say "
        "what carries a batch; in 2.1.1 and 2.3.0 nothing else tells one.)",
        Span("2.1.2", "2.2.4"),
    ),
    _symptom(
        "B19",
        ("INV-LIVE",),
        batches.batch_never_put_over,
        "A batch over a single instance raises each time that a failed verify sends it anew; the copy's lease ends.",
        Span("2.1.2", "2.3.0"),
    ),
    _symptom(
        "B19",
        ("INV-CONV",),
        batches.owner_never_loaded,
        "A batch over a single instance raises in a snapshot as well: its node is never loaded and verifies nobody.",
    ),
    _symptom(
        "B02",
        ("INV-CONV",),
        receiving.confirmed_unread,
        "A verify tests existence only, so a copy that missed what it acknowledged is confirmed for ever.",
    ),
    _symptom(
        "B01",
        ("INV-REV", "INV-NATIVE"),
        receiving.native_overwritten,
        "A late snapshot or CHANGE is applied to a client that is connected here; its next change reuses a revision.",
    ),
    _symptom(
        "B01",
        ("INV-CONV",),
        receiving.confirmed_as_before,
        "A late snapshot or CHANGE is applied to a client that is connected here, under the revision that it has: a "
        "verify confirms the copy that misses it.",
        Span(since="2.1.2"),
    ),
)
"""A symptom is a conjunction, and a clause here is still a whole symptom of the old form."""


def known_bug(invariant: str, history: ClientHistory, violation: Violation) -> str | None:
    """The id of the defect that explains a violation, or None."""
    found = Shown(history, violation)
    return min((each.bug for each in of(KNOWN, invariant, history.profile) if not each.missing(found)), default=None)


def may_be_known(invariant: str, profile: str) -> bool:
    """Whether any symptom is about that invariant in that release."""
    return bool(of(KNOWN, invariant, profile))
