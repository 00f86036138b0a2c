"""Properties that are checked in every state: those that need no transition to be observed.

**Quiescence.** There are two terms, one stronger than the other:

* *idle*: every node that runs is loaded, no task is queued for a member that is believed UP, no call between nodes that
  run is unfinished, nothing is half done inside a node;
* *settled*: idle, and a full verify round at every node that runs, with everything that follows from it over perfect
  links, changes only their leases. Messages may be sent in that round (a release with B10 syncs without
  effect for ever).

A node that is down takes part in neither: messages to it may wait for ever. Two nodes that run are *peers* when each
lists the other and believes it UP.

So INV-CONV claims, client by client: in a settled state, a client whose connection is open is shown the same by its
owner and by each peer of its owner, whatever those believe of other nodes; neither anti-entropy nor any lease would
ever change that again. It claims nothing about how long it takes to settle (EVENTUALLY-CONV does), nothing about
copies of clients that are gone while their lease still runs (INV-DELETE does, for clients that left in an orderly
way), and nothing about revisions (INV-REV does).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, wraps
from itertools import permutations

from distro_model.bounded.layout import Layout, client_column, link_column, node_column
from distro_model.bounded.periods import has_tasks_to_run, has_work
from distro_model.cluster.values import COLLIDING_CONTENT, Connection, Life, Link
from distro_model.events import (
    AnnounceDue,
    CallEnded,
    Event,
    LocalEventDue,
    Reply,
    RequestReceived,
    Send,
    TaskDue,
    VerifyDue,
)
from distro_model.messages import UNREACHABLE, Answer, Change, Content, Delete, text_of
from distro_model.node import Addresses, Client, MemberState, NodeState, Task, fresh_node
from distro_model.profiles import Profile
from distro_model.rules.sync import has_free_worker, is_reachable
from distro_model.search.system import Alternative, Finding, Lookup
from distro_model.step import whole_step

ROUNDS_UNTIL_RESTLESS = 20
"""The limit of executions of all queued tasks after a verify round; a round that needs more has not settled."""

Nodes = tuple[NodeState | None, ...]

Function = Callable[..., Sequence[Alternative]]


LookupChains = Callable[[Layout], Iterator[tuple[Lookup, ...]]]
"""The chains of one property: each ends in the register `found`."""

Judge = Callable[..., str | None]
"""The violation of a property by these values, as a sentence; None where there is none."""


def finds(property_id: str, judge: Judge, *reads: str) -> Lookup:
    """The last look-up of a chain: what is wrong with the values of these registers."""
    return Lookup("as it should be", _findings_by(property_id, judge), reads, ("found",))


@cache
def _findings_by(property_id: str, judge: Judge) -> Function:
    @wraps(judge)
    def found(*values: object) -> Sequence[Alternative]:
        what = judge(*values)
        return () if what is None else ((Finding(property_id, what),),)

    return found


def slice_of(node: NodeState | None, client: str) -> NodeState | None:
    """The part of a node's state about one client that properties of single states read: without other clients and
    without time. So there are few slices, whatever else a cluster does."""
    if node is None:
        return None
    held = node.client(client)
    return _fresh(node.name, node.others, node.addresses).changed(
        loaded=node.loaded,
        members=node.members,
        clients=() if held is None else (_timeless(held),),
        applies=tuple(apply for apply in node.applies if apply.client == client),
        local=node.local,
    )


@cache
def _fresh(name: str, others: tuple[str, ...], addresses: Addresses) -> NodeState:
    return fresh_node(name, others, 0, addresses)


def _timeless(client: Client) -> Client:
    return replace(client, renewed_ms=0, beats=()) if client.renewed_ms or client.beats else client


@cache
def _slices_of(client: str) -> Function:
    return lambda node: ((slice_of(node, client),),)


def sliced(layout: Layout, client: str) -> dict[str, Lookup]:
    """Node -> the look-up that writes its slice of this client."""
    return {
        node: Lookup("never", _slices_of(client), (node_column(node),), (f"{client} at {node}",))
        for node in layout.nodes
    }


def of_copies(property_id: str, judge_at: Callable[[str], Judge]) -> LookupChains:
    """The state of one client at one node, in every state. It is judged by the slice of it and the client's life."""

    def lookup_chains(layout: Layout) -> Iterator[tuple[Lookup, ...]]:
        for client in layout.clients:
            for node, part in sliced(layout, client).items():
                yield (part, finds(property_id, judge_at(node), *part.writes, client_column(client)))

    return lookup_chains


