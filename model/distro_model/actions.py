"""The actions of an environment on a cluster with a clock: clients, time, links, requests, nodes, member lists.

Scenarios, the lockstep machine and counterexamples with times use this vocabulary. `str(action)` is the line of a
scenario.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


def line_of(*words: str | None) -> str:
    """The words that there are, with a space between them."""
    return " ".join(word for word in words if word)


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
    """The client deregisters all that it publishes under `service`, also where `instance` names one instance of a
    batch. The request names an instance, and no server reads it."""

    client: str
    service: str
    instance: str | None = None

    def __str__(self) -> str:
        return line_of("deregister", self.client, self.service, self.instance)


@dataclass(frozen=True, slots=True)
class RegisterBatch:
    """The client publishes several instances under `service` at once, in place of what it published there."""

    client: str
    service: str
    instances: tuple[str, ...]

    def __str__(self) -> str:
        return f"batch {self.client} {self.service} {', '.join(self.instances)}"


@dataclass(frozen=True, slots=True)
class BaseClientAction:
    """An action of a client; subclasses define it."""

    client: str
    verb: ClassVar[str]

    def __str__(self) -> str:
        return f"{self.verb} {self.client}"


class Disconnect(BaseClientAction):
    """The client's connection ends, and its registrations with it."""

    verb = "disconnect"


class FallSilent(BaseClientAction):
    """From now on the client does nothing and answers nothing; its connection stays open."""

    verb = "silent"


class AnswerAgain(BaseClientAction):
    """A silent client acts and answers again, if its node has not closed the connection meanwhile."""

    verb = "answers"


@dataclass(frozen=True, slots=True)
class BaseHttpRequest:
    """A request of the HTTP API about `instance`, sent to `node`, which may forward it, over no link. Subclasses define
    it.

    `instance` is opaque text that begins with its `ip:port`; the client is the one of that address. `by_v2`: by version
    2 of the API, which not every release forwards (docs/protocol #http-v2).
    """

    service: str
    instance: str
    node: str
    by_v2: bool = False
    verb: ClassVar[str]

    @property
    def client(self) -> str:
        """Its name on every node (docs/protocol #lease-copies)."""
        return f"{self.instance.partition(' ')[0]}#true"

    def __str__(self) -> str:
        return f"http {self.verb} {self.service} {self.instance} at {self.node}{' by v2' if self.by_v2 else ''}"


class HttpRegister(BaseHttpRequest):
    verb = "register"


class HttpDeregister(BaseHttpRequest):
    verb = "deregister"


class HttpBeat(BaseHttpRequest):
    """With the whole instance: where it is not registered, the beat registers it."""

    verb = "beat"


class HttpLightBeat(BaseHttpRequest):
    """With the address alone, as clients send it once a node has requested that: a node that does not know the instance
    answers 20404, and the client has to register it again."""

    verb = "light-beat"


@dataclass(frozen=True, slots=True)
class Advance:
    """Time passes; every timer that is due until then, its last instant included, fires."""

    ms: int

    def __str__(self) -> str:
        return f"advance {self.ms}ms"


@dataclass(frozen=True, slots=True)
class BaseLinkAction:
    """An effect on a link and all that is sent on it; subclasses define it."""

    source: str
    target: str
    verb: ClassVar[str]

    def __str__(self) -> str:
        return f"{self.verb} {self.source}->{self.target}"


class Cut(BaseLinkAction):
    """From now on every request from source to target fails at once as UNREACHABLE, those in transit too."""

    verb = "cut"


class Heal(BaseLinkAction):
    """The target can be reached again, and handles requests: the end of a cut, a black hole and of refusals."""

    verb = "heal"


class Refuse(BaseLinkAction):
    """From now on the target answers every Distro request of the source that arrives with a failure, and does nothing;
    reports pass. A request that is lost or swallowed does not arrive."""

    verb = "refuse"


