"""The node under test among played members: a reference node in virtual time, or the node of a target in real time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from distro_conformance.drivers.embedded import UNKNOWN_TO_MODEL, node_events_into
from distro_conformance.drivers.wired import WiredCluster
from distro_conformance.node_mutants import with_mutant
from distro_conformance.targets.credentials import headers_of, options_for
from distro_conformance.targets.embedded import ReferenceNode
from distro_conformance.targets.ports import free_base_ports
from distro_conformance.targets.target import Node, OnProgress, Place, Target
from distro_conformance.wire.transports import Wire
from distro_impl import NodeConfig, profile_named
from distro_model.profiles import Profile as ModelProfile
from distro_model.profiles import beside_nodes
from distro_model.profiles import profile_named as model_profile_named
from distro_model.rules.sync import calls_back
from distro_protos.addresses import parse_address


class UnderTest(Protocol):
    def rules_of(self, profile: str) -> ModelProfile:
        """The profile of the model of the node."""

    def version_of(self, profile: str) -> str: ...

    def member_headers(self, profile: str) -> Mapping[str, str]: ...

    def ports(self, number: int) -> list[int]:
        """Of all members, ascending; the first is the node's."""

    async def node(self, ports: Sequence[int], profile: str, cluster: WiredCluster) -> Node: ...


class TargetUnderTest:
    def __init__(self, target: Target, on_progress: OnProgress) -> None:
        self._target, self._on_progress = target, on_progress

    def rules_of(self, profile: str) -> ModelProfile:
        rules, lease_ms = beside_nodes(model_profile_named(profile)), self._target.lease_ms
        return rules if lease_ms is None else replace(rules, lease_ms=lease_ms)  # a shorter one, where it is configured

    def version_of(self, profile: str) -> str:
        return profile.removeprefix("nacos-")

    def member_headers(self, _profile: str) -> Mapping[str, str]:
        return self._target.member_headers

    def ports(self, number: int) -> list[int]:
        own = parse_address(self._target.address).port
        return [own, *sorted(free_base_ports(number - 1, beside=(own,), above=own))]

    async def node(self, ports: Sequence[int], _profile: str, _cluster: WiredCluster) -> Node:
        place = Place(ports[0], _addresses(ports), lease_ms=self._target.lease_ms)
        return await self._target.node(place, self._on_progress)


class EmbeddedUnderTest:
    def __init__(self, mutant: str | None, wire: Wire, *, serves_http: bool) -> None:
        self._mutant, self._wire, self._serves_http = mutant, wire, serves_http

    def rules_of(self, profile: str) -> ModelProfile:
        """The reference node gets the result of every call (tests/counterparts.py)."""
        return beside_nodes(model_profile_named(profile)).with_rules(calls_back)

    def version_of(self, profile: str) -> str:
        return profile_named(profile).version

    def member_headers(self, profile: str) -> Mapping[str, str]:
        return headers_of(options_for(profile_named(profile)).identity)

    def ports(self, number: int) -> list[int]:
        return self._wire.main_ports(number)

    async def node(self, ports: Sequence[int], profile: str, cluster: WiredCluster) -> Node:
        chosen = with_mutant(replace(profile_named(profile), **UNKNOWN_TO_MODEL).with_known_members(), self._mutant)
        config = NodeConfig(
            port=ports[0],
            members=_addresses(ports),
            profile=chosen,
            options=options_for(chosen),
            serves_http=self._serves_http,
        )
        observer = node_events_into(cluster) if cluster.journal is not None else None
        link_to = partial(cluster.link_to, cluster.names[0])
        assert cluster.virtual is not None
        return ReferenceNode(config, cluster.virtual, link_to, observer, cluster.transport)


def _addresses(ports: Sequence[int]) -> tuple[str, ...]:
    return tuple(f"127.0.0.1:{port}" for port in ports)
