"""The result of a search in the formats of other tools: a counterexample as ITF, the state graph as GraphML or DOT."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from distro_conformance.exploration.explored import Explored
from distro_conformance.verdict import UsageError
from distro_model.bounded.view import call_line, node_lines
from distro_model.cluster.budget import Budget, Clock
from distro_model.cluster.values import Life, Link
from distro_model.node import NodeState
from distro_model.search.drawing import dot, graphml
from distro_model.search.graph import NoGraphError, StateGraph, state_graph
from distro_model.search.itf import itf
from distro_model.search.system import Value

GRAPH_STATES = 20_000
"""A larger graph is unreadable as a picture, and few tools load it."""


def itf_text(found: Explored) -> str | None:
    """The first counterexample; None if there is none."""
    broken = [each.counterexample for each in found.exploration.results if each.counterexample is not None]
    if not broken:
        return None
    return json.dumps(itf(found.exploration.system, broken[0].run), indent=2) + "\n"


def graph_text(found: Explored, suffix: str) -> str:
    """The whole state graph. `suffix` is a key of GRAPH_FORMS. Raises UsageError when it is too large to draw."""
    try:
        graph = state_graph(found.exploration.system, GRAPH_STATES)
        return GRAPH_FORMS[suffix](graph)
    except NoGraphError as reason:
        size = str(reason).partition(";")[0]
        raise UsageError(
            f"--graph: {size}; too large to draw: use fewer changes, drops, crashes or clients"
        ) from reason


def described(_: str, value: Value) -> str:
    """One column of a state as a short text for a picture; empty if there is nothing of interest in it."""
    match value:
        case None:
            return "down"
        case NodeState():
            return "; ".join(("" if value.loaded else "not loaded", *node_lines(value))).strip("; ")
        case Link():
            return "; ".join(call_line(call) for call in value.calls)
        case Life():
            return str(value.connection)
        case Budget() | Clock():
            return ""
        case _:
            return str(value)


GRAPH_FORMS: Mapping[str, Callable[[StateGraph], str]] = {
    ".graphml": lambda graph: graphml(graph, described),
    ".dot": lambda graph: dot(graph, described),
}
