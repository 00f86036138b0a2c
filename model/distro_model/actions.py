"""What an environment can do to a cluster in the timed mode: clients, time, links, crashes.

The same vocabulary is spoken by scenarios, by the lockstep machine and by a counterexample that was given times.
`str(action)` is the line of a scenario (design.md section 5).
"""

from __future__ import annotations

from dataclasses import dataclass

from distro_model.messages import batch_of


@dataclass(frozen=True, slots=True)
class Connect:
    """A client opens its connection. A connection id is never used twice, so a name connects once in a run."""

    client: str
    node: str

    def __str__(self) -> str:
        return f"connect {self.client} {self.node}"


@dataclass(frozen=True, slots=True)
class Register:
    """The client publishes `instance` (opaque text without spaces at its ends) under `service`, or replaces it."""

    client: str
    service: str
    instance: str

    def __str__(self) -> str:
        return f"register {self.client} {self.service} {self.instance}"


@dataclass(frozen=True, slots=True)
class Deregister:
    client: str
    service: str

    def __str__(self) -> str:
        return f"deregister {self.client} {self.service}"


@dataclass(frozen=True, slots=True)
class RegisterBatch:
    """The client publishes several instances under `service` at once. So far a choice of the bounded cluster only."""

    client: str
    service: str
    instances: tuple[str, ...]

    def __str__(self) -> str:
        return f"register a batch {self.client} {self.service} {batch_of(self.instances)}"


@dataclass(frozen=True, slots=True)
class Disconnect:
    client: str

    def __str__(self) -> str:
        return f"disconnect {self.client}"


@dataclass(frozen=True, slots=True)
class Advance:
    """Time passes; every timer that is due until then, its last instant included, fires."""

    ms: int

    def __str__(self) -> str:
        return f"advance {self.ms}ms"


@dataclass(frozen=True, slots=True)
class Cut:
    """From now on every request from source to target fails at once as UNREACHABLE, those on their way too."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"cut {self.source}->{self.target}"


@dataclass(frozen=True, slots=True)
class Heal:
    source: str
    target: str

    def __str__(self) -> str:
        return f"heal {self.source}->{self.target}"


@dataclass(frozen=True, slots=True)
class Hold:
    """From now on requests from source to target wait; one that waits too long vanishes, its sender sees TIMEOUT."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"hold {self.source}->{self.target}"


@dataclass(frozen=True, slots=True)
class Release:
    """What waits is delivered, in order."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"release {self.source}->{self.target}"


@dataclass(frozen=True, slots=True)
class Drop:
    """The next matching Distro request (never a report) is lost: its sender sees TIMEOUT, in time.

    `operation` and `client` None match any. Several requests may leave in one instant, in an order that nothing
    prescribes; naming both says which of them is meant.
    """

    source: str
    target: str
    operation: str | None = None
    client: str | None = None

    def __str__(self) -> str:
        return f"drop {self.source}->{self.target}{_suffix(self.operation, self.client)}"


@dataclass(frozen=True, slots=True)
class Swallow:
    """The next matching CHANGE, DELETE or VERIFY is acknowledged with SUCCESS and not delivered."""

    source: str
    target: str
    operation: str | None = None
    client: str | None = None

    def __str__(self) -> str:
        return f"swallow {self.source}->{self.target}{_suffix(self.operation, self.client)}"


@dataclass(frozen=True, slots=True)
class Crash:
    """The node is gone with all its memory; its clients' connections end, and nothing is said to anybody."""

    node: str

    def __str__(self) -> str:
        return f"crash {self.node}"


@dataclass(frozen=True, slots=True)
class Restart:
    """The node starts, the first time too: empty, with timers in phase with now, loading at once."""

    node: str

    def __str__(self) -> str:
        return f"restart {self.node}"


LinkAction = Cut | Heal | Hold | Release | Drop | Swallow
Action = Connect | Register | Deregister | Disconnect | Advance | LinkAction | Crash | Restart


def _suffix(*words: str | None) -> str:
    return "".join(f" {word}" for word in words if word is not None)
