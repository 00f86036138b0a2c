"""The machine of one node among played members, with clients of the HTTP API besides.

They register, send beats and fall silent at the node under test, whichever member owns them. Played members own some of
them, send messages about all of them, and fail requests about them. While a member is gone, other members own its
clients. All rules of the other machine apply here too. This is a separate machine because a new rule in the other
machine would change the runs of its seeds.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from distro_conformance.walks.among_machine import NODE, PEERS, SYNCED, AmongMachine
from distro_conformance.walks.client_rules import SERVICES
from distro_conformance.walks.http_machine import FORGOTTEN_MS, HttpClients
from distro_conformance.walks.stage import Stage
from distro_conformance.walks.walk import SYNC_MS, pick
from distro_model.actions import (
    RESULTS,
    Action,
    Advance,
    Answers,
    Crash,
    Drop,
    HttpBeat,
    HttpDeregister,
    HttpRegister,
    OverHttp,
    Says,
    Swallow,
)

ADDRESSES = tuple(f"10.0.1.{number}:80" for number in (4, 8, 3, 2, 1))
"""While all members are UP, the node under test owns two, and each member owns one."""

SILENCES_MS = ((4_000,) * 3, (4_000,) * 4, (4_000,) * 8)
"""Shorter than detection, until unhealthy, until removed; in real time a single wait is at most five seconds."""
UNTIL_DOWN_MS = (4_000,) * 8
"""Four reports to a member, of three in turn."""

_ADDRESS, _SERVICE, _PEER, _BY_V2 = map(st.sampled_from, (ADDRESSES, SERVICES, PEERS, (False, True)))
_INDEX = st.integers(0, len(ADDRESSES) * len(SERVICES) - 1)


class HttpAmongMachine(HttpClients, AmongMachine):
    def __init__(self) -> None:
        super().__init__()
        self.ever_over_http = False

    def note(self, action: Action) -> None:
        super().note(action)
        self.ever_over_http |= isinstance(action, OverHttp)

    @rule(address=_ADDRESS, service=_SERVICE, version=st.integers(1, 2), by_v2=_BY_V2)
    def register_over_http(self, address: str, service: str, version: int, by_v2: bool) -> None:
        self.perform(HttpRegister(service, f"{address} version={version}", NODE, by_v2 and self.has_v2))

    @precondition(lambda self: self.registered)
    @rule(index=_INDEX, by_v2=_BY_V2)
    def beat(self, index: int, by_v2: bool) -> None:
        """Send a beat, also of an instance that was removed: the node registers it again."""
        service, instance = self._one(index)
        self.perform(HttpBeat(service, instance, NODE, by_v2 and self.beats_by_v2))

    @precondition(lambda self: self.registered)
    @rule(index=_INDEX, by_v2=_BY_V2)
    def deregister_over_http(self, index: int, by_v2: bool) -> None:
        service, instance = self._one(index)
        self.perform(HttpDeregister(service, instance, NODE, by_v2 and self.has_v2))

    @precondition(lambda self: self.registered)
    @rule(silence=st.sampled_from(SILENCES_MS))
    def fall_silent(self, silence: tuple[int, ...]) -> None:
        self._wait(silence)

    @precondition(lambda self: self.registered and self.up)
    @rule(patience=st.integers(0, 2), peer=st.integers(0, 2))
    def inherit(self, patience: int, peer: int) -> None:
        """A member is gone until the node marks it DOWN; the clients that exist send beats meanwhile."""
        if patience:
            return
        self.perform(Crash(pick(self.up, peer)))
        for ms in UNTIL_DOWN_MS:
            self.perform(Advance(ms))
            for (service, _), instance in sorted(self.registered.items()):
                self.perform(HttpBeat(service, instance, NODE))

    # Messages and faults of members

    @precondition(lambda self: self.registered)
    @rule(index=_INDEX, peer=_PEER, operation=st.sampled_from(SYNCED), result=st.sampled_from(("fail", *RESULTS)))
    def fail_at_it(self, index: int, peer: str, operation: str, result: str) -> None:
        self.perform(Answers(peer, operation, result, self._client(index)))

    @precondition(lambda self: self.registered)
    @rule(index=_INDEX, peer=_PEER, operation=st.sampled_from(SYNCED), kind=st.sampled_from((Drop, Swallow)))
    def lose_it(self, index: int, peer: str, operation: str, kind: type[Drop | Swallow]) -> None:
        self.perform(kind(NODE, peer, operation, self._client(index)))

    @precondition(lambda self: self.registered and self.up)
    @rule(index=_INDEX, peer=_PEER, result=st.sampled_from(RESULTS))
    def fail_a_change_over_http(self, index: int, peer: str, result: str) -> None:
        service, instance = self._one(index)
        self.perform(Answers(peer, "CHANGE", result, self._client(index)))
        self.perform(HttpRegister(service, instance, NODE))
        self.perform(Advance(SYNC_MS))

    @precondition(lambda self: self.up)
    @rule(
        peer=st.integers(0, 2),
        address=_ADDRESS,
        operation=st.sampled_from((*SYNCED, "QUERY")),
        revision=st.integers(0, 2),
        services=st.integers(0, 3),
    )
    def say_of_http_client(self, peer: int, address: str, operation: str, revision: int, services: int) -> None:
        """Send a message about a client of the HTTP API, which may be false."""
        revision = revision if operation in ("CHANGE", "VERIFY") else 0
        chosen = [service for bit, service in enumerate(sorted(SERVICES)) if services >> bit & 1]
        content = tuple((service, address) for service in chosen) if operation == "CHANGE" else ()
        self.has_copies = self.ever_over_http = True
        self.perform(Says(pick(self.up, peer), operation, f"{address}#true", revision, content))

    @precondition(lambda self: self.up)
    @rule(peer=st.integers(0, 2), address=_ADDRESS, silence=st.sampled_from(SILENCES_MS))
    def vouch(self, peer: int, address: str, silence: tuple[int, ...]) -> None:
        """A member sends a CHANGE and later VERIFYs of it: these count as a beat where the node is not the owner."""
        speaker, client = pick(self.up, peer), f"{address}#true"
        self.has_copies = self.ever_over_http = True
        self.perform(Says(speaker, "CHANGE", client, 1, ((SERVICES[0], address),)))
        self._wait(silence)
        self.perform(Says(speaker, "VERIFY", client, 1))

    def come_to_rest(self, stage: Stage) -> None:
        super().come_to_rest(stage)
        if self.ever_over_http:
            self.perform(Advance(FORGOTTEN_MS))

    def _wait(self, times_ms: tuple[int, ...]) -> None:
        for ms in times_ms:
            self.perform(Advance(ms))

    def _client(self, index: int) -> str:
        return f"{self._one(index)[1].split()[0]}#true"
