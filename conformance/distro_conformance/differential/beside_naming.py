"""Deviations in what stands beside naming: what operators are told and turn, users and their tokens, packets over UDP.

They are part of the one registry in `deviations`, and in a file of their own because that one is long enough.
"""

from __future__ import annotations

from distro_conformance.differential.deviation import Deviation, Place, at
from distro_conformance.release import Span

UP_TO_2_0 = Span(until="2.0.4")
_PAGE_TEXTS = ("no such api*", "No message available")

BESIDE_NAMING: tuple[Deviation, ...] = (
    Deviation(
        "DEV-UDP-NAMES",
        at("udp-agents", "packets, no ip", "packets, an ip that is none", path=""),
        "A real server looks up whatever a client of 1.x gives as its address, and takes nothing for itself. The node "
        "sends packets to addresses only, which is what clients give; looking up a name would hold up everybody else.",
    ),
    Deviation(
        "DEV-OPERATOR-API",
        at(
            "paths",
            *("GET /v1/ns/health*", "GET /v1/ns/operator/push/state", "GET /v1/ns/service/*", "GET /v1/ns/catalog/*"),
            *("GET /v2/ns/*", "GET /v2/core/cluster/lookup", "GET /v[12]/core/ops/*"),
            *("GET /v1/ns/raft/*", "GET /v1/ns/upgrade/*"),
            path="",
        ),
        "What operators look at and turn in services, health checks, Raft, ids and log levels, and what 2.0.x keeps "
        "for its upgrade from 1.x, is not there: it has nothing to do with Distro. The node answers as to any other "
        "path that is not there.",
    ),
    Deviation(
        "DEV-PROMETHEUS",
        at("paths", "GET /actuator/prometheus", path=""),
        "The counters for Prometheus are there only where `management.endpoints.web.exposure.include` says so. The "
        "node shows its own without being told.",
    ),
    Deviation(
        "DEV-SWITCHES",
        (
            *at("switches", *(f"turn {name}*" for name in ("distroT", "defaultP", "pushC", "nonsense")), path=""),
            *at("switches", "turn lightBeatEnabled to ''", "by a word for debug", path=""),
            *at("switches", "switches, turned", path="body.d*"),
            *at("switches", "told when it is on again", path="*.cacheMillis"),
        ),
        "A real server says `ok` to a switch of any name and to most values, and has some that the node keeps fixed: "
        "the threshold of 1.x, and how long a list may be cached. The node refuses what it cannot turn, so that nobody "
        "believes that it did.",
    ),
    Deviation(
        "DEV-CONSOLE-ERRORS",
        at("switches", "without entry", "without value", path=""),
        "In a whole distribution the console handles the errors of all modules, and a parameter that is missing is a "
        "500 there; naming alone, and the node, answer 400.",
    ),
    Deviation(
        "DEV-PAGE-MESSAGE",
        tuple(
            Place(script, path="body.message", real=text)
            for script in ("login", "secured-paths", "paths", "loader-paths")
            for text in _PAGE_TEXTS
        ),
        "The page for a path that is not there has a message in a whole distribution, and in 2.0.x. The node shows the "
        "page without, as naming alone does from 2.2 on. The status is the same.",
    ),
    Deviation(
        "DEV-LOGIN",
        (
            *at("login", "wrong password", "blank *", "empty *", "unknown user", path=""),
            *at("secured-http", "unknown user and password", path=""),
        ),
        "To a wrong password a real server answers with the HTTP status 0, which is no HTTP and which clients report "
        "as a broken connection; to a user that it does not know with 500 from 2.2 on. The node answers both with 403.",
    ),
    Deviation(
        "DEV-NO-USER-API",
        at("login", "POST /v1/auth", path=""),
        "Users of a real server are kept in its database and managed over HTTP. Those of the node are a setting.",
    ),
    Deviation(
        "DEV-TOKEN",
        at("secured-*", "*, without expiry", "*, of nobody", "*, signed with a type"),
        "Tokens that no server makes, though they are signed with the right secret: a real server takes one without an "
        "expiry for one that never ends, and from 2.2 on one of a user without a name for an administrator's; one "
        "whose header says `typ`, as most libraries write it, it refuses from 2.2 on. The node refuses the first two "
        "and takes the third.",
    ),
    Deviation(
        "DEV-2.0-TOKEN",
        (
            *at("secured-grpc", "*, in accesstoken", "*, in ACCESSTOKEN"),
            *at("secured-http", "in a header", path=""),
        ),
        "In 2.0.x the name of the token's header may be written in upper or lower case over gRPC, and over HTTP the "
        "token stands in a parameter or in `Authorization` only. The node reads tokens as later releases do; SDKs of "
        "all times write them so that both understand.",
        UP_TO_2_0,
    ),
    Deviation(
        "DEV-2.0-V2",
        at("secured-paths", "GET /v2/ns/instance/list, *", path=""),
        "2.0.x has the beginnings of the v2 API of instances, which nobody has used; the node has it from 2.2.0 on.",
        UP_TO_2_0,
    ),
)
