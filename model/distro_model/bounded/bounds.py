"""Bounds: the size of the cluster and the budgets of events. Every limit that makes a search finite has a name here."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import count

from distro_model.rules.owners import place, tag_of

LETTERS = "abcdefghi"
MOST_SERVICES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Raises ValueError when the bounds contradict themselves. Budgets count for the whole run, not for each node."""

    nodes: int = 2
    clients: int = 1
    changes: int = 2
    """Registrations and deregistrations of each client."""
    services: int = 1
    """Services that each client may register at."""
    crashes: int = 0
    drops: int = 1
    """Requests that are lost: their sender observes a time-out."""
    lost_replies: int = 0
    """Requests that take effect but whose reply is lost. The sender retries, so that it arrives twice."""
    swallows: int = 1
    """Requests that are acknowledged and not delivered."""
    late_replies: int = 0
    """Replies that stay in transit while other things happen, and may be lost there."""
    reorders: int = 0
    """Requests that overtake one sent before them on the same link."""
    delays: int = 0
    """Requests that arrive after their sender has given them up."""
    garbles: int = 0
    """Requests that take effect and are answered with a message of an unknown type (B42)."""
    raises: int = 0
    """Syncs that arrive and are not handled, since an exception leaves their handler or their type is unknown, and
    exceptions while a node loads (B16, D6, load-exception-no-retry)."""
    id_collisions: int = 0
    """Requests about a client that its owner never sent: ids collide (B41)."""
    periods: int = 0
    """Verify periods that may pass; with 0 no lease ever ends. Within a period every timer fires once."""
    lease_periods: int = 2
    """Length of a lease in periods, scaled; faults may extend it (`lease_length`)."""
    pauses: int = 0
    """Times that a node sleeps for longer than a lease, while the others go on. Needs periods."""
    batches: int = 0
    """Registrations of a batch of instances, on top of `changes`."""
    cluster_changes: int = 0
    """Changes of nothing but the cluster of an instance (D4)."""
    silences: int = 0
    """Clients that fall silent for good while their connection stays open."""
    idle_spells: int = 0
    """Times that a living client is idle for so long that its server probes it."""
    half_open: int = 0
    """Connections between nodes that break silently: what is sent on one is lost until its sender replaces it."""
    operator_changes: int = 0
    """Times that an operator sets the weight of an instance. With them all clients publish one address, as a process
    does that comes back on a new connection."""
    torn: int = 0
    """1: operations that a profile performs in parts, as every release does (B05), are searched part by part; 0: at
    once. It costs ten times the states."""
    event_queue: int = 0
    """Local events that each queue of a node holds; 0: handled at once, where they are published."""
    index: int = 0
    """1: every node keeps its service index, and pushes its changes to a local subscriber."""
    lost_events: int = 0
    """Local events that never reach the service index, or never become a push. Needs event_queue and index."""
    slow_requests: int = 0
    """Requests of clients that take two steps at their node, so that something may happen in between."""
    slow_setups: int = 0
    """Connections whose set-up takes two steps, likewise."""
    ip_clients: int = 0
    """Clients of the HTTP API, owned by hash. They make `changes` too."""
    flips: int = 0
    """Times that a node believes another to be DOWN that runs."""
    suspicions: int = 0
    """Failed reports in a row that leave a member SUSPICIOUS; the next one makes it DOWN. Nacos: 3."""
    leaves: int = 0
    """Nodes that vanish from the member list of one other node."""
    joins: int = 0
    """Nodes that appear in it again."""
    refreshes: int = 0
    """Times that a node reads an unchanged member list."""
    lapses: int = 0
    """Times that an ip:port client is silent for longer than a time-out of its beats."""
    races: int = 0
    """First requests of an ip:port client that are overtaken by another inside their owner (B30)."""
    v2_requests: int = 0
    """Changes of ip:port clients by version 2 of the HTTP API, which releases do not forward (D7)."""
    retry_waits: int = 0
    """1: a retry is due later than a fresh change. Both may still run at any time; only their due times are checked."""
    stays_down: int = 0
    """1: a node that has crashed need not come back. Needs crashes; the others detect that it is DOWN."""
    in_flight: int = 2
    """Unfinished calls on each link."""
    max_states: int = 20_000_000

    def __post_init__(self) -> None:
        negative = [each.name for each in fields(self) if getattr(self, each.name) < 0]
        if negative or self.nodes < 1:
            raise ValueError("bounds: at least one node, and no negative number of anything")
        if self.nodes > len(LETTERS):
            raise ValueError(f"bounds: at most {len(LETTERS)} nodes")
        if self.in_flight < max(1, self._clients_per_node):
            raise ValueError(
                f"bounds: in_flight={self.in_flight} is too small, a verify round of a node with"
                f" {self._clients_per_node} clients needs as many calls on each link; raise it"
            )
        if self.operator_changes and self.crashes:
            raise ValueError("bounds: metadata is in no node's memory alone; set crashes or operator_changes to 0")
        if not 1 <= self.services <= MOST_SERVICES:
            raise ValueError(f"bounds: a client has 1 to {MOST_SERVICES} services")
        if self.pauses and not self.periods:
            raise ValueError("bounds: pauses need periods to sleep through; raise periods")
        if self.lost_events and not (self.event_queue and self.index):
            raise ValueError("bounds: lost_events need a queue to vanish from and an index to miss them; raise both")
        if (self.lapses or self.races or self.v2_requests) and not self.ip_clients:
            raise ValueError("bounds: lapses, races and v2_requests are those of ip:port clients; raise ip_clients")
        if self.stays_down and not self.crashes:
            raise ValueError("bounds: only a node that has crashed can stay down; raise crashes")
        if self.periods and not self.lease_periods:
            raise ValueError("bounds: a lease lasts at least one period; raise lease_periods")

    @property
    def _clients_per_node(self) -> int:
        return -(-self.clients // self.nodes) + self.ip_clients

    @property
    def lease_length(self) -> int:
        """In periods. The documented lease survives 35 verifies that do not arrive; here, all that the faults can lose:
        otherwise every finding is a lease that was scaled to be too short. An owner that crashes may lose a beat before
        any verify has carried it."""
        beats_lost = self.crashes if self.ip_clients else 0
        return self.lease_periods + self.drops + self.swallows + self.delays + self.flips + self.half_open + beats_lost

    @property
    def watches_members(self) -> bool:
        """Member states are detected: by reports, and where the budgets allow it, wrongly."""
        errs = self.flips + self.leaves + self.joins + self.refreshes
        return bool(errs or self.stays_down or (self.ip_clients and self.crashes))

    @property
    def ip_client_names(self) -> tuple[str, ...]:
        """Client i is owned by node i + 1. For an odd number of nodes its hash is even, so that two nodes of three that
        believe each other DOWN both compute the third as its owner, and the third one of them (docs/protocol
        #owner-responsible)."""
        names: list[str] = []
        for number in count(1):
            if len(names) == self.ip_clients:
                return tuple(names)
            client = f"10.0.0.{number}:80#true"
            fits = place(tag_of(client), self.nodes) == (len(names) + 1) % self.nodes
            if fits and (self.nodes % 2 == 0 or self.nodes == 1 or place(tag_of(client), 2) == 0):
                names.append(client)
        raise AssertionError("unreachable: `count` does not end")

    @property
    def node_names(self) -> tuple[str, ...]:
        return tuple(LETTERS[: self.nodes])

    @property
    def client_names(self) -> tuple[str, ...]:
        return tuple(f"c{number + 1}" for number in range(self.clients))

    def home(self, client: int) -> str:
        """Client i always connects to node i modulo n: the assignment does not matter, only that the nodes differ."""
        return LETTERS[client % self.nodes]

    def __str__(self) -> str:
        """Only the bounds that are not zero, without the limits of the search."""
        values = [(each.name, getattr(self, each.name)) for each in fields(self)]
        hidden = {"max_states"}
        hidden |= set() if self.periods else {"lease_periods"}
        hidden |= set() if self.services > 1 else {"services"}
        return " ".join(f"{name}={value}" for name, value in values if value and name not in hidden)