@dataclass(frozen=True, slots=True)
class Hold(BaseLinkAction):
    """From now on requests from source to target wait; one that waits too long vanishes, its sender observes TIMEOUT.

    `distro`: only Distro requests wait, and reports pass, so that no node is believed DOWN however long it lasts.
    """

    distro: bool = False
    verb = "hold"

    def __str__(self) -> str:
        return f"hold {'distro ' if self.distro else ''}{self.source}->{self.target}"


class Release(BaseLinkAction):
    """The waiting requests are delivered, in order."""

    verb = "release"


class Blackhole(BaseLinkAction):
    """From now on all from source to target vanishes without an end of the connection, as when packets are lost: the
    sender observes TIMEOUT, in time. `heal` ends it; what has vanished stays lost."""

    verb = "blackhole"


@dataclass(frozen=True, slots=True)
class TimedLinkAction(BaseLinkAction):
    """With a duration, 0 for none."""

    ms: int

    def __str__(self) -> str:
        return f"{self.verb} {self.source}->{self.target} {self.ms}ms"


class Delay(TimedLinkAction):
    """From now on every request from source to target takes this long, 0 for no delay."""

    verb = "delay"


class Throttle(TimedLinkAction):
    """From now on requests from source to target arrive at least this far apart, 0 for no limit; they wait in order."""

    verb = "throttle"


SYNCS = ("CHANGE", "DELETE")
ACKNOWLEDGED = (*SYNCS, "VERIFY")
"""Operations whose answer only confirms that they arrived."""
OPERATIONS = (*ACKNOWLEDGED, "SNAPSHOT")
"""The operations of Distro requests; a report is none."""


@dataclass(frozen=True, slots=True)
class BaseRequestAction(BaseLinkAction):
    """An effect on one request; subclasses define it, and the operations to which it applies.

    `operation` and `client` None match any of these. Several requests may be sent in one instant, in an unspecified
    order; naming both selects one of them.
    """

    operation: str | None = None
    client: str | None = None
    applicable_operations: ClassVar[tuple[str, ...]] = OPERATIONS

    def matches(self, operation: str, client: str | None) -> bool:
        """Whether it applies to such a request."""
        return (
            operation in self.applicable_operations
            and self.operation in (None, operation)
            and self.client in (None, client)
        )

    def __str__(self) -> str:
        return line_of(self.verb, f"{self.source}->{self.target}", self.operation, self.client)


@dataclass(frozen=True, slots=True)
class Fault(BaseRequestAction):
    """`held`: the first matching request that a hold keeps back; otherwise the next matching one that is sent."""

    held: bool = False

    def __str__(self) -> str:
        held = "held" if self.held else None
        return line_of(self.verb, held, f"{self.source}->{self.target}", self.operation, self.client)


class Drop(Fault):
    """It is lost: its sender observes TIMEOUT, in time."""

    verb = "drop"


class Swallow(Fault):
    """It is acknowledged with SUCCESS and not delivered. A SNAPSHOT cannot be: its answer has content."""

    verb = "swallow"
    applicable_operations = ACKNOWLEDGED


class LoseReply(Fault):
    """It takes effect and its reply is lost: its sender observes TIMEOUT, in time."""

    verb = "lose-reply"


class Garble(Fault):
    """A CHANGE or DELETE takes effect, and its answer is of a type that its sender does not know."""

    verb = "garble"
    applicable_operations = SYNCS


class Mistype(Fault):
    """A CHANGE or DELETE arrives as data of a type that its target does not know, as from a member of a later
    release."""

    verb = "mistype"
    applicable_operations = SYNCS


class Duplicate(Fault):
    """It arrives twice, and its sender receives the second answer. Of a held request a copy arrives; the request waits
    on."""

    verb = "duplicate"
    applicable_operations = ACKNOWLEDGED


class Reorder(Fault):
    """It arrives after the next Distro request on that link."""

    verb = "reorder"


class Deliver(BaseRequestAction):
    """The first matching request that a hold keeps back arrives and is answered; the others wait on."""

    verb = "deliver"


class AnswerLate(BaseRequestAction):
    """The first matching request that a hold keeps back arrives; its reply waits for `reply`, or until its time-out."""

    verb = "answer-late"