def of_settled(property_id: str, judge: Judge) -> LookupChains:
    """The state of one client at all nodes, in settled states."""

    def lookup_chains(layout: Layout) -> Iterator[tuple[Lookup, ...]]:
        before, stays = tuple(at_rest(layout)), settled_lookup(layout)
        for client in layout.clients:
            yield (*before, finds(property_id, judge, "all nodes", client_column(client)), stays)

    return lookup_chains


def of_all_nodes(property_id: str, judge: Judge) -> LookupChains:
    """The state of one client at all nodes, in every state."""

    def lookup_chains(layout: Layout) -> Iterator[tuple[Lookup, ...]]:
        for client in layout.clients:
            yield (*all_slices(layout, client), finds(property_id, judge, "all nodes", client_column(client)))

    return lookup_chains


def all_slices(layout: Layout, client: str) -> Iterator[Lookup]:
    """The slices of one client at all nodes, in the register "all nodes"."""
    slices = sliced(layout, client).values()
    yield from slices
    yield from together([register for each in slices for register in each.writes])


def at_rest(layout: Layout) -> Iterator[Lookup]:
    """All running nodes are idle; then all nodes are in the register "all nodes"."""
    for node in layout.nodes:
        yield Lookup(f"{node} is not idle", is_idle, (node_column(node),))
    for link in layout.links:
        yield Lookup("a link is not empty", is_empty, (link_column(*link),))
    yield from together([node_column(node) for node in layout.nodes])


def is_empty(link: Link) -> Sequence[Alternative]:
    """No call between two nodes that run is unfinished."""
    return () if link.calls and not link.down else ((),)


def together(registers: Sequence[str]) -> Iterator[Lookup]:
    """The values of these registers, one for each node, as one value in the register "all nodes"."""
    first, *rest = registers
    latest = "all nodes" if not rest else "the first node"
    yield Lookup("never", alone, (first,), (latest,))
    for number, register in enumerate(rest, start=2):
        after = "all nodes" if number == len(registers) else f"the first {number} nodes"
        yield Lookup("never", appended, (latest, register), (after,))
        latest = after


def alone(node: NodeState | None) -> Sequence[Alternative]:
    return (((node,),),)


def appended(nodes: Nodes, node: NodeState | None) -> Sequence[Alternative]:
    return (((*nodes, node),),)


def settled_lookup(layout: Layout) -> Lookup:
    """The nodes at rest are settled too. This is the most expensive look-up, so it stands last: only findings need
    it."""
    at_once = replace(layout.profile, event_queue=0)  # all that waited in that round is handled in the end
    return Lookup("a verify round would change it", settled(at_once), ("all nodes",))


@cache
def settled(profile: Profile) -> Function:
    def is_settled(nodes: Nodes) -> Sequence[Alternative]:
        after = after_verify_rounds(nodes, profile)
        return ((),) if after is not None and _without_stamps(after) == _without_stamps(nodes) else ()

    return is_settled


def _without_stamps(nodes: Nodes) -> Nodes:
    """A verify round renews leases; that is not a change with further effects. The beats of an ip:port client are such
    a change: they affect what is shown of it."""
    return tuple(node and _without_stamp(node) for node in nodes)


def _without_stamp(node: NodeState) -> NodeState:
    clients = tuple(client if client.beats else _timeless(client) for client in node.clients)
    return node.changed(sent=(), clients=clients) if node.sent or clients != node.clients else node


def is_idle(node: NodeState | None) -> Sequence[Alternative]:
    return ((),) if node is None or is_at_rest(node) else ()


def is_at_rest(node: NodeState) -> bool:
    return node.loaded and not has_tasks_to_run(node) and not has_work(node)


def after_verify_rounds(nodes: Nodes, profile: Profile) -> Nodes | None:
    """The nodes after one verify round at each that runs, over perfect links; None when the exchange does not come to
    rest. Tasks for a node that is down wait."""
    after, at_rest = after_each(nodes, VerifyDue(0), profile)
    return after if at_rest else None


