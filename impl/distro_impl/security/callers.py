"""Who may call what: every type of request and every HTTP route, in one table. What is not in it is refused.

A server looks here before a handler is asked, on gRPC (request_filter.py) and on HTTP (http/auth.py), so that a new
handler answers no request until it has its line; docs/reference/callers.md is generated from the same lines. The column
`right` matters where users log in, `in_3x` where a release of 3.x plays. How a member is known is said in inner_api.py.
Source: docs/protocol #wire-checks, #connection-internal, #member-auth, #http-v2 and #http-admin; what running servers
with their console answer to whom.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum


class Caller(StrEnum):
    EVERY = "any caller"
    CLIENT = "client"
    MEMBER = "member"
    OPERATOR = "operator"


class Right(StrEnum):
    """What a user who logged in needs; `WRITE` outside of a namespace makes an administrator."""

    READ = "r"
    WRITE = "w"


class In3x(StrEnum):
    """What a 3.x server does with a path of v1 or v2."""

    SERVED = "served"
    CLOSED = "410"
    UNTIL_ALL_ARE_3X = "410 once all members are 3.x"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One line of the table."""

    caller: Caller
    right: Right | None = None
    """Of the user, where authentication is on; None: no user is asked for."""
    in_3x: In3x = In3x.SERVED
    has_namespace: bool = False
    """The right is one in the namespace that the request names."""
    open_before_2_3: bool = False
    """Up to 2.2.4 no user is asked for."""
    changes_node: bool = False
    """It changes what the node does, so where no user logs in it takes a caller on this machine, or the identity.
    Releases take every caller there."""


_EVERY = Access(caller=Caller.EVERY)
_MEMBER = Access(caller=Caller.MEMBER)
_READS = Access(caller=Caller.CLIENT, right=Right.READ, has_namespace=True)
_WRITES = Access(caller=Caller.CLIENT, right=Right.WRITE, has_namespace=True)

REQUESTS: Mapping[str, Access] = {
    "ServerCheckRequest": _EVERY,
    "ConnectionSetupRequest": _EVERY,
    "HealthCheckRequest": _EVERY,
    "InstanceRequest": _WRITES,
    "BatchInstanceRequest": _WRITES,
    "PersistentInstanceRequest": _WRITES,
    "SubscribeServiceRequest": _READS,
    "ServiceQueryRequest": _READS,
    "ServiceListRequest": _READS,
    "DistroDataRequest": _MEMBER,
    "MemberReportRequest": _MEMBER,
    "ConfigChangeClusterSyncRequest": _MEMBER,
}
"""By the simple name of its class. Requests of members are taken on the cluster port alone from 2.4.3 on."""

CLUSTER_ONLY = frozenset(name for name, access in REQUESTS.items() if access.caller is Caller.MEMBER)
"""Refused on the SDK port, where the release does that (docs/protocol #wire-checks)."""

Route = tuple[str, str]
"""Method and path below the context path. `GET` stands for `HEAD` too."""


def _routes() -> Iterable[tuple[Route, Access]]:
    for path in ("/v1/auth/login", "/v1/auth/users/login", "/v3/auth/user/login"):
        yield ("POST", path), _EVERY
    yield ("GET", "/actuator/prometheus"), _EVERY
    for path in ("health/liveness", "health/readiness", "server/state"):
        yield ("GET", f"/v1/console/{path}"), _closed(_EVERY)
    yield from _naming()
    yield from _operation()
    yield ("GET", "/v1/ns/distro/datums"), _closed(_MEMBER)
    yield (
        ("POST", "/v1/core/cluster/report"),
        Access(caller=Caller.MEMBER, right=Right.WRITE, in_3x=In3x.UNTIL_ALL_ARE_3X, open_before_2_3=True),
    )


def _naming() -> Iterable[tuple[Route, Access]]:
    path = "/v1/ns/instance"
    yield ("POST", path), _WRITES
    yield ("DELETE", path), _WRITES
    yield ("PUT", path), _closed(_WRITES)
    yield ("PUT", f"{path}/beat"), _WRITES
    yield ("GET", path), _closed(_READS)
    yield ("GET", f"{path}/list"), _READS
    yield ("GET", f"{path}/statuses"), _closed(_EVERY)
    yield ("GET", "/v1/ns/service/list"), _READS
    path = "/v2/ns/instance"
    for method in ("POST", "DELETE", "PUT"):
        yield (method, path), _closed(_WRITES)
    yield ("PUT", f"{path}/beat"), _closed(_WRITES)
    yield ("GET", path), _closed(_READS)
    yield ("GET", f"{path}/list"), _closed(_READS)
    path = "/v3/client/ns/instance"
    yield ("POST", path), _WRITES
    yield ("DELETE", path), _WRITES
    yield ("GET", f"{path}/list"), _READS


def _operation() -> Iterable[tuple[Route, Access]]:
    """What only reads the state of a node is open to any caller under the paths of the operator, in every release."""
    administers = Access(caller=Caller.OPERATOR, right=Right.WRITE, in_3x=In3x.CLOSED)
    changes = replace(administers, changes_node=True)
    for version in ("v1", "v2"):
        for operator in (f"/{version}/ns/operator", f"/{version}/ns/ops"):
            is_status = operator == "/v1/ns/operator"  # what old clients ask to see whether a server is healthy
            yield ("GET", f"{operator}/metrics"), _EVERY if is_status else _closed(_EVERY)
            yield ("GET", f"{operator}/switches"), _closed(_EVERY)
            yield ("PUT", f"{operator}/switches"), changes
            if version == "v1":
                yield ("GET", f"{operator}/distro/client"), _closed(_EVERY)
                yield ("GET", f"{operator}/servers"), _closed(_EVERY)
    for path in (
        "",
        "/list",
        "/publish/list",
        "/subscribe/list",
        "/service/publisher/list",
        "/service/subscriber/list",
    ):
        yield ("GET", f"/v2/ns/client{path}"), administers
    for path in ("node/list", "node/self", "node/self/health"):
        yield ("GET", f"/v2/core/cluster/{path}"), administers
    looks = Access(caller=Caller.OPERATOR, right=Right.WRITE, in_3x=In3x.CLOSED, open_before_2_3=True)
    for path in ("nodes", "simple/nodes", "self", "health"):
        yield ("GET", f"/v1/core/cluster/{path}"), looks


def _closed(access: Access) -> Access:
    return replace(access, in_3x=In3x.CLOSED)


ROUTES: Mapping[Route, Access] = dict(_routes())


def access_to_route(method: str, path: str) -> Access | None:
    """None: the route is not served."""
    return ROUTES.get(("GET" if method == "HEAD" else method, path))
