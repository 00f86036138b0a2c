"""The variations that each requirement covers, and their page: one cell for each requirement and variation.

A check with one client, one service and one change misses a defect that needs two clients of one service, a batch, a
second change or a removal. A cell states one of three things: a check judges the requirement with the variation (its
own check or that of another requirement); the variation runs the same code, with the reason; or the case cannot occur.
`AREAS` holds the cells of an area, `OWN` those of a requirement that differ from its area. A test fails for an empty
cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from distro_conformance.requirements import all_requirements
from pages.markdown import page, table

CLIENTS, SERVICES, BATCH, CHANGE, REMOVAL, FAILURE, MEMBERS, HTTP = VARIATIONS = (
    "two clients of one service",
    "two services of one client",
    "a batch",
    "a second change",
    "a removal",
    "a second failure",
    "three members, one different",
    "HTTP and gRPC",
)


class Kind(Enum):
    JUDGED = "judged"
    SAME = "same code"
    NEVER = "cannot be"


@dataclass(frozen=True, slots=True)
class Cell:
    """`by`: the requirements that judge it, where it is not the requirement itself. `why`: a reason, otherwise."""

    kind: Kind
    by: tuple[str, ...] = ()
    why: str = ""


Row = Mapping[str, Cell]


def judged(*by: str) -> Cell:
    return Cell(Kind.JUDGED, tuple(f"DISTRO-{each}" for each in by))


def same(why: str) -> Cell:
    return Cell(Kind.SAME, why=why)


def never(why: str) -> Cell:
    return Cell(Kind.NEVER, why=why)


def cell(requirement: str, variation: str) -> Cell | None:
    """None without a cell."""
    _, area, _ = requirement.split("-")
    return OWN.get(requirement.removeprefix("DISTRO-"), {}).get(variation) or AREAS.get(area, {}).get(variation)


_ITSELF = judged()
_BESIDE = same(
    "clients are held by id; checks share a node, where other clients and services are there all the time, and each "
    "looks for its own"
)
_WHOLE_CLIENT = same("a client is sent, verified and removed whole, whatever it publishes")
_WHATEVER_IT_HOLDS = same("it does not depend on the content: a batch is one entry of its client")
_EVERY_TIME = same("each request is handled by itself and leaves no state behind")
_EACH_MEMBER = same("each member has its own tasks and its own connection; SYNC-003 and VERIFY-003 ask at every member")
_EITHER_KIND = same("one routine applies what members send of clients of either kind; HOLDER-001 to -007 ask for both")
_ANNOUNCED_ALIKE = same("one routine announces clients of either kind; IPPORT-001, -006 and -011 ask for those of HTTP")
_NO_CONTENT = never("it is about requests and connections, and not about what a client publishes")
_NO_MEMBER = never("it does not involve members")
_NO_CLIENT = never("it does not involve clients")
_NOTHING_FAILS = never("nothing fails in it")
_NO_HTTP = never("it is about connections, which clients of the HTTP API do not have")
_NO_HTTP_BATCH = never("the HTTP API registers one instance at a time")
_ONE_OWNER = same("each client has an owner by its own address, whatever other clients and services there are")

AREAS: Mapping[str, Row] = {
    "BATCH": {
        CLIENTS: _BESIDE,
        SERVICES: judged("BATCH-004", "BATCH-006"),
        BATCH: _ITSELF,
        CHANGE: _ITSELF,
        REMOVAL: judged("BATCH-004", "BATCH-006"),
        FAILURE: _NOTHING_FAILS,
        MEMBERS: _EACH_MEMBER,
        HTTP: _NO_HTTP_BATCH,
    },
    "CONNECTION": {
        CLIENTS: judged("CONNECTION-001", "CONNECTION-004"),
        SERVICES: judged("LIST-007"),
        BATCH: _WHATEVER_IT_HOLDS,
        CHANGE: judged("CONNECTION-002", "CONNECTION-004"),
        REMOVAL: judged("CONNECTION-001"),
        FAILURE: judged("CONNECTION-002"),
        MEMBERS: _NO_MEMBER,
        HTTP: _NO_HTTP,
    },
    "ERROR": {
        CLIENTS: _NO_CONTENT,
        SERVICES: _NO_CONTENT,
        BATCH: _NO_CONTENT,
        CHANGE: _EVERY_TIME,
        REMOVAL: _NO_CONTENT,
        FAILURE: _EVERY_TIME,
        MEMBERS: same("the answer does not depend on the sender"),
        HTTP: never("it is about requests over gRPC; differential scripts compare those over HTTP"),
    },
    "HOLDER": {
        CLIENTS: judged("LIST-008"),
        SERVICES: judged("HOLDER-006", "HOLDER-012"),
        BATCH: judged("BATCH-003", "BATCH-006"),
        CHANGE: judged("HOLDER-006", "HOLDER-010", "REVISION-001"),
        REMOVAL: judged("HOLDER-006", "HOLDER-007"),
        FAILURE: _EVERY_TIME,
        MEMBERS: same("what is applied does not depend on which member sends it"),
        HTTP: _EITHER_KIND,
    },
    "IPPORT": {
        CLIENTS: judged("IPPORT-017"),
        SERVICES: judged("IPPORT-004", "IPPORT-014", "IPPORT-015", "IPPORT-017"),
        BATCH: _NO_HTTP_BATCH,
        CHANGE: judged("IPPORT-008", "IPPORT-014"),
        REMOVAL: judged("IPPORT-006", "IPPORT-014", "IPPORT-017"),
        FAILURE: _EVERY_TIME,
        MEMBERS: _EACH_MEMBER,
        HTTP: _ITSELF,
    },
    "LEASE": {
        CLIENTS: same("leases are by client: on the node where LEASE-001 ends a copy, LEASE-002 renews another"),
        SERVICES: judged("LIST-007"),
        BATCH: _WHOLE_CLIENT,
        CHANGE: judged("LEASE-002", "LEASE-004"),
        REMOVAL: judged("LEASE-001", "LEASE-006"),
        FAILURE: judged("LEASE-003"),
        MEMBERS: same("the sender of a VERIFY is not checked"),
        HTTP: judged("LEASE-003", "LEASE-004", "LEASE-006", "LEASE-007"),
    },
    "LIST": {
        CLIENTS: judged("LIST-005", "LIST-008"),
        SERVICES: judged("LIST-006", "LIST-007", "REGISTER-008"),
        BATCH: judged("BATCH-004", "BATCH-005"),
        CHANGE: judged("LIST-003", "PUSH-001"),
        REMOVAL: judged("LIST-001", "LIST-007", "LIST-008"),
        FAILURE: _NOTHING_FAILS,
        MEMBERS: same("a list is made of all copies, whichever member sent them: LIST-005 has own and synced ones"),
        HTTP: judged("IPPORT-010", "IPPORT-017"),
    },
    "LOAD": {
        CLIENTS: judged("LOAD-007", "LOAD-009"),
        SERVICES: judged("LOAD-003"),
        BATCH: judged("LOAD-003"),
        CHANGE: never("a node loads once"),
        REMOVAL: judged("LOAD-006", "LOAD-007"),
        FAILURE: judged("LOAD-005"),
        MEMBERS: judged("LOAD-001", "LOAD-002", "LOAD-010", "LOAD-011"),
        HTTP: judged("LOAD-003"),
    },
    "MEMBER": {
        CLIENTS: _NO_CONTENT,
        SERVICES: _NO_CONTENT,
        BATCH: _NO_CONTENT,
        CHANGE: judged("MEMBER-005", "MEMBER-008"),
        REMOVAL: judged("MEMBER-008", "MEMBER-010"),
        FAILURE: judged("MEMBER-004", "MEMBER-006"),
        MEMBERS: judged("MEMBER-004", "MEMBER-005", "MEMBER-007", "MEMBER-008"),
        HTTP: same("up to 2.2.0 the played members report themselves over HTTP, later over gRPC"),
    },
    "NATIVE": {
        CLIENTS: _BESIDE,
        SERVICES: _WHOLE_CLIENT,
        BATCH: _WHOLE_CLIENT,
        CHANGE: _EVERY_TIME,
        REMOVAL: judged("NATIVE-002"),
        FAILURE: _EVERY_TIME,
        MEMBERS: same("what is refused does not depend on which member sends it"),
        HTTP: never("the owner of a client of the HTTP API changes, so requests of the previous owner are applied"),
    },
    "OWNER": {
        CLIENTS: _ONE_OWNER,
        SERVICES: judged("OWNER-002", "OWNER-006"),
        BATCH: _NO_HTTP_BATCH,
        CHANGE: judged("OWNER-002", "OWNER-006"),
        REMOVAL: judged("OWNER-003", "OWNER-005"),
        FAILURE: judged("OWNER-006"),
        MEMBERS: _ITSELF,
        HTTP: _ITSELF,
    },
    "PUSH": {
        CLIENTS: judged("LIST-008", "PUSH-005", "PUSH-009"),
        SERVICES: judged("PUSH-005"),
        BATCH: judged("BATCH-004", "BATCH-005", "BATCH-006"),
        CHANGE: judged("PUSH-001", "PUSH-006"),
        REMOVAL: judged("LIST-008", "PUSH-001", "PUSH-002"),
        FAILURE: judged("PUSH-003"),
        MEMBERS: same("a copy changes lists whichever member sent it"),
        HTTP: same("pushes over UDP, for clients of the HTTP API, are made by the same task; a script compares them"),
    },
    "REFUSAL": {
        CLIENTS: _NO_CONTENT,
        SERVICES: _NO_CONTENT,
        BATCH: _NO_CONTENT,
        CHANGE: _EVERY_TIME,
        REMOVAL: _NO_CONTENT,
        FAILURE: _EVERY_TIME,
        MEMBERS: same("the answer does not depend on the sender"),
        HTTP: never("members send over gRPC alone"),
    },
    "REGISTER": {
        CLIENTS: judged("LIST-008"),
        SERVICES: judged("REGISTER-003", "REGISTER-008"),
        BATCH: judged("BATCH-001", "BATCH-002", "BATCH-005"),
        CHANGE: judged("REGISTER-001", "REGISTER-007"),
        REMOVAL: judged("REGISTER-002", "REGISTER-003", "REGISTER-007"),
        FAILURE: _EVERY_TIME,
        MEMBERS: _NO_MEMBER,
        HTTP: judged("IPPORT-001", "IPPORT-014", "IPPORT-017"),
    },
    "RETRY": {
        CLIENTS: same(
            "each client and member has its own task; checks in which a call fails share a node with the others"
        ),
        SERVICES: judged("RETRY-008"),
        BATCH: _WHOLE_CLIENT,
        CHANGE: judged("RETRY-007", "RETRY-008"),
        REMOVAL: judged("RETRY-005", "RETRY-006"),
        FAILURE: judged("RETRY-001", "RETRY-005"),
        MEMBERS: judged("RETRY-007"),
        HTTP: same("tasks of clients of either kind are of one engine; OWNER-006 has a failing one of HTTP"),
    },
    "REVISION": {
        CLIENTS: _BESIDE,
        SERVICES: judged("HOLDER-012"),
        BATCH: judged("BATCH-006"),
        CHANGE: _ITSELF,
        REMOVAL: judged("HOLDER-006"),
        FAILURE: judged("HOLDER-001"),
        MEMBERS: same("what is applied does not depend on which member sends it"),
        HTTP: _ITSELF,
    },
    "SECURITY": {
        **dict.fromkeys((CLIENTS, SERVICES, BATCH, REMOVAL), _NO_CONTENT),
        **dict.fromkeys((CHANGE, FAILURE), _EVERY_TIME),
        MEMBERS: same("only the port counts, not the sender"),
        HTTP: never("Distro requests go over gRPC alone"),
    },
    "SETUP": {
        **dict.fromkeys((CLIENTS, SERVICES, BATCH, REMOVAL), _NO_CONTENT),
        CHANGE: judged("SETUP-008"),
        FAILURE: _EVERY_TIME,
        MEMBERS: _NO_MEMBER,
        HTTP: _NO_HTTP,
    },
    "SNAPSHOT": {
        CLIENTS: _ITSELF,
        SERVICES: judged("BATCH-004"),
        BATCH: judged("SNAPSHOT-001", "BATCH-004"),
        CHANGE: judged("SNAPSHOT-002"),
        REMOVAL: judged("SNAPSHOT-001"),
        FAILURE: _NOTHING_FAILS,
        MEMBERS: same("the answer does not depend on the sender"),
        HTTP: judged("SNAPSHOT-001", "IPPORT-001"),
    },
    "SYNC": {
        CLIENTS: _BESIDE,
        SERVICES: judged("SYNC-004", "SYNC-005"),
        BATCH: judged("BATCH-001", "BATCH-004"),
        CHANGE: judged("SYNC-004", "SYNC-005"),
        REMOVAL: judged("SYNC-002", "SYNC-006", "SYNC-008"),
        FAILURE: judged("RETRY-001", "RETRY-005"),
        MEMBERS: judged("SYNC-003", "RETRY-007"),
        HTTP: _ANNOUNCED_ALIKE,
    },
    "SWITCH": {
        **dict.fromkeys((CLIENTS, SERVICES, BATCH, REMOVAL), same("a switch holds for a whole node")),
        CHANGE: _ITSELF,
        FAILURE: _NOTHING_FAILS,
        MEMBERS: same("a switch is of one node; SWITCH-003 has clients of either member"),
        HTTP: same("health checks and owners are of the HTTP API alone, and pushes over UDP are made by the same task"),
    },
    "VERIFY": {
        CLIENTS: judged("VERIFY-004", "VERIFY-007"),
        SERVICES: judged("VERIFY-001"),
        BATCH: judged("BATCH-001", "BATCH-002"),
        CHANGE: judged("VERIFY-001"),
        REMOVAL: judged("VERIFY-005"),
        FAILURE: judged("VERIFY-002"),
        MEMBERS: judged("VERIFY-004", "VERIFY-007"),
        HTTP: judged("IPPORT-011", "VERIFY-007"),
    },
}

OWN: Mapping[str, Row] = {
    "BATCH-002": {REMOVAL: judged("REGISTER-007")},
    "BATCH-005": {CHANGE: same("a batch replaces the one before it: BATCH-001, whatever its instances are")},
    "HOLDER-002": dict.fromkeys((CLIENTS, SERVICES, BATCH, CHANGE, REMOVAL), never("the client is unknown")),
    "HOLDER-003": {HTTP: never("the id of a client of the HTTP API comes back, so that a late CHANGE is applied")},
    "HOLDER-004": dict.fromkeys((CLIENTS, SERVICES, BATCH, CHANGE, REMOVAL), never("the client is unknown")),
    "HOLDER-005": dict.fromkeys((CLIENTS, SERVICES, BATCH, CHANGE, REMOVAL), never("the client is unknown")),
    "IPPORT-003": {MEMBERS: _ITSELF, FAILURE: same("each request is passed on by itself, and once")},
    "IPPORT-006": {CHANGE: _ITSELF, MEMBERS: _ITSELF},
    "IPPORT-009": dict.fromkeys((CLIENTS, SERVICES, CHANGE, REMOVAL), _EVERY_TIME),
    "IPPORT-011": {MEMBERS: _ITSELF},
    "IPPORT-019": dict.fromkeys((CLIENTS, SERVICES, CHANGE, REMOVAL), _EVERY_TIME),
    "LEASE-005": {HTTP: never("clients of the HTTP API stay alive by beats, whichever node owns them")},
    "LEASE-008": {HTTP: _ITSELF, FAILURE: _EVERY_TIME},
    "LIST-002": dict.fromkeys((CLIENTS, BATCH, CHANGE, REMOVAL), never("no client publishes the service")),
    "LOAD-001": dict.fromkeys((CLIENTS, SERVICES, BATCH, REMOVAL, HTTP), _NO_CLIENT),
    "LOAD-002": dict.fromkeys((CLIENTS, SERVICES, BATCH, REMOVAL, HTTP), _NO_CLIENT),
    "LOAD-005": {REMOVAL: never("nothing was loaded that could be removed")},
    "LOAD-010": dict.fromkeys((CLIENTS, SERVICES, BATCH, REMOVAL, HTTP), _NO_CLIENT),
    "MEMBER-005": {CLIENTS: _ONE_OWNER, HTTP: _ITSELF},
    "MEMBER-007": {CLIENTS: _ITSELF, HTTP: _ITSELF},
    "NATIVE-002": {CHANGE: never("after a DELETE there is nothing to change")},
    "OWNER-001": {
        BATCH: judged("BATCH-006"),
        HTTP: judged("OWNER-003"),
        REMOVAL: judged("HOLDER-007"),
        SERVICES: _WHOLE_CLIENT,
        CHANGE: judged("HOLDER-006"),
        FAILURE: _NOTHING_FAILS,
        CLIENTS: _BESIDE,
    },
    "OWNER-003": {FAILURE: _NOTHING_FAILS, REMOVAL: _ITSELF},
    "OWNER-004": {FAILURE: judged("RETRY-001")},
    "OWNER-007": {CHANGE: _ITSELF, SERVICES: same("a VERIFY is of a client, and counts for all that it publishes")},
    "PUSH-004": {FAILURE: _NOTHING_FAILS},
    "PUSH-007": {FAILURE: _NOTHING_FAILS, HTTP: judged("IPPORT-010")},
    "PUSH-009": {REMOVAL: same("a change and a removal are one event of the service: PUSH-001")},
    "PUSH-008": {CHANGE: _ITSELF},
    "REGISTER-009": {BATCH: _ITSELF},
    "REGISTER-005": {BATCH: _ITSELF, HTTP: never("a client of the HTTP API is made by its registration")},
    "REGISTER-006": dict.fromkeys((CLIENTS, SERVICES, BATCH, CHANGE, REMOVAL), never("nothing is registered")),
    "SETUP-005": {HTTP: judged("IPPORT-011"), MEMBERS: _EACH_MEMBER},
    "SETUP-009": {CLIENTS: _BESIDE, REMOVAL: _ITSELF},
    "SETUP-010": {SERVICES: _WHOLE_CLIENT, BATCH: _WHOLE_CLIENT, REMOVAL: judged("SYNC-002")},
    "SNAPSHOT-003": dict.fromkeys((CLIENTS, SERVICES, BATCH, CHANGE, REMOVAL), never("the client is unknown")),
    "SYNC-003": {MEMBERS: _ITSELF},
    "SYNC-008": {MEMBERS: _ITSELF},
    "SYNC-007": {SERVICES: _WHOLE_CLIENT, BATCH: _WHOLE_CLIENT, CHANGE: _EVERY_TIME},
    "SYNC-009": {CLIENTS: _ITSELF},
    "VERIFY-006": {SERVICES: _WHOLE_CLIENT, BATCH: _WHOLE_CLIENT, CHANGE: _EVERY_TIME},
    "VERIFY-007": {CLIENTS: _ITSELF, MEMBERS: _ITSELF, HTTP: _ITSELF},
}

_HEAD = (
    "A defect that shows only with two clients of one service, in a batch, at the second change or after a removal",
    "passes a check that has one of each. `judged`: the check of the requirement has the variation; an id: the check",
    "of that requirement has it. `same` and `none`: it is the same code, or there is no such case, for the reason",
    "with that number.",
)
_WORDS = {Kind.SAME: "same", Kind.NEVER: "none"}


def variations_page() -> str:
    rows = [(each.id, [cell(each.id, name) for name in VARIATIONS]) for each in all_requirements()]
    reasons = list(dict.fromkeys(each.why for _, cells in rows for each in cells if each and each.why))

    def text(requirement: str, found: Cell | None) -> str:
        if found is None:
            return "?"
        if found.kind is not Kind.JUDGED:
            return f"{_WORDS[found.kind]} {reasons.index(found.why) + 1}"
        others = [each.removeprefix("DISTRO-") for each in found.by if each != requirement]
        return ", ".join(others) if requirement not in found.by and others else "judged"

    return page(
        "Requirements and variations",
        _HEAD,
        table(
            " | ".join(("requirement", *VARIATIONS)),
            ((name.removeprefix("DISTRO-"), *(text(name, each) for each in cells)) for name, cells in rows),
        ),
        [f"{number}. {why[:1].upper()}{why[1:]}." for number, why in enumerate(reasons, start=1)],
    )