def after_each(nodes: Nodes, event: Event, profile: Profile) -> tuple[Nodes, bool]:
    """The nodes after this event at each running node, and after all that follows from it over perfect links; and
    whether they came to rest.

    Tasks for a member that a node counts as DOWN wait. Other tasks may be refused and retried without end.
    """
    exchange = _Exchange({node.name: node for node in nodes if node is not None}, profile)
    for name in exchange.nodes:
        exchange.handle(name, event)
        for client in exchange.nodes[name].unannounced:
            exchange.handle(name, AnnounceDue(0, client))
    for _ in range(ROUNDS_UNTIL_RESTLESS):
        exchange.handle_local_events()
        due = exchange.due()
        if not due:
            return exchange.among(nodes), True
        for name, task in due:
            exchange.handle(name, TaskDue(0, task.client, task.target))
    return exchange.among(nodes), False


@dataclass
class _Exchange:
    """Nodes over perfect links: each request is answered, and its sender receives the answer, before anything else."""

    nodes: dict[str, NodeState]
    profile: Profile
    sent: deque[tuple[str, Send]] = field(default_factory=deque)

    def among(self, nodes: Nodes) -> Nodes:
        """These nodes as they are now; a node that is down stays so."""
        return tuple(node and self.nodes[node.name] for node in nodes)

    def due(self) -> list[tuple[str, Task]]:
        """The tasks for members that their node counts as UP."""
        return [
            (name, task)
            for name, node in self.nodes.items()
            for task in node.tasks
            if task.target in self.nodes and is_reachable(node, task.target, self.profile)
        ]

    def handle_local_events(self) -> None:
        for name in self.nodes:
            while waiting := self.nodes[name].local.events:
                self.handle(name, LocalEventDue(0, waiting[0]))

    def handle(self, name: str, event: Event) -> None:
        self.step(name, event)
        while self.sent:
            source, send = self.sent.popleft()
            arrives = RequestReceived(0, source, send.request)
            answer = self.step(send.target, arrives) if send.target in self.nodes else UNREACHABLE
            if answer is not None:
                self.step(source, CallEnded(0, send.target, send.request, answer))

    def step(self, name: str, event: Event) -> Answer | None:
        done = whole_step(self.nodes[name], event, self.profile)
        self.nodes[name] = done.node
        self.sent.extend((name, output) for output in done.outputs if isinstance(output, Send))
        return next((output.answer for output in done.outputs if isinstance(output, Reply)), None)


@cache
def misowned(node: str) -> Judge:
    """A client is native at the node that holds its connection and nowhere else."""

    def judge(state: NodeState | None, life: Life) -> str | None:
        held = None if state is None else state.client(life.client)
        owns = held is not None and held.native
        connected = life.connection is Connection.OPEN and life.home == node
        if owns == connected:
            return None
        return f"{life.client} is {'' if owns else 'not '}native at {node} and {_connection(life)}"

    return judge


def of_revisions(layout: Layout) -> Iterator[tuple[Lookup, ...]]:
    """INV-REV. Where revisions travel, 0 is a revision like any other; elsewhere every copy has 0."""
    judge = misrevised if layout.profile.revisions_travel else misrevised_above_0
    return of_copies("INV-REV", lambda _: judge)(layout)


def misrevised_above_0(node: NodeState | None, life: Life) -> str | None:
    held = None if node is None else node.client(life.client)
    return None if held is None or (held.revision == 0 and not held.native) else misrevised(node, life)


def misrevised(node: NodeState | None, life: Life) -> str | None:
    """A copy stamped with revision r holds what its owner had at revision r.

    A copy to which a CHANGE is being applied is excluded, and so is one that another node has claimed.
    """
    held = None if node is None else node.client(life.client)
    if node is None or held is None:
        return None
    if held.content == COLLIDING_CONTENT or any(apply.client == life.client for apply in node.applies):
        return None
    if held.revision >= len(life.contents):
        return f"{node.name} has {held.name} at revision {held.revision}, never reached"
    if life.contents[held.revision] == held.content:
        return None
    return (
        f"{node.name} has {held.name} at revision {held.revision} with {text_of(held.content)},"
        f" its owner had {text_of(life.contents[held.revision])}"
    )


def at_second_revision(node: NodeState | None, life: Life) -> str | None:
    held = None if node is None else node.client(life.client)
    if node is None or held is None or held.native or len(life.contents) < 3:
        return None
    if held.content != life.contents[2] or life.contents[2] == life.contents[1]:
        return None
    return f"{node.name} holds the second content of {life.client}"


