"""The expectations of a scenario: conditions on what nodes hold, show and push, and on their view of members, on any
driver.

A condition is evaluated in each state that the cluster may be in and returns the reason why it does not hold there.
"within" is a window, "for" a time during which it must hold throughout. `str(condition)` is the text after the colon.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from distro_conformance.drivers.cluster import Cluster
from distro_conformance.node.player import ClientAnswer, RefusedError
from distro_model.messages import instances_of
from distro_model.possible import Observation

UP = "UP"
NO_NODE = "no node is up"
STATES = (UP, "SUSPICIOUS", "DOWN")


class Condition(Protocol):
    async def unmet(self, cluster: Cluster) -> Sequence[str | None]:
        """For each possible state: why the condition does not hold there, None where it does."""
        ...


@dataclass(frozen=True, slots=True)
class Expect:
    """`within_ms` is how long it may take until the condition holds, `for_ms` how long it must hold from now on."""

    condition: Condition
    within_ms: int = 0
    for_ms: int = 0


@dataclass(frozen=True, slots=True)
class ExpectModel:
    """From the first step to here, what the nodes hold and say is what the model allows."""

    def __str__(self) -> str:
        return "expect model agrees"


@dataclass(frozen=True, slots=True)
class ExpectAnswer:
    """What the last request of a client was answered: the code that the client looks at, or that it was not carried
    out (`code` None)."""

    code: str | None = None

    def __str__(self) -> str:
        return "expect refused" if self.code is None else f"expect answer {self.code}"

    def unmet_by(self, answer: ClientAnswer) -> str | None:
        if self.code is None:
            return None if answer.is_refused else f"it was carried out: {answer}"
        return None if str(answer) == self.code else f"the answer was {answer}"


class HeldCondition:
    """A condition on what the nodes hold."""

    async def unmet(self, cluster: Cluster) -> Sequence[str | None]:
        return [self.unmet_in(held) for held in await cluster.observe()]

    def unmet_in(self, held: Observation) -> str | None:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class AllAgree(HeldCondition):
    """All nodes that are up hold the same of all clients, or of all but these; one that publishes nothing is in no
    view."""

    but: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join(("all agree", *(("but", *self.but) if self.but else ())))

    def unmet_in(self, held: Observation) -> str | None:
        if all(clients is None for clients in held.values()):
            return NO_NODE
        return next((f"{client}: {shown}" for client, shown in self.differences(held)), None)

    def differences(self, held: Observation) -> Iterator[tuple[str, str]]:
        """Each client of which nodes hold different things, and what each of them shows."""
        up = {node: clients for node, clients in held.items() if clients is not None}
        for client in sorted({client for clients in up.values() for client in clients} - {*self.but}):
            shown = {node: clients[client].content if client in clients else () for node, clients in up.items()}
            if len(set(shown.values())) > 1:
                yield client, ", ".join(f"{node} shows {_published(shown[node])}" for node in sorted(shown))


@dataclass(frozen=True, slots=True)
class NodeHolds(HeldCondition):
    """The node has the client; with `service` its replica publishes exactly that instance there."""

    node: str
    client: str
    service: str | None = None
    instance: str | None = None

    def __str__(self) -> str:
        return " ".join(filter(None, (self.node, "has", self.client, self.service, self.instance)))

    def unmet_in(self, held: Observation) -> str | None:
        clients = held[self.node]
        if clients is None:
            return f"{self.node} is down"
        view = clients.get(self.client)
        if view is None:
            return f"{self.node} does not have {self.client}"
        if self.service and self.instance not in instances_of(dict(view.content).get(self.service, "")):
            return f"{self.node} has {self.client} with {_published(view.content)}"
        return None


@dataclass(frozen=True, slots=True)
class NodeLacks(HeldCondition):
    """The node does not have the client."""

    node: str
    client: str

    def __str__(self) -> str:
        return f"{self.node} has no {self.client}"

    def unmet_in(self, held: Observation) -> str | None:
        clients = held[self.node]
        if clients is None:
            return f"{self.node} is down"
        view = clients.get(self.client)
        return None if view is None else f"{self.node} has {self.client} with {_published(view.content)}"


@dataclass(frozen=True, slots=True)
class QueryShows:
    """A query of the service at the node returns exactly these instances; `node` None: at every node that is up."""

    service: str
    node: str | None
    instances: tuple[str, ...]

    def __str__(self) -> str:
        return f"query {self.service} {f'at {self.node}' if self.node else 'everywhere'} shows {listed(self.instances)}"

    async def unmet(self, cluster: Cluster) -> Sequence[str | None]:
        nodes = [self.node] if self.node else await _up(cluster)
        return _of_every([await self._unmet_at(node, cluster) for node in nodes])

    async def _unmet_at(self, node: str, cluster: Cluster) -> Sequence[str | None]:
        try:
            lists = await cluster.query(node, self.service)
        except RefusedError as error:  # a node that is starting may answer later
            return [str(error)]
        return [_wrong_list(f"{node} shows {self.service} as", shown, self.instances) for shown in lists]


@dataclass(frozen=True, slots=True)
class SubscriptionShows:
    """The list that the node sent to this subscriber last."""

    client: str
    service: str
    instances: tuple[str, ...]

    def __str__(self) -> str:
        return f"subscription {self.client} {self.service} shows {listed(self.instances)}"

    async def unmet(self, cluster: Cluster) -> Sequence[str | None]:
        what = f"{self.client} was sent {self.service} as"
        return [
            _wrong_list(what, sent, self.instances) for sent in await cluster.subscription(self.client, self.service)
        ]


@dataclass(frozen=True, slots=True)
class Counts:
    """The node sees another member in this state."""

    node: str
    member: str
    state: str

    def __str__(self) -> str:
        return f"{self.node} counts {self.member} {self.state}"

    async def unmet(self, cluster: Cluster) -> Sequence[str | None]:
        return [
            None if (state := seen.get(self.member, "unknown")) == self.state else f"{self} is not so: it is {state}"
            for seen in await cluster.members(self.node)
        ]


@dataclass(frozen=True, slots=True)
class AllUp:
    """Every node that is up counts every other such node as UP."""

    def __str__(self) -> str:
        return "all up"

    async def unmet(self, cluster: Cluster) -> Sequence[str | None]:
        up = await _up(cluster)
        return _of_every([await Counts(node, member, UP).unmet(cluster) for node in up for member in up])


@dataclass(frozen=True, slots=True)
class LoadsFrom:
    """Since its last start the node was given a snapshot by one of these members, and by no other."""

    node: str
    snapshot_sources: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.node} loads from {' '.join(self.snapshot_sources)}"

    async def unmet(self, cluster: Cluster) -> Sequence[str | None]:
        found = await cluster.snapshot_sources(self.node)
        if found and found <= set(self.snapshot_sources):
            return [None]
        return [f"{self.node} was given a snapshot by {' and '.join(sorted(found)) or 'no member'}"]


async def _up(cluster: Cluster) -> list[str]:
    return sorted({node for held in await cluster.observe() for node, clients in held.items() if clients is not None})


def _of_every(parts: Sequence[Sequence[str | None]]) -> Sequence[str | None]:
    """The reasons of a condition that must hold in every part: parts that hold in none of their possible states
    decide it, whatever the others do. It holds nowhere if there is no part."""
    decided = [part for part in parts if part and all(part)]
    return [reason for part in decided or parts for reason in part] or [NO_NODE]


def listed(instances: Sequence[str]) -> str:
    return " and ".join(instances) or "nothing"


def _wrong_list(what: str, found: Sequence[str], expected: Sequence[str]) -> str | None:
    return None if tuple(found) == tuple(sorted(expected)) else f"{what} {listed(found)}"


def _published(content: tuple[tuple[str, str], ...]) -> str:
    return " and ".join(f"{service} {instance}" for service, instance in content) or "nothing"
