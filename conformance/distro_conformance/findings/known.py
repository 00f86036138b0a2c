"""Requirements that a release is known to fail: which symptom is excused, which bug is to blame.

A listed failure does not fail a run, and one that starts to pass does: then the entry is wrong, or the check no longer
sees the bug; but for a described server, which anybody may have written. What is excused is one symptom, a predicate on
the finding, and never "this requirement fails": whatever else goes wrong there is news. Each entry has a near miss in
the tests that it does not excuse. Bugs are those of docs/reference/mutants.md; where each can be read is in `upstream`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from distro_conformance.findings.finding import Finding, Judgement
from distro_conformance.findings.upstream import UPSTREAM
from distro_conformance.release import Span

Observed = Mapping[str, object]
SERVERS = ("nacos", "process", "attach")
"""Kinds of target in real time."""


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """`symptom` is asked about what the check observed; `targets`: the kinds of target on which it was seen."""

    requirement: str
    releases: Span
    bug: str
    reason: str
    symptom: Callable[[Observed], bool]
    targets: tuple[str, ...] = ("embedded", *SERVERS)
    needs_a_race: bool = False
    """In real time it shows when two things meet, or an answer is quick: there a pass says nothing about the entry."""

    @property
    def link(self) -> str:
        return UPSTREAM[self.bug]


def _shows(**expected: object) -> Callable[[Observed], bool]:
    """Exactly this was observed, under these names."""
    return lambda seen: all(seen.get(name) == value for name, value in expected.items())


def _revision_stands_still(seen: Observed) -> bool:
    revisions = seen.get("revisions")
    return isinstance(revisions, list) and bool(revisions[0]) and len(set(revisions)) == 1


def _copy_replaces(seen: Observed) -> bool:
    """What a CHANGE or a snapshot brought is held as it is."""
    return bool(seen.get("sent")) and seen.get("published") == seen.get("sent")


def _own_is_replaced(seen: Observed) -> bool:
    """And the client is still the node's own, which tells everybody what has become of it."""
    return _copy_replaces(seen) and False not in (seen.get("announced"), seen.get("verified"))


def _copy_creates(seen: Observed) -> bool:
    """It was acknowledged and applied as it is: nothing of the deleted client came back."""
    return seen.get("acknowledged") is True and _copy_replaces(seen)


def _health_leaves_the_revision(seen: Observed) -> bool:
    return bool(seen.get("before")) and seen.get("before") == seen.get("after")


def _busy_copy_ends(seen: Observed) -> bool:
    """It stayed for a lease in which CHANGEs came all the time, and then it went."""
    changes = seen.get("changes")
    return seen.get("held") is False and isinstance(changes, int) and changes > 5


def _is_mixed(seen: Observed) -> bool:
    """The revision of one of the two, and services of both."""
    return seen.get("revision") in (1, 2) and bool(seen.get("services"))


def _load_never_ends(seen: Observed) -> bool:
    asked = seen.get("asked")
    return isinstance(asked, int) and asked > 1


def _waiting_is_sent(seen: Observed) -> bool:
    """As it stands here, and again, for the member still refuses it."""
    sent = seen.get("sent")
    return isinstance(sent, int) and sent > 0 and seen.get("both") is True


def _snapshot_is_given(seen: Observed) -> bool:
    given = seen.get("given")
    return isinstance(given, int) and given >= 0


EVERY_RELEASE = Span(until="3.0.3")
"""The last release that was looked at; `strict` counts as later."""

