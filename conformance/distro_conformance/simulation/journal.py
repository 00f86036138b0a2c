"""What happens in a simulated cluster, as trace rows: the same ones that a recording of reference nodes has.

`recording.TraceJournal` hears of messages on wires and has to find out what nodes hold; here the model says it. Rows
are bare tuples with the fields of `run_writer.Row`, because a simulation makes a hundred thousand of them a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from distro_model.messages import CallResult, Change, Content, Request, Verify, subject_of
from distro_model.node import Client
from distro_model.profiles import Profile
from distro_traces.content import Published, digest
from distro_traces.event import Kind, Outcome
from distro_traces.run_writer import Values

if TYPE_CHECKING:
    from distro_conformance.simulation.network import Call

LEASE = "lease"
"""Why a copy went: nobody renewed it for too long."""

# As plain strings: Arrow takes them several times faster than members of an enumeration.
_SENT, _RECEIVED = Kind.REQUEST_SENT.value, Kind.REQUEST_RECEIVED.value
_REPLIED, _ENDED = Kind.REPLY_SENT.value, Kind.REPLY_RECEIVED.value
_APPLIED, _REMOVED = Kind.REPLICA_APPLIED.value, Kind.REPLICA_REMOVED.value
_NO_ANSWER = (CallResult.UNREADABLE, CallResult.UNHEARD)  # a trace tells both as an error
_OUTCOMES = {result: (Outcome.ERROR if result in _NO_ANSWER else Outcome(result.value)).value for result in CallResult}


class SimulationJournal:
    """Writes the rows of one run by `add`, which takes a node and its next row.

    Nodes of which there are many rows are given by their position in `names`.
    """

    def __init__(self, add: Callable[[str, Values], None], names: Sequence[str], profile: Profile) -> None:
        self._add = add
        self._names = names
        self._copies_have_revisions = profile.revisions_travel
        self._messages = 0

    # Calls

    def new_message(self) -> str:
        self._messages += 1
        return f"m{self._messages}"

    def sent(self, at_ms: int, call: Call) -> None:
        self._request(at_ms, _SENT, call.source, call.target, call)

    def received(self, at_ms: int, call: Call) -> None:
        self._request(at_ms, _RECEIVED, call.target, call.source, call)

    def replied(self, at_ms: int, call: Call, result: CallResult) -> None:
        self._reply(at_ms, _REPLIED, call.target, call.source, call, result)

    def ended(self, at_ms: int, call: Call, result: CallResult) -> None:
        self._reply(at_ms, _ENDED, call.source, call.target, call, result)

    def fault(self, at_ms: int, source: str, target: str, what: str) -> None:
        self._add(source, (at_ms, Kind.LINK_FAULT.value, target, *(None,) * 7, what))

    # The run and its nodes

    def run_started(self, profile: str) -> None:
        self._of_node(0, self._names[0], Kind.RUN_STARTED, profile)

    def node_started(self, at_ms: int, node: str) -> None:
        self._of_node(at_ms, node, Kind.NODE_STARTED, ",".join(self._names))

    def node_stopped(self, at_ms: int, node: str, reason: str) -> None:
        self._of_node(at_ms, node, Kind.NODE_STOPPED, reason)

    def checkpoint(self, at_ms: int, node: str, number: int) -> None:
        self._of_node(at_ms, node, Kind.CHECKPOINT, str(number))

    # What nodes hold

    def own(self, at_ms: int, node: int, kind: Kind, client: Client) -> None:
        """What its own connection made of a client."""
        self._holds(at_ms, node, kind.value, client, None)

    def applied(self, at_ms: int, node: int, client: Client, message: str | None) -> None:
        self._holds(at_ms, node, _APPLIED, client, message)

    def disconnected(self, at_ms: int, node: int, client: str) -> None:
        kind = Kind.CLIENT_DISCONNECTED.value
        self._add(self._names[node], (at_ms, kind, None, None, None, client, True, None, None, None, None))

    def removed(self, at_ms: int, node: int, client: str, message: str | None, reason: str | None) -> None:
        row = (at_ms, _REMOVED, None, message, None, client, None, None, None, None, reason)
        self._add(self._names[node], row)

    def _holds(self, at_ms: int, node: int, kind: str, client: Client, message: str | None) -> None:
        revision = client.revision if client.native or self._copies_have_revisions else None
        content = digest_of(client.content)
        row = (at_ms, kind, None, message, None, client.name, client.native, revision, content, None, None)
        self._add(self._names[node], row)

    def _request(self, at_ms: int, kind: str, node: int, peer: int, call: Call) -> None:
        request = call.request
        about, revision = (
            (request.client, request.revision) if isinstance(request, Change | Verify) else (subject_of(request), None)
        )
        names, operation = self._names, request.operation.value
        row = (at_ms, kind, names[peer], call.message, operation, about, None, revision, call.digest, None, None)
        self._add(names[node], row)

    def _reply(self, at_ms: int, kind: str, node: int, peer: int, call: Call, result: CallResult) -> None:
        names, request = self._names, call.request
        about, operation, outcome = subject_of(request), request.operation.value, _OUTCOMES[result]
        row = (at_ms, kind, names[peer], call.message, operation, about, None, None, None, outcome, None)
        self._add(names[node], row)

    def _of_node(self, at_ms: int, node: str, kind: Kind, detail: str) -> None:
        self._add(node, (at_ms, kind.value, *(None,) * 8, detail))


def content_of(request: Request) -> str | None:
    """The digest of what a request carries; None for one that carries nothing."""
    return digest_of(request.content) if isinstance(request, Change) else None


@lru_cache(maxsize=1 << 16)
def digest_of(content: Content) -> str:
    """The digest of what a client publishes, as if it had been read from the wire."""
    return digest(_published(service, instance) for service, instance in content)


def _published(service: str, instance: str) -> Published:
    """An instance as a scenario writes it: `ip:port key=value …`."""
    address, *metadata = instance.split(" ")
    ip, _, port = address.rpartition(":")
    pairs = ",".join(f'"{key}":"{value}"' for key, _, value in sorted(word.partition("=") for word in metadata))
    return Published("public", "DEFAULT_GROUP", service, ip, int(port), attributes=f"{{{pairs}}}")
