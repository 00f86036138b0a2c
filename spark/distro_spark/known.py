"""Known failures: what a release is known to violate, so that a check of that release tells news from history.

An entry excuses one *symptom* in one span of releases: a look at the rows of the violation's client that says whether
the bug is seen to have been at work, by what was stamped, sent, answered and when. "This release
fails this invariant" excuses nothing. What is excused is never dropped: it is listed with its number in the catalogue,
counted apart, and does not make the verdict `violates`. In `strict` nothing is known; every violation there counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from distro_spark.story import Story, Told
from distro_spark.symptoms import batches, leases, receiving, revisions, sending, torn

Symptom = Callable[[Story, Told], bool]


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """`bug` is the number in the catalogue, `source` where it was reported and repaired; both ends are included."""

    bug: str
    since: str | None
    until: str
    invariant: str
    symptom: Symptom
    text: str
    source: str

    def is_of(self, profile: str) -> bool:
        """Whether the profile is that of a release in the span; `strict` is none."""
        release = _release(profile)
        if release is None:
            return False
        return (self.since is None or _version(self.since) <= release) and release <= _version(self.until)


_LAST_READ = "3.0.3"
"""The last release that was looked at."""

KNOWN: tuple[KnownFailure, ...] = (
    KnownFailure(
        "B05",
        None,
        _LAST_READ,
        "INV-CONV",
        torn.applied_among_others,
        "Two CHANGEs of a client are applied at once, service by service: the content is neither's, or the older.",
        "alibaba/nacos #10056; docs/protocol #receive-torn",
    ),
    KnownFailure(
        "B05",
        None,
        _LAST_READ,
        "INV-REV",
        torn.applied_among_others,
        "Two CHANGEs of a client are applied at once, service by service: the older content under the newer revision.",
        "alibaba/nacos #10056; docs/protocol #receive-torn",
    ),
    KnownFailure(
        "B05",
        "2.1.2",
        _LAST_READ,
        "INV-REV",
        torn.given_while_applied,
        "A snapshot is made while a CHANGE is being applied: it has the revision of that, and not its content.",
        "alibaba/nacos #10056; docs/protocol #receive-torn",
    ),
    *(
        KnownFailure(
            "B05",
            "2.1.2",
            _LAST_READ,
            invariant,
            torn.read_while_it_changed,
            "A CHANGE is made in two steps: the content is read, then the revision of what has become of it.",
            "alibaba/nacos #10056; docs/protocol #sync-torn",
        )
        for invariant in ("INV-CONV", "INV-REV")
    ),
    KnownFailure(
        "B05",
        "2.1.2",
        _LAST_READ,
        "INV-REV",
        torn.sent_before_it_was_counted,
        "A change is made in two steps, the content and then the revision; a CHANGE between them has the old revision.",
        "alibaba/nacos #10056; seen on running 2.2.4; docs/protocol #sync-torn",
    ),
    KnownFailure(
        "B05",
        None,
        _LAST_READ,
        "INV-ACK",
        torn.removed_while_applied,
        "A DELETE comes between two steps of a CHANGE, whose further ones go into a client that is gone.",
        "alibaba/nacos #10056; docs/protocol #receive-torn",
    ),
    KnownFailure(
        "B05",
        None,
        _LAST_READ,
        "INV-VERIFY",
        torn.verified_while_applied,
        "A verify comes between two steps of a CHANGE, and finds a client that is not whole yet.",
        "alibaba/nacos #10056; docs/protocol #receive-torn",
    ),
    KnownFailure(
        "B10",
        "2.1.2",
        "2.2.4",
        "INV-REV",
        revisions.creation_stamp,
        "A replica takes over the content of a later sync, but keeps the revision that it was created with.",
        "alibaba/nacos #10056, #10693; repaired in 2.3.0 by #10553; docs/protocol #defect-d1",
    ),
    *(
        KnownFailure(
            "B10",
            "2.1.2",
            "2.2.4",
            invariant,
            revisions.stamp_over_a_snapshot,
            "A late snapshot replaces the content of a newer copy, which keeps the revision that it was created with.",
            "alibaba/nacos #10056, #10693; repaired in 2.3.0 by #10553; docs/protocol #defect-d1",
        )
        for invariant in ("INV-CONV", "INV-REV")
    ),
    KnownFailure(
        "B24",
        None,
        _LAST_READ,
        "INV-CONV",
        sending.swallowed_delete,
        "The retry of a CHANGE that fails after the client left replaces the queued DELETE; the copy stays.",
        "alibaba/nacos #10809; seen on running 2.2.4 and 2.3.2; docs/protocol #defect-d2",
    ),
    KnownFailure(
        "B24",
        None,
        _LAST_READ,
        "INV-DELETE",
        sending.swallowed_delete,
        "The retry of a CHANGE that fails after the client left replaces the queued DELETE; none is sent.",
        "alibaba/nacos #10809; seen on running 2.2.4 and 2.3.2; docs/protocol #defect-d2",
    ),
    KnownFailure(
        "B27",
        None,
        _LAST_READ,
        "INV-CONV",
        receiving.came_back,
        "A snapshot that comes late brings a client back that has left, until its lease ends.",
        "seen on running 2.2.4; docs/protocol #receive-late",
    ),
    KnownFailure(
        "B31",
        None,
        "2.0.2",
        "INV-LIVE",
        leases.half_a_minute,
        "The lease is 30 s: a short outage removes the copies of clients that are connected.",
        "B31; read in the code of the releases",
    ),
    KnownFailure(
        "B33",
        None,
        _LAST_READ,
        "INV-INIT",
        receiving.gave_a_snapshot,
        "A node that is not loaded itself gives a snapshot.",
        "B33; docs/protocol #defect-d14",
    ),
    KnownFailure(
        "B17",
        None,
        _LAST_READ,
        "INV-LIVE",
        leases.not_renewed_by_sync,
        "Only a verify renews a lease: the copy of a client that changes before each one expires.",
        "B17; read in the code of every release",
    ),
    KnownFailure(
        "B17",
        None,
        _LAST_READ,
        "INV-CONV",
        leases.about_to_come_back,
        "Only a verify renews a lease: the copy of a client that changes before each one ends, until the next round.",
        "B17; read in the code of every release",
    ),
    KnownFailure(
        "D7",
        "2.2.0",
        _LAST_READ,
        "INV-CONV",
        sending.not_passed_on,
        "A request by version 2 of the HTTP API stays at the node that was asked.",
        "alibaba/nacos #14992; seen on running 2.2.4; docs/protocol #defect-d7, #http-v2",
    ),
    KnownFailure(
        "B03",
        "2.2.0",
        "2.2.4",
        "INV-SILENT",
        leases.fell_silent,
        "No connection is asked for a sign of life: one that died in silence is kept.",
        "alibaba/nacos #10909; repaired in 2.3.0 by #10509; docs/protocol #ejector-check",
    ),
    *(
        KnownFailure(
            "B06",
            "2.1.2",
            _LAST_READ,
            "INV-REV",
            symptom,
            "The revision of a client of the HTTP API stays when its beats stay out, and is a sum over its services.",
            "read in the code of the releases; seen on running 2.2.4 and 2.3.2; docs/protocol #revision-ip-port",
        )
        for symptom in (revisions.health_not_counted, revisions.expired_at_its_owner)
    ),
    KnownFailure(
        "B18",
        "2.1.2",
        "2.2.4",
        "INV-CONV",
        revisions.not_counted,
        "A batch leaves the revision as it was, so a verify confirms the copy that missed it.",
        "alibaba/nacos #11192; repaired in 2.3.0 by #11232; docs/protocol #revision-connection",
    ),
    KnownFailure(
        "B18",
        "2.1.2",
        "2.2.4",
        "INV-REV",
        revisions.not_counted,
        "A batch leaves the revision as it was: one revision stands for two contents.",
        "alibaba/nacos #11192; repaired in 2.3.0 by #11232; docs/protocol #revision-connection",
    ),
    *(
        KnownFailure(
            "B19",
            "2.1.1",
            "2.3.0",
            invariant,
            batches.batch_not_put_over,
            "A batch over a single instance raises, is acknowledged and not applied.",
            "alibaba/nacos #11701; repaired in 2.3.1; docs/protocol #receive-batch-over-single",
        )
        for invariant in ("INV-ACK", "INV-CONV")
    ),
    *(
        KnownFailure(
            "B19",
            "2.1.2",
            "2.2.4",
            invariant,
            batches.uncounted_not_put_over,
            "A batch over a single instance raises, is acknowledged and not applied. (Where a recording does not say "
            "what carries a batch; in 2.1.1 and 2.3.0 nothing else tells one.)",
            "alibaba/nacos #11701; repaired in 2.3.1; docs/protocol #receive-batch-over-single",
        )
        for invariant in ("INV-ACK", "INV-CONV")
    ),
    KnownFailure(
        "B19",
        "2.1.2",
        "2.3.0",
        "INV-LIVE",
        batches.batch_never_put_over,
        "A batch over a single instance raises each time that a failed verify sends it anew; the copy's lease ends.",
        "alibaba/nacos #11701; repaired in 2.3.1; docs/protocol #receive-batch-over-single",
    ),
    KnownFailure(
        "B19",
        "2.1.1",
        "2.3.0",
        "INV-CONV",
        batches.owner_never_loaded,
        "A batch over a single instance raises in a snapshot as well: its node is never loaded and verifies nobody.",
        "alibaba/nacos #11701; repaired in 2.3.1; docs/protocol #receive-batch-over-single",
    ),
    KnownFailure(
        "B02",
        None,
        "2.1.1",
        "INV-CONV",
        receiving.confirmed_unread,
        "A verify tests existence only, so a copy that missed what it acknowledged is confirmed for ever.",
        "alibaba/nacos #9210, #9214; repaired in 2.1.2 by #9239",
    ),
    KnownFailure(
        "B01",
        None,
        _LAST_READ,
        "INV-REV",
        receiving.native_overwritten,
        "A late snapshot or CHANGE is applied to a client that is connected here; its next change reuses a revision.",
        "alibaba/nacos #15857; docs/protocol #receive-native",
    ),
    KnownFailure(
        "B01",
        None,
        _LAST_READ,
        "INV-NATIVE",
        receiving.native_overwritten,
        "A late snapshot or CHANGE is applied to a client that is connected here.",
        "alibaba/nacos #15857; docs/protocol #receive-native",
    ),
    KnownFailure(
        "B01",
        "2.1.2",
        _LAST_READ,
        "INV-CONV",
        receiving.confirmed_as_before,
        "A late snapshot or CHANGE is applied to a client that is connected here, under the revision that it has: a "
        "verify confirms the copy that misses it.",
        "alibaba/nacos #15857; docs/protocol #receive-native",
    ),
)


def known_bug(invariant: str, story: Story, told: Told) -> str | None:
    """The number of the known failure whose symptom a violation has, or None."""
    found = [
        failure.bug
        for failure in KNOWN
        if failure.invariant == invariant and failure.is_of(story.profile) and failure.symptom(story, told)
    ]
    return min(found, default=None)


def _release(profile: str) -> tuple[int, ...] | None:
    name, _, version = profile.partition("-")
    return _version(version) if name == "nacos" and version else None


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())