class Reply(BaseRequestAction):
    """The reply that an `answer-late` keeps back arrives."""

    verb = "reply"


@dataclass(frozen=True, slots=True)
class BaseNodeAction:
    """An effect on a node; subclasses define it."""

    node: str
    verb: ClassVar[str]

    def __str__(self) -> str:
        return f"{self.verb} {self.node}"


class Pause(BaseNodeAction):
    """The node is suspended (SIGSTOP): it receives nothing and none of its timers fires, while time goes on for the
    others."""

    verb = "pause"


class Resume(BaseNodeAction):
    """The node resumes: every timer that was due meanwhile fires once, and waiting requests arrive."""

    verb = "resume"


@dataclass(frozen=True, slots=True)
class ListMembers:
    """The node reads its member list, which now names `members`; it adds itself where the list lacks it."""

    node: str
    members: tuple[str, ...]

    def __str__(self) -> str:
        return f"members {self.node}: {' '.join(self.members)}"


class Crash(BaseNodeAction):
    """The node stops and loses its memory; its clients' connections end, and no other node is notified."""

    verb = "crash"


class Restart(BaseNodeAction):
    """The node starts, the first time too: empty, with timers in phase with now, loading at once."""

    verb = "restart"


@dataclass(frozen=True, slots=True)
class Move:
    """The node, which is down, comes back under another address, which is a separate name: started as by `restart`,
    with that address in its list in place of the old one. The others know it by their own lists."""

    node: str
    address: str

    def __str__(self) -> str:
        return f"move {self.node} {self.address}"


WELL_FORMED = ("CHANGE", "DELETE", "VERIFY", "SNAPSHOT", "QUERY", "REPORT")
"""The requests that a played member can send to the node."""
MALFORMED = ("NO-KEY", "NO-CONTENT", "NO-BASE64", "NO-JSON", "NO-TYPE", "UNKNOWN-TYPE")
"""Requests that no member would send, by their error."""
RESULTS = ("fail", "error", "unreadable", "unheard")
"""The answers of a played member besides success."""


@dataclass(frozen=True, slots=True)
class PeerRequest:
    """A played member sends this to the node under test: any request about any client, valid or not.

    `operation` is one of WELL_FORMED or MALFORMED. Several instances of a service, with `, ` between them, are a batch.
    """

    peer: str
    operation: str
    client: str | None = None
    revision: int = 0
    content: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        revision = f"revision {self.revision}" if self.operation in ("CHANGE", "VERIFY") else None
        published = " and ".join(f"{service} {instance}" for service, instance in self.content)
        return line_of("say", self.peer, self.operation, self.client, revision, published)


@dataclass(frozen=True, slots=True)
class PeerAnswer:
    """A played member answers the next such request in this way, a REPORT too: `result` is one of RESULTS."""

    peer: str
    operation: str
    result: str
    client: str | None = None

    def __str__(self) -> str:
        return line_of("answer", self.peer, self.operation, self.result, self.client)


RequestAction = Drop | Swallow | LoseReply | Garble | Mistype | Duplicate | Reorder | Deliver | AnswerLate | Reply
Shape = Blackhole | Delay | Throttle
"""An effect of a link on all that is sent on it."""
LinkAction = Cut | Heal | Refuse | Hold | Release | Shape | RequestAction
ClientAction = Connect | Register | RegisterBatch | Deregister | Disconnect | FallSilent | AnswerAgain
NodeAction = Crash | Restart | Move | Pause | Resume | ListMembers
HttpRequest = HttpRegister | HttpDeregister | HttpBeat | HttpLightBeat
PlayedAction = PeerRequest | PeerAnswer
Action = ClientAction | HttpRequest | Advance | LinkAction | NodeAction | PlayedAction


def beyond_the_model(action: Action) -> str | None:
    """Why the model has no such action, or None. Its messages take no time, and the model cannot reorder or drop
    requests by chance."""
    if isinstance(action, Shape | Reorder):
        return "in the model a message arrives at once or waits for a decision: hold, deliver and drop say the rest"
    return None
