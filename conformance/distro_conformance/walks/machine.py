"""The machine: the random actions of clients, links, nodes and time, and the conditions under which each is possible.

A rule draws small numbers and turns them into actions of the model's vocabulary; their meaning is in `WalkDriver`.
Numbers index what exists at that moment, so that a shrunk run stays a legal run.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from distro_conformance.walks import NODES
from distro_conformance.walks.messages import LOST, SYNC_MS, VERSIONS, Messages
from distro_conformance.walks.walk import ADDRESSES, INDEX, LEASES_MS, SERVICES, SHORT_PAUSES_MS, pick
from distro_model.actions import (
    ACKNOWLEDGED,
    RESULTS,
    Advance,
    AnswerAgain,
    Crash,
    Cut,
    Deregister,
    Disconnect,
    Drop,
    FallSilent,
    Heal,
    HttpBeat,
    HttpDeregister,
    HttpRegister,
    Refuse,
    RegisterBatch,
    Release,
    Restart,
    Swallow,
)

CLIENTS_MAX = 6
"""In one run. A client id is never used again: every connection is a new client."""

SILENCES_MS = (0, 21_000, 27_000)
"""Shorter than detection; around the time when the node asks an idle connection; after the connection was closed."""

JUST_BEFORE_TIME_OUT_MS = 2_200
"""After a CHANGE was sent: the CHANGE times out while a DELETE sent now still waits."""

JUST_BEFORE_LOAD_MS = 29_400
"""Less than the sync delay before a failed load is retried."""

LEASES_MAX = 2
"""Waits for the end of a lease in one run."""

BEGINNINGS_MAX = 8

_SERVICE, _ADDRESS, _BY_V2 = st.sampled_from(SERVICES), st.sampled_from(ADDRESSES), st.booleans()
_VERSION, _RESULT = st.integers(1, len(VERSIONS)), st.sampled_from((*RESULTS, LOST))
_HTTP_VERSIONS = dict(zip(SERVICES, ((1, 2), (3, 5)), strict=True))
"""No two of a client have the same sum: in releases its revision is one (docs/protocol #revision-ip-port), and a trace
has no contents from which `check` could name that defect."""


class Machine(Messages):
    """About every third run continues from one of `beginnings`."""

    leases_outlasted = 0

    @initialize(number=st.integers(0, 3 * BEGINNINGS_MAX - 1))
    def begin(self, number: int) -> None:
        """Two of three runs begin empty, except for number 0: Hypothesis draws it in its simplest run, in which only
        time passes. That run is the first of a search, and in real time may be the only one.
        """
        if number == 0:
            self.register_one(self.connect_one(NODES[0]), SERVICES[0], 1)
        without = 2 * len(self.beginnings)
        chosen = number % (without + len(self.beginnings) or 1) - without
        for action in self.beginnings[chosen] if self.beginnings and chosen >= 0 else ():
            if self.driver is None or self.driver.forbidden(action):
                return
            self.perform(action)

    # Clients

    @precondition(lambda self: len(self.homes) < CLIENTS_MAX)
    @rule(node=INDEX)
    def connect(self, node: int) -> None:
        self.connect_one(pick(self.nodes_up, node))

    @precondition(lambda self: self.clients)
    @rule(client=INDEX, service=_SERVICE, version=_VERSION)
    def register(self, client: int, service: str, version: int) -> None:
        self.register_one(pick(self.clients, client), service, version)

    @precondition(lambda self: self.clients and self.can_batch)
    @rule(client=INDEX, service=_SERVICE, size=st.integers(2, 3))
    def register_batch(self, client: int, service: str, size: int) -> None:
        """In real time a client that has published a single instance registers no batch: nodes from 2.1.1 to 2.3.0
        acknowledge such a batch and do not apply it (B19), so the nodes would not agree at the end of the run."""
        name = pick(self.clients, client)
        if self.must_agree and (name, service) in self.single_ever:
            return
        instances = tuple(f"10.0.0.{name[1:]}:{90 + number}" for number in range(size))
        self.perform(RegisterBatch(name, service, instances))

    @precondition(lambda self: self.published)
    @rule(index=INDEX)
    def deregister(self, index: int) -> None:
        chosen = pick(self.published, index)
        self.published.remove(chosen)
        action = Deregister(*chosen)
        if self.driver and not self.driver.forbidden(action):  # a stale snapshot may have removed it (B01)
            self.perform(action)

    @precondition(lambda self: self.clients)
    @rule(client=INDEX)
    def disconnect(self, client: int) -> None:
        self.perform(Disconnect(pick(self.clients, client)))

    @precondition(lambda self: self.clients and self.can_fall_silent)
    @rule(client=INDEX)
    def fall_silent(self, client: int) -> None:
        self.perform(FallSilent(pick(self.clients, client)))

    @precondition(lambda self: self.silent)
    @rule(client=INDEX, ms=st.sampled_from(SILENCES_MS))
    def end_silence(self, client: int, ms: int) -> None:
        """End the silence some time later; if the node has closed the connection meanwhile, the client has gone."""
        name = pick(self.silent, client)
        if ms:
            self.perform(Advance(ms))
        action = AnswerAgain(name)
        if self.driver and not self.driver.forbidden(action):
            self.perform(action)
        else:
            del self.silent[name]

    # Clients of the HTTP API

    @precondition(lambda self: self.http)
    @rule(address=_ADDRESS, service=_SERVICE, version=st.integers(0, 1), node=INDEX, by_v2=_BY_V2)
    def register_over_http(self, address: str, service: str, version: int, node: int, by_v2: bool) -> None:
        """Through version 2 of the API where the release has it: there the called node keeps the client (D7)."""
        instance = f"{address} version={_HTTP_VERSIONS[service][version]}"
        self.perform(HttpRegister(service, instance, pick(self.nodes_up, node), by_v2 and self.has_v2))

    @precondition(lambda self: self.registered)
    @rule(index=INDEX, node=INDEX, by_v2=_BY_V2)
    def beat(self, index: int, node: int, by_v2: bool) -> None:
        """Send a beat, also of an instance that was removed: the node registers it again."""
        about = self.registered_one(index)
        self.perform(HttpBeat(*about, pick(self.nodes_up, node), by_v2 and self.beats_by_v2))

    @precondition(lambda self: self.registered)
    @rule(index=INDEX, node=INDEX, by_v2=_BY_V2)
    def deregister_over_http(self, index: int, node: int, by_v2: bool) -> None:
        about = self.registered_one(index)
        self.perform(HttpDeregister(*about, pick(self.nodes_up, node), by_v2 and self.has_v2))

    # Requests that fail

    @precondition(lambda self: self.changes)
    @rule(kind=st.sampled_from((Drop, Swallow)), operation=st.sampled_from(ACKNOWLEDGED), client=INDEX, peer=INDEX)
    def lose(self, kind: type[Drop | Swallow], operation: str, client: int, peer: int) -> None:
        """A fault names its client, since the order of several requests at one instant is not specified."""
        name = pick(self.changes, client)
        self.perform(kind(*self.link_of(name, peer), operation, name))

    @precondition(lambda self: not self.played)
    @rule(link=INDEX)
    def drop_load(self, link: int) -> None:
        self.perform(Drop(*pick(self.links, link), "SNAPSHOT"))

    @precondition(lambda self: self.clients)
    @rule(
        client=INDEX,
        version=_VERSION,
        peer=INDEX,
        result=_RESULT,
        leaves_after_ms=st.sampled_from((None, 0, JUST_BEFORE_TIME_OUT_MS)),
    )
    def fail_a_change(self, client: int, version: int, peer: int, result: str, leaves_after_ms: int | None) -> None:
        """A CHANGE fails, and its client may leave before the owner notices: a late leave makes both wait at once."""
        name = pick(self.clients, client)
        self.fail("CHANGE", name, peer, result)
        self.register_one(name, SERVICES[0], version)
        self.perform(Advance(SYNC_MS))
        if leaves_after_ms:
            self.perform(Advance(leaves_after_ms))
        if leaves_after_ms is not None:
            self.perform(Disconnect(name))

    @precondition(lambda self: self.clients)
    @rule(client=INDEX, peer=INDEX, result=_RESULT)
    def fail_a_delete(self, client: int, peer: int, result: str) -> None:
        name = pick(self.clients, client)
        self.fail("DELETE", name, peer, result)
        self.perform(Disconnect(name), Advance(SYNC_MS))

    @precondition(lambda self: self.registered)
    @rule(index=INDEX, node=INDEX, peer=INDEX, result=_RESULT)
    def fail_a_change_over_http(self, index: int, node: int, peer: int, result: str) -> None:
        request = HttpRegister(*self.registered_one(index), pick(self.nodes_up, node))
        self.fail("CHANGE", request.client, peer, result)
        self.perform(request, Advance(SYNC_MS))

    # Links

    @precondition(lambda self: len(self.cut) < len(self.links))
    @rule(link=INDEX)
    def cut_link(self, link: int) -> None:
        self.perform(Cut(*pick([each for each in self.links if each not in self.cut], link)))

    @precondition(lambda self: self.cut)
    @rule(link=INDEX)
    def heal_link(self, link: int) -> None:
        self.perform(Heal(*pick(self.cut, link)))

    @precondition(lambda self: not self.played)
    @rule(link=INDEX)
    def refuse_or_heal(self, link: int) -> None:
        """The owner also retries a DELETE to a member that refuses it, again and again."""
        chosen = pick(self.links, link)
        self.perform(Heal(*chosen) if chosen in self.refusing else Refuse(*chosen))

    @precondition(lambda self: self.held)
    @rule(link=INDEX)
    def release_link(self, link: int) -> None:
        self.perform(Release(*pick(self.held, link)))

    # Nodes and their lists of members

    @precondition(lambda self: len(self.up) > 1)
    @rule(member=INDEX)
    def crash(self, member: int) -> None:
        """One of the played members, where there are any; the last node runs on."""
        self.perform(Crash(pick([each for each in self.up if not self.played or each in self.played], member)))

    @precondition(lambda self: self.down)
    @rule()
    def restart(self) -> None:
        self.perform(Restart(min(self.down)))

    @precondition(lambda self: self.down and not self.played and len(self.homes) < CLIENTS_MAX)
    @rule(version=_VERSION, is_stale=st.booleans())
    def restart_unloaded(self, version: int, is_stale: bool) -> None:
        """A node with a failing load already has a client, which may change just before the load succeeds."""
        name = min(self.down)
        outgoing = [link for link in self.links if link[0] == name]
        self.perform(*(Cut(*link) for link in outgoing if link not in self.cut), Restart(name))
        self.perform(*(Heal(*link) for link in outgoing))
        client = self.connect_one(name)
        self.register_one(client, SERVICES[0], version)
        if is_stale:
            self.perform(Advance(JUST_BEFORE_LOAD_MS))
            self.register_one(client, SERVICES[1], version)
            self.perform(Advance(SYNC_MS))

    @precondition(lambda self: self.can_change_lists)
    @rule(node=INDEX, member=INDEX, names_reader=st.booleans())
    def change_list(self, node: int, member: int, names_reader: bool) -> None:
        """A member leaves the list of one node, or returns to it. A node may or may not be on its own list.

        A node that lists only itself starts as standalone, which the model does not have: so another member returns
        when one leaves.
        """
        reader = pick(self.nodes_up, node)
        changed = (reader, pick([name for name in NODES if name != reader], member))
        was_left_out = changed in self.left_out
        self.left_out = {each for each in self.left_out if each[0] != reader}
        if not was_left_out:
            self.orphans = True  # a member that is not listed is sent no DELETE
            self.left_out.add(changed)
        self.read_list(reader, names_reader=names_reader)

    # Time

    @precondition(lambda self: self.orphans and self.leases_outlasted < LEASES_MAX)
    @rule(patience=st.integers(0, 4), ms=st.sampled_from(LEASES_MS))
    def outlast_lease(self, patience: int, ms: int) -> None:
        """Copies whose owner crashed, or whose DELETE was swallowed, stay until their lease expires."""
        if patience:
            self.perform(Advance(SHORT_PAUSES_MS[0]))
            return
        self.leases_outlasted += 1
        self.orphans = bool(self.played) or ms < LEASES_MS[-1]
        self.perform(Advance(ms))
