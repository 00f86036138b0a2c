"""The Hypothesis machine: the actions, and the conditions under which each is allowed.

Every rule draws small numbers and turns them into one action of the model's vocabulary; only the lockstep knows the
meaning of the action. Numbers index what exists at that moment, so that a shrunk run stays a legal run.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from distro_conformance.walks.client_rules import CLIENTS_MAX, NODES, SERVICES, ClientRules
from distro_conformance.walks.stage import Stage
from distro_conformance.walks.walk import SHORT_PAUSES_MS, SYNC_MS, pick
from distro_model.actions import (
    ACKNOWLEDGED,
    Action,
    Advance,
    Crash,
    Cut,
    Drop,
    Heal,
    Hold,
    ListMembers,
    Refuse,
    Release,
    Restart,
    Swallow,
)

LINKS = tuple((source, target) for source in NODES for target in NODES if source != target)
JUST_BEFORE_TIME_OUT_MS = 2_200
"""After a CHANGE was sent: the CHANGE times out while a DELETE sent now still waits."""

JUST_BEFORE_LOAD_MS = 29_400
"""Less than the sync delay before a failed load is retried."""

LEASES_MS = (177_000, 181_000, 186_000)
"""Around the lease of 180 s and the cleaner's period. Slow in real time, hence at most once in a run."""

CALM_MS = 15_000
"""The time that a healed cluster gets before its nodes must agree: sync retry, report and verify."""

CALMS_MAX = 3
"""The largest number of calm periods while a repair is pending."""

LOADS_CALMS_MAX = 12
"""The largest number while a node is not loaded: a request may time out after 30 s, and the next round is a minute
later."""

BEGINNINGS_MAX = 8


