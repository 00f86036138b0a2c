"""The page of imported logs: a lane for each node with what went wrong as bars, and a row for each client that matters.

It is one self-contained file like the report. Nothing on it is a verdict; it shows what the servers say, and what was
not read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from distro_conformance.report.lanes import Lane, Period, Scale
from distro_conformance.report.write import render, write_whole
from distro_traces.nacos_logs.importer import Imported, LogSpan
from distro_traces.nacos_logs.troubles import Trouble

BARS_MAX = 400
"""Of the longest episodes; the list below the lanes has the others too."""
ROWS_MAX = 500
CLIENTS_MAX = 30
_OF_CLIENTS = ("unreached", "differs", "ejected", "dropped", "flapping")


def write_logs_page(found: Imported, path: Path) -> None:
    """Write the page of an import."""
    first = min(span.from_ms for span in found.spans)
    last = max(first + 1, *(span.until_ms for span in found.spans))
    scale = Scale(found.began, first, last)
    longest = sorted(found.troubles, key=lambda each: (each.until_ms or last) - each.from_ms, reverse=True)[:BARS_MAX]
    drawn = sorted(longest, key=lambda each: each.from_ms)
    by_node: defaultdict[str, list[Trouble]] = defaultdict(list)
    by_client: defaultdict[str, list[Trouble]] = defaultdict(list)
    for trouble in drawn:
        (by_client if trouble.kind in _OF_CLIENTS else by_node)[
            trouble.subject if trouble.kind in _OF_CLIENTS else trouble.node
        ].append(trouble)
    nodes = [
        Lane(
            span.node,
            ", ".join(span.logs),
            (scale.bar(_read(span), 0), *scale.bars(_periods(by_node[span.node], last))),
        )
        for span in found.spans
    ]
    clients = [
        Lane(client, "", scale.bars(_periods(by_client[client], last), first_row=0))
        for client in list(by_client)[:CLIENTS_MAX]
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(
        path,
        render(
            "logs.html.j2",
            found=found,
            nodes=nodes,
            clients=clients,
            clients_left=max(0, len(by_client) - CLIENTS_MAX),
            kinds=sorted({trouble.kind for trouble in drawn}),
            scale=scale,
            begins=scale.clock(first),
            ends=scale.clock(last),
            rows=[(scale.clock(each.from_ms), _end(each, scale), each) for each in found.troubles[:ROWS_MAX]],
            rows_left=max(0, len(found.troubles) - ROWS_MAX) + found.troubles_left_out,
        ),
    )


def _read(span: LogSpan) -> Period:
    return Period("read", "logs were read", span.from_ms, span.until_ms)


def _periods(troubles: Iterable[Trouble], last_ms: int) -> Iterator[Period]:
    for each in troubles:
        lasts = each.until_ms is None and each.kind not in ("ejected", "push")
        until_ms = last_ms if lasts else each.from_ms if each.until_ms is None else each.until_ms
        yield Period(each.kind, f"{each.node}: {each.text}", each.from_ms, until_ms, not lasts)


def _end(trouble: Trouble, scale: Scale) -> str:
    return "" if trouble.until_ms is None else scale.clock(trouble.until_ms)
