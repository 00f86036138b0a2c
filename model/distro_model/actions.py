"""What an environment can do to a cluster with a clock: clients, time, links, requests, nodes, member lists.

The same vocabulary is spoken by scenarios, by the lockstep machine and by a counterexample that was given times.
`str(action)` is the line of a scenario.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


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
    """The client takes back what it publishes under `service`: all of it, also where `instance` names one of a batch.
    The request names an instance, and no server looks at which."""

    client: str
    service: str
    instance: str | None = None

    def __str__(self) -> str:
        return " ".join(filter(None, ("deregister", self.client, self.service, self.instance)))


@dataclass(frozen=True, slots=True)
class RegisterBatch:
    """The client publishes several instances under `service` at once, in place of what it published there."""

    client: str
    service: str
    instances: tuple[str, ...]

    def __str__(self) -> str:
        return f"batch {self.client} {self.service} {', '.join(self.instances)}"


@dataclass(frozen=True, slots=True)
class OfClient:
    """What a client does without saying what about. The subclass says what."""

    client: str
    verb: ClassVar[str]

    def __str__(self) -> str:
        return f"{self.verb} {self.client}"


class Disconnect(OfClient):
    """The client's connection ends, and with it what it publishes."""

    verb = "disconnect"


class FallSilent(OfClient):
    """After this sign of life the client does nothing and answers nothing; its connection stays open."""

    verb = "silent"


class AnswerAgain(OfClient):
    """A silent client acts and answers again, if its node has not closed the connection meanwhile."""

    verb = "answers"


@dataclass(frozen=True, slots=True)
class OverHttp:
    """A request of the HTTP API about `instance`, sent to `node`, which may forward it, over no link. The subclass says
    which.

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


class HttpRegister(OverHttp):
    verb = "register"


class HttpDeregister(OverHttp):
    verb = "deregister"


class HttpBeat(OverHttp):
    """With the whole instance: where it is not registered, it is registered by this."""

    verb = "beat"


class HttpLightBeat(OverHttp):
    """With the address alone, as clients send it once a node has told them to: a node that does not know the instance
    answers 20404, and the client has to register it again."""

    verb = "light-beat"


@dataclass(frozen=True, slots=True)
class Advance:
    """Time passes; every timer that is due until then, its last instant included, fires."""

    ms: int

    def __str__(self) -> str:
        return f"advance {self.ms}ms"


@dataclass(frozen=True, slots=True)
class OfLink:
    """What becomes of a link, and of all that is sent on it. The subclass says what."""

    source: str
    target: str
    verb: ClassVar[str]

    def __str__(self) -> str:
        return f"{self.verb} {self.source}->{self.target}"


class Cut(OfLink):
    """From now on every request from source to target fails at once as UNREACHABLE, those on their way too."""

    verb = "cut"


class Heal(OfLink):
    """The target can be reached again, and does what it is asked: the end of a cut, a black hole and of refusals."""

    verb = "heal"


class Refuse(OfLink):
    """From now on the target answers every Distro request of the source that arrives with a failure, and does nothing;
    reports pass. A request that is lost or swallowed does not arrive."""

    verb = "refuse"


@dataclass(frozen=True, slots=True)
class Hold(OfLink):
    """From now on requests from source to target wait; one that waits too long vanishes, its sender sees TIMEOUT.

    `distro`: only Distro requests wait, and reports pass, so that nobody is taken for dead however long it lasts.
    """

    distro: bool = False
    verb = "hold"

    def __str__(self) -> str:
        return f"hold {'distro ' if self.distro else ''}{self.source}->{self.target}"


class Release(OfLink):
    """What waits is delivered, in order."""

    verb = "release"


class Blackhole(OfLink):
    """From now on all from source to target vanishes without an end of the connection, as when packets are lost: the
    sender sees TIMEOUT, in time. `heal` ends it; what has vanished stays so."""

    verb = "blackhole"


@dataclass(frozen=True, slots=True)
class WithTime(OfLink):
    """With a time, 0 for none."""

    ms: int

    def __str__(self) -> str:
        return f"{self.verb} {self.source}->{self.target} {self.ms}ms"


class Delay(WithTime):
    """From now on every request from source to target takes so long, 0 for none."""

    verb = "delay"


class Throttle(WithTime):
    """From now on requests from source to target arrive at least so far apart, 0 for no matter; they wait in order."""

    verb = "throttle"


SYNCS = ("CHANGE", "DELETE")
ACKNOWLEDGED = (*SYNCS, "VERIFY")
"""Their answer says nothing but that they arrived."""
OPERATIONS = (*ACKNOWLEDGED, "SNAPSHOT")
"""What a Distro request is for; a report is none."""


@dataclass(frozen=True, slots=True)
class OfRequest(OfLink):
    """What becomes of one request. The subclass says what, and to which operations that can happen.

    `operation` and `client` None match any of these. Several requests may leave in one instant, in an order that
    nothing prescribes; naming both says which of them is meant.
    """

    operation: str | None = None
    client: str | None = None
    meets: ClassVar[tuple[str, ...]] = OPERATIONS

    def means(self, operation: str, client: str | None) -> bool:
        """Whether it is about such a request."""
        return operation in self.meets and self.operation in (None, operation) and self.client in (None, client)

    def __str__(self) -> str:
        words = (self.verb, f"{self.source}->{self.target}", self.operation, self.client)
        return " ".join(word for word in words if word is not None)


@dataclass(frozen=True, slots=True)
class Fault(OfRequest):
    """`held`: the first matching request that a hold keeps back; otherwise the next matching one that is sent."""

    held: bool = False

    def __str__(self) -> str:
        words = (self.verb, "held" if self.held else None, f"{self.source}->{self.target}", self.operation, self.client)
        return " ".join(word for word in words if word is not None)


class Drop(Fault):
    """It is lost: its sender sees TIMEOUT, in time."""

    verb = "drop"


class Swallow(Fault):
    """It is acknowledged with SUCCESS and not delivered. A SNAPSHOT cannot be: its answer has content."""

    verb = "swallow"
    meets = ACKNOWLEDGED


class LoseReply(Fault):
    """It takes effect and its reply is lost: its sender sees TIMEOUT, in time."""

    verb = "lose-reply"


class Garble(Fault):
    """A CHANGE or DELETE takes effect, and its answer is of a type that its sender does not know."""

    verb = "garble"
    meets = SYNCS


class Mistype(Fault):
    """A CHANGE or DELETE arrives as data of a type that its target does not know, as from a member that knows more."""

    verb = "mistype"
    meets = SYNCS


class Duplicate(Fault):
    """It arrives twice, and its sender hears the second answer. Of one that is held a copy arrives; it waits on."""

    verb = "duplicate"
    meets = ACKNOWLEDGED


class Reorder(Fault):
    """It arrives after the next Distro request on that link."""

    verb = "reorder"


class Deliver(OfRequest):
    """The first matching request that a hold keeps back arrives and is answered; the others wait on."""

    verb = "deliver"


class AnswerLate(OfRequest):
    """The first matching request that a hold keeps back arrives; its reply waits for `reply`, or until its time-out."""

    verb = "answer-late"


class Reply(OfRequest):
    """The reply that an `answer-late` keeps back arrives."""

    verb = "reply"


@dataclass(frozen=True, slots=True)
class OfNode:
    """What becomes of a node. The subclass says what."""

    node: str
    verb: ClassVar[str]

    def __str__(self) -> str:
        return f"{self.verb} {self.node}"


class Pause(OfNode):
    """The node stands still (SIGSTOP): it hears nothing and no timer of it fires, while time goes on for the others."""

    verb = "pause"


class Resume(OfNode):
    """It goes on: every timer that was due meanwhile fires once, what waits for it arrives."""

    verb = "resume"


@dataclass(frozen=True, slots=True)
class ListMembers:
    """The node reads its member list, which now names `members`; itself it adds where the list lacks it."""

    node: str
    members: tuple[str, ...]

    def __str__(self) -> str:
        return f"members {self.node}: {' '.join(self.members)}"


class Crash(OfNode):
    """The node is gone with all its memory; its clients' connections end, and nothing is said to anybody."""

    verb = "crash"


