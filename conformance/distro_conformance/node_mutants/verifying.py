"""Anti-entropy on the owner's side: which clients are verified at which members, and the effect of a failure."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from distro_conformance.node_mutants.mutant import Change, Mutant, add, left_out, mutant, swapped
from distro_impl.distro import transport_agent
from distro_impl.distro.data_processor import DistroClientDataProcessor
from distro_impl.distro.distro_protocol import DistroKey, DistroProtocol
from distro_impl.distro.transport_agent import DistroReply, DistroTransportAgent
from distro_impl.distro.verify_task import VerifyFailed, VerifyTask
from distro_impl.naming.ip_port_client import is_ip_port
from distro_impl.remote.payloads import DataOperation


@mutant("m-verify-to-one", VerifyTask, "run")
def _to_one(old: Any, self: Any) -> None:
    """Each round verifies with one member only.

    In turn, not by chance: a run can be repeated.
    """
    members, self._turn = self._members, getattr(self, "_turn", -1) + 1
    every = members.other_addresses()
    chosen = every[self._turn % len(every) :][:1] if every else ()
    with swapped(self, "_members", _Some(chosen)):
        old(self)


class _Some:
    def __init__(self, addresses: tuple[str, ...]) -> None:
        self._addresses = addresses

    def other_addresses(self) -> tuple[str, ...]:
        return self._addresses


@mutant("m-round-ends-at-who-is-not-up", VerifyTask, "run")
def _until_not_up(old: Any, self: Any) -> None:
    """A member that is not UP ends the round of VERIFYs: the members after it in the list get none."""
    chosen = tuple(takewhile(self._members.is_up, self._members.other_addresses()))
    with swapped(self, "_members", _Some(chosen)):
        old(self)


@mutant("m-empty-client-is-not-verified", DistroClientDataProcessor, "owned_clients")
def _without_empty_ones(old: Any, self: Any) -> list[str]:
    """A client that publishes nothing is not verified."""
    return [each for each in old(self) if self._clients.get(each).publishers]


@mutant("m-unanswered-verify-is-repaired", DistroTransportAgent, "verify")
async def _no_answer_is_a_failure(old: Any, self: Any, *arguments: Any) -> DistroReply:
    """A VERIFY that is not answered counts as failed."""
    reply: DistroReply = await old(self, *arguments)
    return DistroReply.FAIL if reply is DistroReply.EXCEPTION else reply


@mutant("m-add-after-fail-to-all", DistroProtocol, "_on_verify_failed")
def _to_all(_: Any, self: Any, event: VerifyFailed) -> None:
    """A failed verify brings the client to every member."""
    for peer in self._members.other_addresses():
        self._delayed.add(DistroKey(event.client_id, peer), DataOperation.CHANGE, 0)


@mutant("m-second-failure-is-ignored", DistroProtocol, "_on_verify_failed")
def _once(old: Any, self: Any, event: VerifyFailed) -> None:
    """A verify that fails again at the same member brings nothing."""
    known = self.__dict__.setdefault("_failed_before", set())
    if event not in known:
        known.add(event)
        old(self, event)


@mutant("m-ip-port-clients-are-not-verified", DistroClientDataProcessor, "owned_clients")
def _connected_only(old: Any, self: Any) -> Any:
    """Clients of the HTTP API are not verified."""
    return [each for each in old(self) if not is_ip_port(each)]


@mutant("m-batches-are-not-verified", DistroClientDataProcessor, "owned_clients")
def _singles_only(old: Any, self: Any) -> Any:
    """A client that has nothing but batches is not verified."""
    clients = map(self._clients.get, old(self))
    return [each.id for each in clients if each.singles or not each.publishers]


@mutant("m-subscribers-are-not-verified", DistroClientDataProcessor, "owned_clients")
def _publishers_only(old: Any, self: Any) -> Any:
    """Who publishes nothing is not verified."""
    return [each for each in old(self) if self._clients.get(each).publishers]


def _who_was_there(old: Any) -> Any:
    """A client that has gone goes on being verified."""

    def owned(self: Any) -> list[str]:
        seen = self.__dict__.setdefault("_seen", {})
        seen.update(dict.fromkeys(old(self)))
        return list(seen)

    return owned


def _as_last_known(old: Any) -> Any:
    def revision_of(self: Any, client_id: str) -> Any:
        found = old(self, client_id)
        known = self.__dict__.setdefault("_known", {})
        if found is not None:
            known[client_id] = found
        return known.get(client_id)

    return revision_of


@mutant("m-silence-delays-verifies", VerifyTask, "run")
def _waits_for_everybody(old: Any, self: Any) -> None:
    """While verifies to one member are under way no member is sent any."""
    if not any(self._execute_engine.is_busy(f"VERIFY to {peer}") for peer in self._members.other_addresses()):
        old(self)


@mutant("m-verify-names-nobody", transport_agent, "distro_body")
def _nameless(old: Any, operation: DataOperation, client_id: str, data: Any, target: str | None = None) -> Any:
    """The content of a verify lacks the client."""
    if operation is DataOperation.VERIFY:
        data = {"revision": data["revision"]}
    return old(operation, client_id, data, target)


left_out("m-failed-verify-is-ignored", DistroProtocol, "_on_verify_failed", "A failed verify brings nothing.")
left_out("no-anti-entropy", VerifyTask, "run", "Nothing is ever verified.")

add(
    Mutant(
        "m-the-dead-are-verified",
        "A client that has gone is verified as it was.",
        changes=(
            Change(DistroClientDataProcessor, "owned_clients", _who_was_there),
            Change(DistroClientDataProcessor, "revision_of", _as_last_known),
        ),
    ),
)
