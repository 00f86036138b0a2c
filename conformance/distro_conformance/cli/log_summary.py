"""The summary that `import nacos-logs` prints: the logs that were read, the events that they lack, and the problems.

Nothing in it is a verdict. Each line about a problem has the time, the node, and the file and line of the log. If there
are more problems than lines, the longest ones are printed, in order of time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from distro_traces.header import wall_clock
from distro_traces.nacos_logs.importer import Imported
from distro_traces.nacos_logs.troubles import Trouble

TROUBLES_PRINTED = 15
NODES_PRINTED = 8
_WEIGHT = (
    *("old-mode", "restart", "not-loaded", "unreached", "hole", "differs", "ejected", "dropped", "flapping"),
    *("redirect", "member", "link", "reports", "push"),
)
"""The kinds of problems, beginning with those that explain most. If not all fit, the first kinds are printed."""


def log_summary(found: Imported) -> Iterator[str]:
    """The lines of the summary. Most of them fit into the width of a terminal."""
    labels = {address: label for label, address in found.nodes.items()}
    for span in found.spans[:NODES_PRINTED]:
        label = labels[span.node]
        name = (
            f"{label}: {span.node}"
            if span.is_named
            else f"{label}: no record has its address (--node {label}=HOST:PORT)"
        )
        yield name
        yield f"  {_clock(found, span.from_ms)} to {_clock(found, span.until_ms)}: {', '.join(span.logs)}"
        yield from (f"  {note}" for note in span.notes)
    if len(found.spans) > NODES_PRINTED:
        yield f"{len(found.spans) - NODES_PRINTED} more nodes"
    yield from _not_shown(found)
    if skipped := _skipped(found):
        yield f"skipped: {skipped}"
    yield from _troubles(found)


def _not_shown(found: Imported) -> Iterator[str]:
    """The limits that follow from missing files, with one line for all nodes that lack the same files."""
    nodes = sorted((span.node for span in found.spans), key=len, reverse=True)
    by_limit: defaultdict[str, list[str]] = defaultdict(list)
    notes = {f"{note}." for span in found.spans for note in span.notes}
    silent = []
    for limit in found.limits:
        node = next((node for node in nodes if limit.startswith(f"{node}: ")), None)
        if node is not None and limit[len(node) + 2 :] in notes:
            continue
        if node is not None:
            by_limit[limit[len(node) + 2 :].removeprefix("no record of ").rstrip(".")].append(node)
        elif "no logs, nothing is known" in limit:
            silent.append(limit.partition(": no logs")[0])
    by_nodes: defaultdict[str, list[str]] = defaultdict(list)
    for limit, names in by_limit.items():
        by_nodes["every node" if len(names) == len(found.spans) > 1 else ", ".join(names)].append(limit)
    for who, limits in by_nodes.items():
        yield f"not shown of {who}: {'; '.join(limits)}"
    if silent:
        yield f"no logs of {', '.join(silent)}: what they hold is unknown"
    if found.profile.endswith("unknown"):
        several = next((limit for limit in found.limits if "several releases" in limit), "")
        why = several.rstrip(".") or "the release is not logged, so nothing can be judged"
        yield f"not shown: {why}; name {'one' if several else 'it'} with --profile nacos-X.Y.Z"


def _skipped(found: Imported) -> str:
    most = sorted(found.skipped.items(), key=lambda item: -item[1])[:3]
    more = len(found.skipped) - len(most)
    return "; ".join([f"{count} {reason}" for reason, count in most] + ([f"{more} more reasons"] if more > 0 else []))


def _troubles(found: Imported) -> Iterator[str]:
    if not found.troubles:
        yield "No record reports a problem."
        return
    chosen = sorted(found.troubles, key=lambda each: (_WEIGHT.index(each.kind), -each.count))[:TROUBLES_PRINTED]
    yield "Problems that the servers logged:"
    for each in found.troubles:
        if each in chosen:
            yield f"  {when(found, each)}  {each.node}: {each.text}" + (f"  ({each.place})" if each.place else "")
    left = len(found.troubles) - len(chosen) + found.troubles_left_out
    if left:
        yield f"  … {left} more, see --html and --json"


def when(found: Imported, trouble: Trouble) -> str:
    start = _clock(found, trouble.from_ms)
    if trouble.until_ms is None:
        return (
            f"{start} to the end"
            if trouble.kind in ("old-mode", "not-loaded", "member", "link", "unreached", "differs")
            else start
        )
    return f"{start} to {_clock(found, trouble.until_ms)[11:]}"


def _clock(found: Imported, at_ms: int) -> str:
    """The time of day; the offset from UTC at the end of the text is left out."""
    return (wall_clock(found.began, at_ms) or str(at_ms))[:23]