KNOWN_FAILURES: tuple[KnownFailure, ...] = (
    KnownFailure(
        "DISTRO-REVISION-001",
        Span("2.1.2", "2.2.4"),
        "B10",
        "a plain CHANGE sets the revision of a replica only when it creates the replica",
        _shows(round="2", verified_as=[1]),  # the content of the second CHANGE, the revision of the first
    ),
    KnownFailure(
        "DISTRO-BATCH-002",
        Span("2.1.2", "2.2.4"),
        "B18",
        "a batch registration leaves the revision as it is",
        _revision_stands_still,
    ),
    KnownFailure(
        "DISTRO-BATCH-003",
        Span("2.1.1", "2.3.0"),
        "B19",
        "the stored single instance is cast to a batch",
        _shows(ports=[79], error_code=500),
    ),
    *(
        KnownFailure(
            requirement,
            Span("2.2.0", "2.2.4"),
            "B03",
            "the ejector detects nothing",
            _shows(held=True, detections=0),
        )
        for requirement in ("DISTRO-CONNECTION-001", "DISTRO-CONNECTION-003", "DISTRO-CONNECTION-004")
    ),
    *(
        KnownFailure(
            requirement,
            Span(until="2.5.0"),
            "B16",
            "a handler's exception shows in errorCode only",
            _shows(result_code=200, error_code=500, held=False),
        )
        for requirement in ("DISTRO-ERROR-005", "DISTRO-REFUSAL-001")
    ),
    KnownFailure(
        "DISTRO-HOLDER-008",
        EVERY_RELEASE,
        "D4",
        "instances are compared without their cluster",
        _shows(acknowledged=True, clusters=["DEFAULT"]),
    ),
    KnownFailure(
        "DISTRO-HOLDER-011",
        Span("2.1.2", "3.0.3"),
        "revision-zero-wildcard",
        "a VERIFY of revision 0 matches whatever is held",
        _shows(zero=True, right=True),  # the copy is there, with what it was given
    ),
    KnownFailure(
        "DISTRO-HOLDER-012",
        EVERY_RELEASE,
        "B05",
        "a CHANGE is applied piece by piece, and two of them meet",
        _is_mixed,
        targets=SERVERS,
        needs_a_race=True,
    ),
    KnownFailure(
        "DISTRO-IPPORT-007",
        Span("2.1.2", "3.0.3"),
        "B06",
        "the checker of beats changes the content and not the hash of it",
        _health_leaves_the_revision,
    ),
    KnownFailure(
        "DISTRO-IPPORT-012",
        Span("2.2.0", "3.0.3"),
        "D7",
        "only /v1/ns requests are passed on to the owner",
        _shows(shown=True),  # at the node that was asked, and at no other
    ),
    KnownFailure(
        "DISTRO-LEASE-004",
        EVERY_RELEASE,
        "B17",
        "only a VERIFY that succeeds renews a copy",
        _busy_copy_ends,
    ),
    KnownFailure(
        "DISTRO-LEASE-008",
        EVERY_RELEASE,
        "B23",
        "a lease is compared with the clock, whether or not anything could come meanwhile",
        _shows(known=False),
    ),
    KnownFailure(
        "DISTRO-LOAD-006",
        EVERY_RELEASE,
        "B01",
        "a snapshot is applied to whatever client has that id",
        _own_is_replaced,
        needs_a_race=True,
    ),
    KnownFailure(
        "DISTRO-LOAD-007",
        EVERY_RELEASE,
        "B27",
        "nobody remembers a DELETE that came before the snapshot",
        _copy_creates,
    ),
    KnownFailure(
        "DISTRO-LOAD-008",
        EVERY_RELEASE,
        "B33",
        "a SNAPSHOT is answered whether or not the node has loaded",
        _snapshot_is_given,
    ),
    KnownFailure(
        "DISTRO-LOAD-009",
        EVERY_RELEASE,
        "B11",
        "an answer of a member may have 10 MiB, and a snapshot is one",
        _load_never_ends,
    ),
    KnownFailure(
        "DISTRO-MEMBER-007",
        EVERY_RELEASE,
        "B15",
        "the place is one among the members that are not DOWN",
        _shows(passed_on=False, reply="ok"),
    ),
    KnownFailure(
        "DISTRO-OWNER-004",
        Span("2.2.1", "3.0.3"),
        "B22",
        "nothing is sent when the owner of a client changes",
        _shows(held=True, told=0),
    ),
    KnownFailure(
        "DISTRO-OWNER-006",
        Span("2.2.1", "3.0.3"),
        "B22",
        "who owns a client is asked when its change is handled, and no more when it is sent",
        _waiting_is_sent,
    ),
    KnownFailure(
        "DISTRO-REGISTER-005",
        Span("2.0.3", "2.3.1"),
        "B12",
        "a registration of an unknown client returns silently, and success is answered",
        _shows(acknowledged=True, shown=0),
    ),
    *(
        KnownFailure(
            requirement,
            EVERY_RELEASE,
            "B42",
            "an exception leaves the callback, so that the sync is neither finished nor retried",
            _shows(changes=1, verified=True),  # the member is asked to confirm the client all the same
            targets=SERVERS,
            needs_a_race=True,  # an answer that comes after the sender's patience is over is not read at all
        )
        for requirement in ("DISTRO-RETRY-004", "DISTRO-RETRY-009")
    ),
    KnownFailure(
        "DISTRO-RETRY-006",
        EVERY_RELEASE,
        "B24",
        "the retry of the CHANGE replaces the DELETE, and then finds no client to send",
        _shows(here=["CHANGE"], other=True),  # the other member was told of the end
        needs_a_race=True,
    ),
    KnownFailure(
        "DISTRO-HOLDER-003",
        EVERY_RELEASE,
        "B26",
        "a CHANGE of an unknown client creates it, deleted or not",
        _copy_creates,
    ),
    KnownFailure(
        "DISTRO-PUSH-008",
        Span(until="2.1.1"),
        "push-of-every-cluster",
        "the cluster that was subscribed to is not asked when a list is pushed over gRPC",
        _shows(ports=[80, 81]),
    ),
    KnownFailure(
        "DISTRO-SETUP-010",
        EVERY_RELEASE,
        "native-connect-onto-synced",
        "a client is created only where there is none, and a copy stays a copy",
        _shows(both=True, sent=[]),  # the copy has what was registered, and is nobody's to announce
    ),
    KnownFailure(
        "DISTRO-NATIVE-001",
        EVERY_RELEASE,
        "B01",
        "a CHANGE is applied to whatever client has that id",
        _own_is_replaced,
    ),
    KnownFailure(
        "DISTRO-NATIVE-002",
        EVERY_RELEASE,
        "B41",
        "a DELETE removes whatever client has that id",
        _shows(published=None, acknowledged=True),
    ),
    *(
        KnownFailure(
            requirement,
            EVERY_RELEASE,
            "B16-unhandled",
            "a sync that nobody handles is acknowledged",
            _shows(result_code=200, error_code=500, held=False),
        )
        for requirement in ("DISTRO-REFUSAL-002", "DISTRO-REFUSAL-003")
    ),
)


