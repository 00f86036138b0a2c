"""Locality: given crashes and lost calls, every rule reads and writes what its node knows of one client, or takes the
clients one by one.

So a bounded cluster falls into slices: the observable states of one client in it are those of a cluster
without other clients. So a trace can be validated client by client, and a property can check a slice of a node.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from distro_model.bounded import chains
from distro_model.bounded.bounds import Bounds
from distro_model.bounded.cluster import bounded_cluster
from distro_model.cluster.values import Life, Link
from distro_model.events import CallEnded, Event, LoadDue, Output, Reply, RequestReceived, Send, VerifyDue
from distro_model.messages import Answer, subject_of
from distro_model.node import NodeState, Step
from distro_model.profiles import STRICT, Profile
from distro_model.search.graph import StateGraph, state_graph
from distro_model.search.system import System, Value
from distro_model.step import step

Cluster = tuple[Bounds, int]
"""With its number of states."""
CLUSTERS: dict[str, Cluster] = {
    "a crash": (Bounds(clients=2, changes=1, crashes=1, drops=0, swallows=0, in_flight=1), 11_988),
    "lost calls": (Bounds(clients=2, changes=1, drops=1, swallows=1, in_flight=1), 13_941),
    "two at one node": (Bounds(clients=3, changes=0, drops=0, swallows=0), 30_282),
}
ABOUT_ALL = (VerifyDue, LoadDue)
"""Besides snapshots."""


def of_client(node: NodeState, client: str) -> NodeState:
    """The part of a node's state about one client, and the part about no client."""
    return node.changed(
        clients=tuple(each for each in node.clients if each.name == client),
        tasks=tuple(each for each in node.tasks if each.client == client),
        gone=tuple(each for each in node.gone if each[0] == client),
    )


def is_about(client: str, value: Value) -> bool:
    """One column of a row, or of all rows: is there anything of this client in it?"""
    return isinstance(value, NodeState | Link) or (isinstance(value, Life) and value.client == client)


def sliced(value: Value, client: str) -> Value:
    if isinstance(value, NodeState):
        return of_client(value, client)
    if isinstance(value, Link):
        return value.with_calls(tuple(each for each in value.calls if subject_of(each.request) in (None, client)))
    return value if value is None or is_about(client, value) else "of another client"


def situations(graph: StateGraph, client: str) -> set[tuple[Value, ...]]:
    """The reachable rows, without all that is not about this client; what is left of a budget is shared by all."""
    values = graph.follower.values.known
    slices: dict[Value, int] = {}
    numbers = np.array([slices.setdefault(sliced(value, client), len(slices)) for value in values], np.int32)
    known = list(slices)
    return {tuple(known[number] for number in row) for row in np.unique(numbers[graph.ids], axis=0).tolist()}


def with_only(system: System, client: str) -> System:
    """The same cluster, in which no other client ever connects."""
    kept = tuple(chain for chain in system.chains if chain.kind != "connect" or chain.name == f"connect {client}")
    return replace(system, chains=kept)


@pytest.mark.parametrize("cluster", CLUSTERS.values(), ids=CLUSTERS)
def test_a_cluster_shows_of_each_client_what_one_without_the_others_goes_through(cluster: Cluster):
    bounds, states = cluster
    system = bounded_cluster(bounds, STRICT, ())
    whole = state_graph(system)
    assert whole.states == states
    for client in bounds.client_names:
        alone = state_graph(with_only(system, client))
        assert alone.states < states / 10
        assert situations(whole, client) == situations(alone, client)


def subject(event: Event) -> str | None:
    """The client that an event is about; None: all of them."""
    if isinstance(event, RequestReceived | CallEnded):
        return subject_of(event.request)
    return None if isinstance(event, ABOUT_ALL) else event.client  # type: ignore[union-attr]


def event_of_client(event: Event, client: str) -> Event:
    return replace(event, answer=answer_of_client(event.answer, client)) if isinstance(event, CallEnded) else event


def answer_of_client(answer: Answer, client: str) -> Answer:
    return replace(answer, copies=tuple(copy for copy in answer.copies if copy.client == client))


def outputs_of_client(outputs: Iterable[Output], client: str) -> list[Output]:
    said: list[Output] = []
    for output in outputs:
        if isinstance(output, Reply):
            said.append(replace(output, answer=answer_of_client(output.answer, client)))
        elif isinstance(output, Send) and subject_of(output.request) in (None, client):
            said.append(output)
    return said


@pytest.mark.parametrize("cluster", CLUSTERS.values(), ids=CLUSTERS)
def test_a_step_on_a_slice_is_the_slice_of_the_step(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    """For every node and every event that it receives anywhere in the cluster."""
    met: dict[tuple[NodeState, Event, Profile], Step] = {}

    def noted(node: NodeState, event: Event, profile: Profile) -> Step:
        met[node, event, profile] = step(node, event, profile)
        return met[node, event, profile]

    monkeypatch.setattr(chains, "step", noted)
    bounds, states = cluster
    assert state_graph(bounded_cluster(bounds, STRICT, ())).states == states
    for (node, event, profile), whole in met.items():
        for client in bounds.client_names:
            mine = of_client(node, client)
            if subject(event) in (None, client):
                alone = step(mine, event_of_client(event, client), profile)
                assert alone.node == of_client(whole.node, client)
                assert outputs_of_client(alone.outputs, client) == outputs_of_client(whole.outputs, client)
            else:
                assert of_client(whole.node, client) == mine
                assert all(isinstance(each, Reply) for each in outputs_of_client(whole.outputs, client))
