"""A random walk run by Hypothesis: actions are done one by one, and the end is reported.

A walk knows what exists at each moment, so that a rule draws among what is possible. What the cluster is decides which
rules apply: nodes only, or one node among played members; with clients of the HTTP API or without; and what its driver
can do. The rules are in `machine.py` and `messages.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from distro_conformance.drivers.lockstep import LostError
from distro_conformance.walks import NODES
from distro_conformance.walks.driver import WalkDriver
from distro_model.actions import (
    Action,
    Advance,
    AnswerAgain,
    BaseHttpRequest,
    Connect,
    Crash,
    Cut,
    Deregister,
    Disconnect,
    FallSilent,
    Heal,
    Hold,
    HttpBeat,
    HttpDeregister,
    HttpRegister,
    ListMembers,
    Refuse,
    Register,
    RegisterBatch,
    Release,
    Restart,
    Swallow,
)
from distro_model.rules.owners import place

T = TypeVar("T", bound=Any)
Link = tuple[str, str]

SERVICES = ("web", "api")
ADDRESSES = tuple(f"10.0.1.{number}:80" for number in (4, 8, 3, 2, 1))
"""Of clients of the HTTP API. The hash gives each member at least one of them, while all are UP."""

SHORT_PAUSES_MS = (100, 300, 600, 1_000, 1_100)
"""Around the tick of 100 ms and the sync delay of a second."""

PAUSES_MS = (2_000, 3_100, 5_000) * 5 + (31_000,)
"""Around report, retry and verify; sometimes past the retry of a failed load."""

LEASES_MS = (177_000, 181_000, 186_000)
"""Around the lease of 180 s and the cleaner's period."""

LEASES_OF_KEPT = 2
"""A node that keeps a client which the hash gives to another node (D7) drops it when a lease has ended, and sends no
DELETE; copies that it verified until then expire a lease later."""

FORGOTTEN_MS = 75_000
"""The stages after the last beat: unhealthy, expired, empty for half a minute, and removed on every node."""

LISTS_DIFFER_MAX_MS = 50_000
"""The time for which member lists may differ in a run with clients of the HTTP API. Two owners are a hand-over for 60 s
and then a violation of INV-OWNER (`distro_spark.responsibility`), which here would be the walk's own doing."""

CALM_MS = 15_000
"""The time that a healed cluster gets before its nodes must agree: sync retry, report and verify."""

CALMS_MAX = 3
"""The largest number of calm periods while a repair is pending."""

LOADS_CALMS_MAX = 12
"""The largest number while a node is not loaded: a request may time out after 30 s, and the next round is a minute
later."""

INDEX = st.integers(0, 59)
"""Of anything that exists at the moment: 60 is a multiple of most numbers of such things."""


def pick(choices: Collection[T], index: int) -> T:
    return sorted(choices)[index % len(choices)]