class Restart(OfNode):
    """The node starts, the first time too: empty, with timers in phase with now, loading at once."""

    verb = "restart"


@dataclass(frozen=True, slots=True)
class Move:
    """The node, which is down, comes back under another address, which is a name of its own: started as by `restart`,
    with that address in its list in place of the old one. The others know it by what their own lists say."""

    node: str
    address: str

    def __str__(self) -> str:
        return f"move {self.node} {self.address}"


SAID = ("CHANGE", "DELETE", "VERIFY", "SNAPSHOT", "QUERY", "REPORT")
"""What a played member says to the node."""
MALFORMED = ("NO-KEY", "NO-CONTENT", "NO-BASE64", "NO-JSON", "NO-TYPE", "UNKNOWN-TYPE")
"""Requests that no member would send, by what is wrong with them."""
RESULTS = ("fail", "error", "unreadable", "unheard")
"""How a played member may answer besides success."""


@dataclass(frozen=True, slots=True)
class Says:
    """A played member sends this to the node under test: any request about any client, true or not.

    `operation` is one of SAID or MALFORMED.
    """

    peer: str
    operation: str
    client: str | None = None
    revision: int = 0
    content: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        words = ["say", self.peer, self.operation, *([self.client] if self.client else [])]
        words += [f"revision {self.revision}"] if self.operation in ("CHANGE", "VERIFY") else []
        published = " and ".join(f"{service} {instance}" for service, instance in self.content)
        return " ".join([*words, *([published] if published else [])])


@dataclass(frozen=True, slots=True)
class Answers:
    """A played member answers the next such request so, a REPORT too: `result` is one of RESULTS."""

    peer: str
    operation: str
    result: str
    client: str | None = None

    def __str__(self) -> str:
        words = ("answer", self.peer, self.operation, self.result, self.client)
        return " ".join(word for word in words if word is not None)


RequestAction = Drop | Swallow | LoseReply | Garble | Mistype | Duplicate | Reorder | Deliver | AnswerLate | Reply
Shape = Blackhole | Delay | Throttle
"""What a link does to all that travels on it."""
LinkAction = Cut | Heal | Refuse | Hold | Release | Shape | RequestAction
ClientAction = Connect | Register | RegisterBatch | Deregister | Disconnect | FallSilent | AnswerAgain
NodeAction = Crash | Restart | Move | Pause | Resume | ListMembers
HttpRequest = HttpRegister | HttpDeregister | HttpBeat | HttpLightBeat
PlayedAction = Says | Answers
Action = ClientAction | HttpRequest | Advance | LinkAction | NodeAction | PlayedAction


def beyond_the_model(action: Action) -> str | None:
    """Why the model has no such action, or None. Its messages take no time, and none vanishes without its turn."""
    if isinstance(action, Shape | Reorder):
        return "in the model a message arrives at once or waits for a decision: hold, deliver and drop say the rest"
    return None
