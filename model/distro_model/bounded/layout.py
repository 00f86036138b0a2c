"""The columns of a bounded cluster, and the places in it where transitions happen.

Columns are nodes, links, clients, the budget, the clock of periods, clients of the HTTP API, and, where members are
watched, the pairs whose beliefs may be out of date.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from distro_model.bounded.bounds import Bounds
from distro_model.cluster.statement import Family, Member, Place
from distro_model.node import Addresses, address_book
from distro_model.profiles import Profile

BUDGET = "budget"
CLOCK = "clock"
STALE = "stale beliefs"


def node_column(node: str) -> str:
    return f"node {node}"


def link_column(source: str, target: str) -> str:
    return f"link {source}->{target}"


def client_column(client: str) -> str:
    return f"client {client}"


def ip_column(client: str) -> str:
    return f"ip client {client}"


@dataclass(frozen=True)
class Layout:
    bounds: Bounds
    profile: Profile  # without time, except for the lease when periods pass

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        return self.bounds.node_names

    @cached_property
    def clients(self) -> tuple[str, ...]:
        return self.bounds.client_names

    @cached_property
    def ip_clients(self) -> tuple[str, ...]:
        return self.bounds.ip_client_names

    @cached_property
    def links(self) -> tuple[tuple[str, str], ...]:
        return tuple((source, target) for source in self.nodes for target in self.nodes if source != target)

    def others(self, node: str) -> tuple[str, ...]:
        return tuple(other for other in self.nodes if other != node)

    @cached_property
    def addresses(self) -> Addresses:
        """The addresses of the nodes. Only a task for a node that has left reads them, and they make nodes different
        that are otherwise interchangeable."""
        return address_book(self.nodes) if self.bounds.leaves else ()

    def home(self, client: str) -> str:
        return self.bounds.home(self.clients.index(client))

    @cached_property
    def columns(self) -> frozenset[str]:
        links = (link_column(*link) for link in self.links)
        clients = (*map(client_column, self.clients), *map(ip_column, self.ip_clients))
        return frozenset((*map(node_column, self.nodes), *links, *clients, BUDGET, CLOCK, *self._optional.values()))

    # Places

    @cached_property
    def _optional(self) -> Mapping[str, str]:
        return {"stale": STALE} if self.bounds.watches_members else {}

    @cached_property
    def _chooser(self) -> Mapping[str, str]:
        """Constants that only a search has."""
        return {"budget": BUDGET, "clock": CLOCK, **self._optional}

    @cached_property
    def _all_families(self) -> tuple[Family, ...]:
        return (
            _family("life", map(client_column, self.clients)),
            _family("ip_life", map(ip_column, self.ip_clients)),
            _family("every_node", map(node_column, self.nodes)),
        )

    @cached_property
    def _absent(self) -> frozenset[str]:
        return frozenset({"stale"} - self._optional.keys())

    def _place(
        self, name: str, columns: Mapping[str, str], constants: Mapping[str, Hashable], *families: Family
    ) -> Place:
        """With the columns that only a search has, and with these families."""
        return Place(name, {**columns, **self._chooser}, constants, families, self._absent)

    def node(self, node: str) -> Place:
        others = self.others(node)
        peers = tuple(Member({"peer": node_column(other)}, {"peer_name": other}) for other in others)
        return self._place(
            node,
            {"node": node_column(node)},
            {"node_name": node, "others": others, "addresses": self.addresses},
            *self._all_families,
            _family("outgoing", (link_column(node, other) for other in others)),
            _family("incoming", (link_column(other, node) for other in others)),
            _family("home_client", (client_column(each) for each in self.clients if self.home(each) == node)),
            Family(("peer", "peer_name"), peers),
        )

    def link(self, source: str, target: str, **constants: str) -> Place:
        columns = {"link": link_column(source, target), "source": node_column(source), "target": node_column(target)}
        names = {"source_name": source, "target_name": target, **constants}
        return self._place(f"{source}->{target}", columns, names, *self._all_families)

    def client(self, client: str) -> Place:
        columns = {"life": client_column(client), "home": node_column(self.home(client))}
        return self._place(client, columns, {"client": client}, *self._all_families)

    def client_at(self, client: str, node: str) -> Place:
        """A client, and the node that receives a request about it."""
        columns = {"life": client_column(client), "node": node_column(node)}
        claimant = next(iter(self.others(node)), "no node")
        return self._place(f"{client} at {node}", columns, {"client": client, "node_name": node, "claimant": claimant})

    def ip_client(self, client: str) -> Place:
        return self._place(client, {"ip_life": ip_column(client)}, {"client": client}, *self._all_families)

    def ip_client_at(self, client: str, node: str) -> Place:
        columns = {"ip_life": ip_column(client), "node": node_column(node)}
        return self._place(f"{client} {node}", columns, {"client": client, "node_name": node})

    def routes(self, client: str) -> Iterator[Place]:
        """A request of the client arrives at one node, and is handled by one."""
        for asked in self.nodes:
            for handling in self.nodes:
                nodes = {"asked": node_column(asked), "handling": node_column(handling)}
                names = {"client": client, "asked_name": asked, "handling_name": handling}
                yield self._place(f"{client} {asked} {handling}", {"ip_life": ip_column(client), **nodes}, names)

    def everywhere(self) -> Place:
        """The whole cluster at once."""
        links = tuple(
            Member(
                {"any_link": link_column(*ends), "any_source": node_column(ends[0])},
                {"any_source_name": ends[0], "any_target_name": ends[1]},
            )
            for ends in self.links
        )
        held = tuple(
            Member({"holder": node_column(node), "held": client_column(client)})
            for node in self.nodes
            for client in self.clients
        )
        any_link = Family(("any_link", "any_source", "any_source_name", "any_target_name"), links)
        return self._place("", {}, {}, *self._all_families, any_link, Family(("holder", "held"), held))


def _family(name: str, columns: Iterable[str]) -> Family:
    return Family((name,), tuple(Member({name: column}) for column in columns))