def known_failure(requirement: str, profile: str, target_kind: str) -> KnownFailure | None:
    """The entry for that requirement, if any."""
    return next(
        (
            entry
            for entry in KNOWN_FAILURES
            if entry.requirement == requirement and target_kind in entry.targets and profile in entry.releases
        ),
        None,
    )


def against_the_list(finding: Finding, profile: str, target_kind: str) -> Finding:
    """Marks what has the symptom of a listed failure; a listed failure that passes is a violation."""
    entry = known_failure(finding.about, profile, target_kind)
    if entry is None or finding.judgement not in (Judgement.VIOLATES, Judgement.CONFORMS):
        return finding
    if finding.judgement is Judgement.CONFORMS:
        may_miss_it = entry.needs_a_race and target_kind in SERVERS
        if may_miss_it or target_kind == "process":  # whoever wrote that server may have mended it
            return finding
        message = f"{entry.bug} is listed as a failure of {profile}, and it passes: remove the entry"
        return replace(finding, judgement=Judgement.VIOLATES, message=message)
    if not entry.symptom(finding.observed):
        seen = ", ".join(f"{name} {value}" for name, value in finding.observed.items()) or "nothing more"
        why = f"this is not {entry.bug}, which is known of {profile}: {entry.reason}; seen: {seen}"
        return replace(finding, message=f"{finding.message} ({why})")
    message = f"known, {entry.bug} ({entry.reason}): {finding.message}"
    return replace(finding, judgement=Judgement.KNOWN, known=entry.bug, link=entry.link, message=message)
