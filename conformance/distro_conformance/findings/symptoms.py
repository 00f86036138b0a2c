"""The symptoms of known defects in the requirements: the observations of a check where a release has the defect.

A symptom is a conjunction: any other failure of that requirement has another observation, and stays a violation. A
condition that holds in every violation of the requirement is not a clause. Each clause has a near miss in the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from distro_model.defects import Clause, Symptom

Observed = Mapping[str, object]
Shown = Clause[Observed]


@dataclass(frozen=True, kw_only=True)
class RequirementSymptom(Symptom[Observed]):
    """`on_reference_node`: whether the reference node shows it too; some defects need several threads."""

    on_reference_node: bool = True
    needs_a_race: bool = False
    """In real time it shows only if two events coincide, or a reply is quick: a pass there contradicts nothing."""


def _is(name: str, value: object, sentence: str) -> Shown:
    """Holds if exactly this value was observed under that name."""
    return Clause(sentence, lambda seen: name in seen and seen[name] == value)


def _is_not(name: str, value: object, sentence: str) -> Shown:
    """Holds for another value, and for none: a server that the kit did not start sends it nothing."""
    return Clause(sentence, lambda seen: seen.get(name) != value)


def _number(name: str, is_so: Callable[[int], bool], sentence: str) -> Shown:
    def holds(seen: Observed) -> bool:
        value = seen.get(name)
        return isinstance(value, int) and not isinstance(value, bool) and is_so(value)

    return Clause(sentence, holds)


def _stand_still(seen: Observed) -> bool:
    revisions = seen.get("revisions")
    return isinstance(revisions, list) and len(set(revisions)) == 1


_AS_SENT = Shown("the held content is exactly the content that was sent", lambda seen: _same(seen, "sent"))
_ACKNOWLEDGED = _is("acknowledged", True, "it is acknowledged")
_HELD = _is("held", True, "the client is still held")
_NOT_HELD = _is("held", False, "the request is not applied")
_CODE_500 = _is("error_code", 500, "the answer has the errorCode 500")
_OWN = (
    _is_not("announced", False, "the node announces it as its own"),
    _is_not("verified", False, "the node verifies it as its own"),
)


_COPY = (
    _AS_SENT,
    _is("confirmed", True, "the revision that was sent is confirmed"),
    _is("claimed", False, "the node neither announces nor verifies it as its own"),
)


def _every_member_asked(seen: Observed) -> bool:
    asked = seen.get("asked")
    return isinstance(asked, list) and bool(asked) and min(asked) > 0


def _lease_lasted(seen: Observed) -> bool:
    lasted_ms, lease_ms = seen.get("lasted_ms"), seen.get("lease_ms")
    return isinstance(lasted_ms, int) and isinstance(lease_ms, int) and lasted_ms >= lease_ms


def _same(seen: Observed, name: str) -> bool:
    return bool(seen.get(name)) and seen.get("published") == seen.get(name)


SYMPTOMS: tuple[RequirementSymptom, ...] = (
    RequirementSymptom(
        bug="B01",
        about=("DISTRO-LOAD-006",),
        sentence="a snapshot is applied to whatever client has that id",
        clauses=(_AS_SENT, *_OWN),
        needs_a_race=True,
    ),
    RequirementSymptom(
        bug="B01",
        about=("DISTRO-NATIVE-001",),
        sentence="a CHANGE is applied to whatever client has that id",
        clauses=(_ACKNOWLEDGED, _AS_SENT, *_OWN),
    ),
    RequirementSymptom(
        bug="B03",
        about=("DISTRO-CONNECTION-001",),
        clauses=(_HELD, _is("detections", 0, "the silent client was not asked for a sign of life")),
    ),
    RequirementSymptom(
        bug="B03",
        about=("DISTRO-CONNECTION-003", "DISTRO-CONNECTION-004"),
        clauses=(_HELD,),
    ),
    RequirementSymptom(
        bug="B05",
        about=("DISTRO-HOLDER-012",),
        sentence="a CHANGE is applied in several steps, and two of them overlap",
        clauses=(
            _number("revision", lambda found: found in (1, 2), "the revision is that of one of the two"),
            _is("of_both", 20, "all services that both have are held"),
            _is("of_none", 0, "no service is held that neither has"),
        ),
        on_reference_node=False,
        needs_a_race=True,
    ),
    RequirementSymptom(
        bug="B06",
        about=("DISTRO-IPPORT-007",),
        clauses=(_number("revision", lambda found: found != 0, "the client has a revision"),),
    ),
    RequirementSymptom(
        bug="B10",
        about=("DISTRO-REVISION-001",),
        clauses=(
            _is("round", "2", "the copy has the content of the second CHANGE"),
            _is("verified_as", [1], "the revision of the first is confirmed, and no other"),
        ),
    ),
    RequirementSymptom(
        bug="B11",
        about=("DISTRO-LOAD-009",),
        clauses=(
            Shown("the node asks every member for a snapshot", _every_member_asked),
            _is("parts", False, "no client of the large snapshot is held"),
            _is("smaller", True, "a smaller one is taken when it asks again"),
        ),
    ),
    RequirementSymptom(
        bug="B12",
        about=("DISTRO-REGISTER-005",),
        clauses=(_is("shown", 0, "the service has no hosts"),),
    ),
    RequirementSymptom(
        bug="B15",
        about=("DISTRO-MEMBER-007",),
        clauses=(
            _is("reply", "ok", "the registration succeeds"),
            _is("held", True, "the node holds the client itself"),
        ),
    ),
    RequirementSymptom(
        bug="B16",
        about=("DISTRO-ERROR-005", "DISTRO-REFUSAL-001"),
        clauses=(_CODE_500, _NOT_HELD),
    ),
    RequirementSymptom(
        bug="B16-unhandled",
        about=("DISTRO-REFUSAL-002", "DISTRO-REFUSAL-003"),
        clauses=(_CODE_500, _NOT_HELD),
    ),
    RequirementSymptom(
        bug="B17",
        about=("DISTRO-LEASE-004",),
        clauses=(Shown("the copy stayed for its lease", _lease_lasted),),
    ),
    RequirementSymptom(
        bug="B18",
        about=("DISTRO-BATCH-002",),
        clauses=(
            Shown("the revision is the same before and after each batch", _stand_still),
            _is("ports", [81], "the last batch is held"),
        ),
    ),
    RequirementSymptom(
        bug="B19",
        about=("DISTRO-BATCH-003",),
        clauses=(_is("ports", [79], "the single instance is shown"), _CODE_500),
    ),
    RequirementSymptom(
        bug="B22",
        about=("DISTRO-OWNER-004",),
        sentence="nothing is sent when the owner of a client changes",
        clauses=(_HELD, _is("sent", 0, "the new owner is sent no request about the client")),
    ),
    RequirementSymptom(
        bug="B22",
        about=("DISTRO-OWNER-008",),
        sentence="of two contents of a client nothing says which is the newer",
        clauses=(_ACKNOWLEDGED, _is("before", True, "the held content is the one before the change")),
    ),
    RequirementSymptom(
        bug="B23",
        about=("DISTRO-LEASE-008",),
        clauses=(_is("known", False, "the copy is gone"), _is("again", True, "a CHANGE after that is applied")),
    ),
    RequirementSymptom(
        bug="B24",
        about=("DISTRO-RETRY-006",),
        clauses=(
            _is("here", ["CHANGE"], "the member is sent nothing after the CHANGE that it did not answer"),
            _is("other", True, "the other member is sent the DELETE"),
        ),
        needs_a_race=True,
    ),
    RequirementSymptom(
        bug="B26",
        about=("DISTRO-HOLDER-003",),
        clauses=(_ACKNOWLEDGED, *_COPY),
    ),
    RequirementSymptom(
        bug="B27",
        about=("DISTRO-LOAD-007",),
        clauses=(
            _is("acknowledged", True, "the DELETE is acknowledged"),
            *_COPY,
            _is("others", True, "the other clients of the snapshot are held"),
        ),
    ),
    RequirementSymptom(
        bug="B33",
        about=("DISTRO-LOAD-008",),
        clauses=(_is("is_what_is_held", True, "the snapshot has the client that is connected, and no other"),),
    ),
    RequirementSymptom(
        bug="B39",
        about=("DISTRO-CONNECTION-002",),
        clauses=(
            _number("detections", lambda found: found > 0, "the client has answered a detection"),
            _number("after_ms", lambda found: found <= 1_000, "it is removed within a second of that answer"),
        ),
        on_reference_node=False,
        needs_a_race=True,
    ),
    RequirementSymptom(
        bug="B41",
        about=("DISTRO-NATIVE-002",),
        clauses=(_ACKNOWLEDGED, _is("published", None, "the client is gone")),
    ),
    RequirementSymptom(
        bug="B42",
        about=("DISTRO-RETRY-004", "DISTRO-RETRY-009"),
        clauses=(_is("verified", True, "the member is asked to confirm the client all the same"),),
        on_reference_node=False,
        needs_a_race=True,  # an answer that comes after the sender's time-out is not read at all
    ),
    RequirementSymptom(
        bug="D4",
        about=("DISTRO-HOLDER-008",),
        clauses=(_ACKNOWLEDGED, _is("clusters", ["DEFAULT"], "the instance is held with the cluster that it had")),
    ),
    RequirementSymptom(
        bug="D7",
        about=("DISTRO-IPPORT-012",),
        clauses=(_is("shown", True, "the instance is listed at the node that was asked"),),
    ),
    RequirementSymptom(
        bug="services-change-places",
        about=("DISTRO-LIST-009",),
        clauses=(_is("same_services", True, "the pages have the same services in another order"),),
        on_reference_node=False,
    ),
    RequirementSymptom(
        bug="native-connect-onto-synced",
        about=("DISTRO-SETUP-010",),
        clauses=(
            _is("both", True, "the copy has the registered instance and the old ones"),
            _is("sent", [], "the members are sent no request about it"),
        ),
    ),
    RequirementSymptom(
        bug="push-of-every-cluster",
        about=("DISTRO-PUSH-008",),
        clauses=(_is("ports", [80, 81], "the instances of both clusters are pushed"),),
    ),
    RequirementSymptom(
        bug="subscription-shows-disabled",
        about=("DISTRO-PUSH-007",),
        clauses=(
            _is("enabled", [80, 81], "the enabled instances are shown"),
            _is("disabled", [82], "the disabled instance is shown as disabled"),
        ),
    ),
    RequirementSymptom(
        bug="revision-zero-wildcard",
        about=("DISTRO-HOLDER-011",),
        clauses=(
            _is("right", True, "the revision that the copy was sent with is confirmed"),
            _is("other", False, "another revision is not confirmed"),
        ),
    ),
)