class Walk(RuleBasedStateMachine):
    """A run begins with `start` and ends with `on_end`, which receives the actions and the error that ended the run.

    When `start` returns None the run does nothing and passes: so Hypothesis ends when no more runs are wanted.
    `nodes` take clients, `played` members send and answer as the rules say, and `http`: some clients use the HTTP API.
    A run may continue from one of `beginnings`.
    """

    start: Callable[[], WalkDriver | None]
    on_end: Callable[[list[Action], BaseException | None], None]
    nodes: Sequence[str] = NODES
    played: Sequence[str] = ()
    http = False
    beginnings: Sequence[Sequence[Action]] = ()

    def __init__(self) -> None:
        super().__init__()
        self.done: list[Action] = []
        self.failure: BaseException | None = None
        try:
            self.driver = type(self).start()
        except BaseException as error:  # the nodes do not start, or differ from the model at the start
            type(self).on_end(self.done, error)
            raise
        self.must_agree = self.driver is not None and self.driver.must_agree
        self.can_batch = self.can(RegisterBatch("c1", SERVICES[0], ()))
        self.can_fall_silent = self.can(FallSilent("c1"))
        self.can_change_lists = self.can(ListMembers(NODES[0], NODES))
        self.has_v2 = self.can(HttpRegister(SERVICES[0], ADDRESSES[0], NODES[0], by_v2=True))
        self.beats_by_v2 = self.can(HttpBeat(SERVICES[0], ADDRESSES[0], NODES[0], by_v2=True))
        self.members = (*self.nodes, *self.played)
        self.links = tuple((source, target) for source in self.nodes for target in self.members if source != target)
        self.up = list(self.members)
        self.clients: dict[str, str] = {}  # connected clients that act, with their node
        self.silent: dict[str, str] = {}  # connected, or were when they fell silent
        self.homes: dict[str, str] = {}  # of every client that ever connected
        self.changes: dict[str, int] = {}  # of every client that ever was there
        self.published: set[tuple[str, str]] = set()  # (client, service)
        self.single_ever: set[tuple[str, str]] = set()  # (client, service)
        self.registered: dict[tuple[str, str], str] = {}  # (service, address) -> the instance as last registered
        self.ever_over_http = False
        self.cut: list[Link] = []
        self.refusing: list[Link] = []
        self.held: list[Link] = []
        self.left_out: set[tuple[str, str]] = set()  # (node, member that its list lacks)
        self.lists_differ_ms = 0
        self.orphans = False  # copies that only the end of their lease removes

    def perform(self, *actions: Action) -> None:
        for action in actions:
            self._limit_difference_of_lists(action)
            self.note(action)
            adapted = self.driver.adapted(action) if self.driver is not None else None
            if self.driver is None or adapted is None or self.failure is not None:
                continue
            self.done.append(adapted)
            try:
                self.driver.perform(adapted)
            except LostError as error:  # no later action is done
                self.failure = error
            except BaseException as error:
                self.failure = error
                raise

    def _limit_difference_of_lists(self, action: Action) -> None:
        if isinstance(action, Advance):
            self.lists_differ_ms = self.lists_differ_ms + action.ms if self.left_out else 0
        if (self.ever_over_http or isinstance(action, BaseHttpRequest)) and self.lists_differ_ms > LISTS_DIFFER_MAX_MS:
            self.repair_lists()

    def can(self, action: Action) -> bool:
        """Whether the cluster can ever do such actions."""
        return self.driver is not None and self.driver.can(action)

    @rule(ms=st.sampled_from(SHORT_PAUSES_MS))
    def advance(self, ms: int) -> None:
        self.perform(Advance(ms))

    @rule(ms=st.sampled_from(PAUSES_MS))
    def advance_more(self, ms: int) -> None:
        self.perform(Advance(ms))

    # What exists

    @property
    def nodes_up(self) -> list[str]:
        return [node for node in self.nodes if node in self.up]

    @property
    def down(self) -> list[str]:
        return [member for member in self.members if member not in self.up]

    def link_of(self, client: str, peer: int) -> Link:
        """Only the owner sends messages about a client, so a fault on any other link would never apply."""
        owner = self.homes.get(client) or self.nodes[place(client.partition("#")[0], len(self.nodes))]
        return owner, pick([member for member in self.members if member != owner], peer)

    def note(self, action: Action) -> None:
        """The action is about to be done."""
        match action:
            case Connect(client, node):
                self.clients[client] = self.homes[client] = node
                self.changes[client] = 0
            case Register(client, service) | RegisterBatch(client, service):
                self.published.add((client, service))
                self.changes[client] += 1
                if isinstance(action, Register):
                    self.single_ever.add((client, service))
            case Deregister(client, service):
                self.published.discard((client, service))
                self.changes[client] += 1
            case Disconnect(client):
                self._forget({client})
            case FallSilent(client):
                self.silent[client] = self.clients[client]
                self._forget({client})
            case AnswerAgain(client):
                self.clients[client] = self.silent.pop(client)
            case BaseHttpRequest(service, instance):
                self.ever_over_http = True
                self.changes.setdefault(action.client, 1)
                address = instance.split(maxsplit=1)[0]
                self.registered[service, address] = instance
                if isinstance(action, HttpDeregister):
                    del self.registered[service, address]
            case _:
                self._note_fault(action)

    def _note_fault(self, action: Action) -> None:
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
                self._forget({client for client, at in self.clients.items() if at == node})
                self.silent = {client: at for client, at in self.silent.items() if at != node}
            case Restart(node):
                self.up = sorted([*self.up, node])

    def _forget(self, clients: set[str]) -> None:
        self.clients = {client: node for client, node in self.clients.items() if client not in clients}
        self.published = {(client, service) for client, service in self.published if client not in clients}

    # The end of a run

    def come_to_rest(self, driver: WalkDriver) -> None:
        """After the last rule: repair all faults, and wait for their effects."""
        self.repair()  # while a link is cut the waits have hundreds of indistinguishable outcomes
        if self.ever_over_http:
            self.perform(Advance(FORGOTTEN_MS))
        for calms in range(1, LOADS_CALMS_MAX + 1):
            self.perform(Advance(CALM_MS))
            if driver.is_at_rest or (calms >= CALMS_MAX and driver.is_loaded):
                break
        kept = LEASES_OF_KEPT if self.ever_over_http and not self.played else 0
        for _ in range(self.orphans + kept):
            if self.played or not driver.is_at_rest:  # nodes differ about clients without an owner
                self.perform(Advance(LEASES_MS[-1]))

    def repair(self) -> None:
        """Repair every fault."""
        while self.held:
            self.perform(Release(*self.held[-1]))
        self.perform(*(Heal(*link) for link in self.links if link in (*self.cut, *self.refusing)))
        self.perform(*map(Restart, self.down))
        self.repair_lists()

    def repair_lists(self) -> None:
        """A node that is down keeps its list, and reads it when it starts."""
        self.lists_differ_ms = 0
        readers = sorted({node for node, _ in self.left_out if node in self.up})
        self.left_out = {(node, name) for node, name in self.left_out if node not in readers}
        for name in readers:
            self.read_list(name)

    def read_list(self, node: str, *, names_reader: bool = True) -> None:
        left_out = {name for reader, name in self.left_out if reader == node} | (set() if names_reader else {node})
        self.perform(ListMembers(node, tuple(name for name in NODES if name not in left_out)))

    def teardown(self) -> None:
        """Check safety first, then heal and require progress: views are compared only after the run is calm."""
        if self.driver is None:
            return
        try:
            if self.failure is None:
                self.come_to_rest(self.driver)
            if self.failure is None:  # else it failed on the way, and comes to rest when it is closed
                self.driver.checkpoint()
        except BaseException as error:
            self.failure = error
            raise
        finally:
            self._close(self.driver)

    def _close(self, driver: WalkDriver) -> None:
        """In any case report the end of the run, so that it is counted: Hypothesis may repeat it."""
        try:
            driver.close()
        except BaseException as error:
            self.failure = self.failure or error
            raise
        finally:
            type(self).on_end(self.done, self.failure)


def draw(machine: type[Walk], seed: int, runs: int, steps: int, members: Mapping[str, Any]) -> None:
    """Let Hypothesis draw this many walks, or some more; `members` of the class say what they run on."""
    profile = settings(
        max_examples=runs,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
    )
    run_state_machine_as_test(hypothesis.seed(seed)(type("Walk", (machine,), dict(members))), settings=profile)
