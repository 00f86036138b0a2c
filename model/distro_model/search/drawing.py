"""A state graph for other tools: networkx, GraphML (Gephi, yEd), DOT (Graphviz). Text, never a file.

A row is labelled with one short text for each column. A picture of more than some thousand states is unreadable, and
every edge is a dictionary here; so there is a limit on the edges.
"""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx

from distro_model.search.graph import GraphTooLargeError, StateGraph
from distro_model.search.system import Value

MOST_EDGES = 100_000
LONGEST_TEXT = 80

Describe = Callable[[str, Value], str]
"""The text for a column and its value."""


def shortly(_: str, value: Value) -> str:
    text = str(value)
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def to_networkx(graph: StateGraph, describe: Describe = shortly) -> nx.MultiDiGraph:
    """Nodes are numbers of rows, with `initial` and a text for each column; edges have chain, kind, fair and label.

    Raises `GraphTooLargeError`.
    """
    if graph.edges > MOST_EDGES:
        raise GraphTooLargeError(
            f"{graph.states:,} states and {graph.edges:,} edges are too many to draw; at most {MOST_EDGES:,} edges are"
            " drawn. Lower nodes, clients, changes, drops or crashes"
        )
    drawn = nx.MultiDiGraph()
    for number in range(graph.states):
        texts = zip(graph.system.columns, graph.row(number), strict=True)
        drawn.add_node(number, initial=number == 0)
        drawn.nodes[number].update({column: describe(column, value) for column, value in texts})
    for number in range(graph.states):
        for edge, transition in zip(graph.edges_of(number), graph.transitions_of(number), strict=True):
            chain = transition.chain
            label = chain.name if transition.label is None else str(transition.label)
            after = int(graph.target[edge])
            drawn.add_edge(number, after, chain=chain.name, kind=chain.kind, fair=chain.is_fair, label=label)
    return drawn


def graphml(graph: StateGraph, describe: Describe = shortly) -> str:
    """Raises `GraphTooLargeError`."""
    return "\n".join(nx.generate_graphml(to_networkx(graph, describe))) + "\n"


def dot(graph: StateGraph, describe: Describe = shortly) -> str:
    """The initial row is bold; an edge that is not fair is dashed. Raises `GraphTooLargeError`."""
    drawn = to_networkx(graph, describe)
    lines = ["digraph states {", "  node [shape=box];"]
    for number, texts in drawn.nodes(data=True):
        label = "\n".join(f"{column}: {texts[column]}" for column in graph.system.columns)
        lines.append(f"  {number} [label={_quoted(label)}{', style=bold' if texts['initial'] else ''}];")
    for before, after, edge in drawn.edges(data=True):
        lines.append(
            f"  {before} -> {after} [label={_quoted(edge['label'])}{'' if edge['fair'] else ', style=dashed'}];"
        )
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