class LockstepMachine(ClientRules):
    """Nodes that follow the model step by step. About every third run continues from one of `beginnings`."""

    def __init__(self) -> None:
        super().__init__()
        self.cut: list[tuple[str, str]] = []
        self.refusing: list[tuple[str, str]] = []
        self.held: list[tuple[str, str]] = []  # held by a beginning; no rule here holds a link
        self.left_out: set[tuple[str, str]] = set()  # (node, member that its list lacks)
        self.can_change_lists = self.suits(ListMembers(NODES[0], NODES))
        self.orphans = False
        self.outlasted_lease = False

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
            if self.stage is None or self.stage.forbidden(action):
                return
            self.perform(action)

    def note(self, action: Action) -> None:
        super().note(action)
        match action:
            case Swallow(operation="DELETE"):  # it is not retried: only the lease ends that copy
                self.orphans = True
            case Cut(source, target):
                self.cut.append((source, target))
            case Refuse(source, target):
                self.refusing.append((source, target))
            case Heal(source, target):
                self.cut = [each for each in self.cut if each != (source, target)]
                self.refusing = [each for each in self.refusing if each != (source, target)]
            case Hold(source, target):
                self.held.append((source, target))
            case Release(source, target):
                self.held.remove((source, target))
            case Crash(node):
                self.up.remove(node)
                self.orphans = True
            case Restart(node):
                self.up = sorted([*self.up, node])

    @precondition(lambda self: self.orphans and not self.outlasted_lease)
    @rule(patience=st.integers(0, 4), ms=st.sampled_from(LEASES_MS))
    def outlast_lease(self, patience: int, ms: int) -> None:
        """Copies whose owner crashed, or whose DELETE was swallowed, stay until their lease expires."""
        if patience == 0:
            self.outlasted_lease, self.orphans = True, ms < LEASES_MS[-1]
            self.perform(Advance(ms))
        else:
            self.perform(Advance(SHORT_PAUSES_MS[0]))

    @precondition(lambda self: self.connected_ever)
    @rule(operation=st.sampled_from(ACKNOWLEDGED), client=st.integers(1, CLIENTS_MAX), peer=st.integers(0, 1))
    def drop(self, operation: str, client: int, peer: int) -> None:
        about = self.client_ever(client)
        self.perform(Drop(*self.link_from_home(about, peer), operation, about))

    @rule(link=st.sampled_from(LINKS))
    def drop_load(self, link: tuple[str, str]) -> None:
        self.perform(Drop(*link, "SNAPSHOT"))

    @precondition(lambda self: self.clients)
    @rule(
        client=st.integers(0, CLIENTS_MAX - 1),
        version=st.integers(1, 3),
        peer=st.integers(0, 1),
        leaves_after_ms=st.sampled_from((None, 0, JUST_BEFORE_TIME_OUT_MS)),
    )
    def lose_a_change(self, client: int, version: int, peer: int, leaves_after_ms: int | None) -> None:
        """A CHANGE is lost, and its client may leave before the owner notices: a late leave makes both wait at once."""
        name = pick(self.clients, client)
        self.perform(Drop(*self.link_from_home(name, peer), "CHANGE", name))
        self.register_one(name, SERVICES[0], version)
        self.leave_after_sync(name, leaves_after_ms)

    @precondition(lambda self: self.connected_ever)
    @rule(
        operation=st.sampled_from(("CHANGE", "DELETE")),
        client=st.integers(1, CLIENTS_MAX),
        peer=st.integers(0, 1),
    )
    def swallow(self, operation: str, client: int, peer: int) -> None:
        about = self.client_ever(client)
        self.perform(Swallow(*self.link_from_home(about, peer), operation, about))

    @precondition(lambda self: len(self.cut) < len(LINKS))
    @rule(link=st.integers(0, len(LINKS) - 1))
    def cut_link(self, link: int) -> None:
        opened = [candidate for candidate in LINKS if candidate not in self.cut]
        self.perform(Cut(*opened[link % len(opened)]))

    @precondition(lambda self: self.cut)
    @rule(link=st.integers(0, len(LINKS) - 1))
    def heal_link(self, link: int) -> None:
        self.perform(Heal(*self.cut[link % len(self.cut)]))

    @rule(link=st.sampled_from(LINKS))
    def refuse_or_heal(self, link: tuple[str, str]) -> None:
        """The owner also retries a DELETE to a member that refuses it, again and again."""
        self.perform(Heal(*link) if link in self.refusing else Refuse(*link))

    @precondition(lambda self: self.held)
    @rule(link=st.integers(0, len(LINKS) - 1))
    def release_link(self, link: int) -> None:
        self.perform(Release(*self.held[link % len(self.held)]))

    @precondition(lambda self: len(self.up) > 1)
    @rule(node=st.integers(0, 2))
    def crash(self, node: int) -> None:
        self.perform(Crash(self.up[node % len(self.up)]))

    @precondition(lambda self: len(self.up) < len(NODES))
    @rule()
    def restart(self) -> None:
        self.perform(Restart(min(set(NODES) - set(self.up))))

    @precondition(lambda self: len(self.up) < len(NODES) and self.connected_ever < CLIENTS_MAX)
    @rule(version=st.integers(1, 3), is_stale=st.booleans())
    def restart_unloaded(self, version: int, is_stale: bool) -> None:
        """A node with a failing load already has a client, which may change just before the load succeeds."""
        name = min(set(NODES) - set(self.up))
        outgoing = [link for link in LINKS if link[0] == name]
        for link in outgoing:
            if link not in self.cut:
                self.perform(Cut(*link))
        self.perform(Restart(name))
        for link in outgoing:
            self.perform(Heal(*link))
        client = self.connect_one(name)
        self.register_one(client, SERVICES[0], version)
        if is_stale:
            self.perform(Advance(JUST_BEFORE_LOAD_MS))
            self.register_one(client, SERVICES[1], version)
            self.perform(Advance(SYNC_MS))

    @precondition(lambda self: self.can_change_lists)
    @rule(node=st.integers(0, 2), member=st.integers(0, 1), names_reader=st.booleans())
    def change_list(self, node: int, member: int, names_reader: bool) -> None:
        """A member leaves the list of one node, or returns to it. A node may or may not be on its own list.

        A node that lists only itself starts as standalone, which the model does not have: so another member returns
        when one leaves.
        """
        reader = self.up[node % len(self.up)]
        changed = (reader, [name for name in NODES if name != reader][member])
        was_left_out = changed in self.left_out
        self.left_out = {each for each in self.left_out if each[0] != reader}
        if not was_left_out:
            self.orphans = True  # a member that is not listed is sent no DELETE
            self.left_out.add(changed)
        self._read_list(reader, names_reader=names_reader)

    def _read_list(self, node: str, *, names_reader: bool = True) -> None:
        left_out = {name for reader, name in self.left_out if reader == node} | (set() if names_reader else {node})
        self.perform(ListMembers(node, tuple(name for name in NODES if name not in left_out)))

    def come_to_rest(self, stage: Stage) -> None:
        self.repair()
        for calms in range(1, LOADS_CALMS_MAX + 1):
            self.perform(Advance(CALM_MS))
            if stage.is_at_rest or (calms >= CALMS_MAX and stage.is_loaded):
                break
        if self.orphans:
            self.outlast_orphans(stage)

    def outlast_orphans(self, stage: Stage) -> None:
        """Wait until leases end, where nodes differ about clients without an owner."""
        if not stage.is_at_rest:
            self.perform(Advance(LEASES_MS[-1]))

    def repair(self) -> None:
        """Repair every fault."""
        while self.held:
            self.perform(Release(*self.held[-1]))
        for link in LINKS:
            if link in (*self.cut, *self.refusing):
                self.perform(Heal(*link))
        for name in sorted(set(NODES) - set(self.up)):
            self.perform(Restart(name))
        readers = sorted({node for node, _ in self.left_out})
        self.left_out.clear()
        for name in readers:
            self._read_list(name)