def diverged(nodes: Nodes, life: Life) -> str | None:
    """The owner of a connected client and one of its peers do not show the same instances of it."""
    held = held_by(peers_of(nodes, life.home), life.client) if life.connection is Connection.OPEN else {}
    return f"{life.client}: {contents_text(held)}" if len(set(held.values())) > 1 else None


def peers_of(nodes: Nodes, name: str) -> Nodes:
    """The node of this name, and those with which it exchanges requests; none where it does not run."""
    node = next((each for each in nodes if each is not None and each.name == name), None)
    if node is None:
        return ()
    return (node, *(each for each in nodes if each is not None and believes_up(node, each) and believes_up(each, node)))


def believes_up(node: NodeState, other: NodeState) -> bool:
    return any(each.name == other.name and each.state is MemberState.UP for each in node.members)


def stable(nodes: Nodes) -> bool:
    """All nodes that run are peers of each other. Their beliefs about a node that is down do not matter."""
    running = [node for node in nodes if node is not None]
    return all(believes_up(*pair) for pair in permutations(running, 2))


def held_after_disconnect(nodes: Nodes, life: Life) -> str | None:
    """A client that has disconnected is held as native anywhere, or after an orderly end by its owner's peers."""
    if life.connection is not Connection.ENDED:
        return None
    peers = peers_of(nodes, life.home) if life.left_cleanly else ()
    held = {node.name: (node.client(life.client), node in peers) for node in nodes if node is not None}
    holders = [name for name, (copy, is_peer) in held.items() if copy is not None and (copy.native or is_peer)]
    return f"{life.client} has disconnected and is still at {', '.join(holders)}" if holders else None


def unfinished_sync(layout: Layout) -> Iterator[tuple[Lookup, ...]]:
    """From one node to another that runs: a sync is queued or unfinished."""
    for source, target in layout.links:
        yield (finds("EVENTUALLY-QUIET", has_syncs(target), node_column(source), link_column(source, target)),)


def of_workers(layout: Layout) -> Iterator[tuple[Lookup, ...]]:
    """INV-ISOLATE: each node separately."""
    for node in layout.nodes:
        yield (finds("INV-ISOLATE", held_up(layout.profile), node_column(node)),)


@cache
def held_up(profile: Profile) -> Judge:
    def judge(node: NodeState | None) -> str | None:
        if node is None or not node.under_way:
            return None
        for task in node.tasks:
            elsewhere = tuple(each for each in node.under_way if each[1] != task.target)
            but_for_it = node.changed(under_way=elsewhere, reads=())
            if not has_free_worker(but_for_it, task.client, task.target, profile):
                waits = f"{node.name} has no worker for the {task.action} of {task.client} to {task.target}"
                whom = " and ".join(sorted({target for _, target in elsewhere}))
                return f"{waits} before {whom} has answered"
        return None

    return judge


def of_loads(layout: Layout) -> Iterator[tuple[Lookup, ...]]:
    """All nodes together, in every state: those that are not loaded."""
    nodes = [node_column(node) for node in layout.nodes]
    yield (*together(nodes), finds("EVENTUALLY-LOAD", unloaded, "all nodes"))


def unloaded(nodes: Nodes) -> str | None:
    """A running node is not loaded, and has a peer to load from."""
    running = {node.name for node in nodes if node is not None}
    waiting = [node for node in nodes if node is not None and not node.loaded and running & {*node.others}]
    if not waiting:
        return None
    peers = " and ".join(sorted(running & {*waiting[0].others}))
    return f"{waiting[0].name} is not loaded, though {peers} can be asked"


@cache
def has_syncs(target: str) -> Judge:
    def judge(node: NodeState | None, link: Link) -> str | None:
        if link.down:
            return None  # messages to a node that is down wait
        queued = node is not None and target in {
            *(task.target for task in node.tasks),
            *(read.target for read in node.reads),
        }
        unfinished = queued or any(isinstance(call.request, Change | Delete) for call in link.calls)
        return f"a sync for {target} is queued or unfinished" if unfinished else None

    return judge


def held_by(nodes: Nodes, client: str) -> dict[str, Content]:
    held = {node.name: node.client(client) for node in nodes if node is not None}
    return {name: () if each is None else each.content for name, each in held.items()}


def contents_text(held: dict[str, Content]) -> str:
    return ", ".join(f"{name} shows {text_of(content)}" for name, content in held.items())


def _connection(life: Life) -> str:
    return f"connected to {life.home}" if life.connection is Connection.OPEN else str(life.connection)
