"""A recorded run as lanes: when each node was up and loading, which faults and failed calls there were, and who held
the clients that matter in which form.

A client matters if a violation or a change that never arrived is about it. Its lanes are the nodes that held it: a bar
for each content, so that two nodes which differ at a time have bars of different colours below each other, and the
violations in red.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from distro_conformance.report.lanes import Lane, Period, Scale
from distro_traces.content import shortened
from distro_traces.event import GONE_KINDS, HELD_KINDS, RESET_KINDS, Event, Kind, Outcome
from distro_traces.header import Header

CLIENTS_MAX = 20
PERIODS_MAX = 200
"""Of one lane: the longest."""
FORMS = 6
"""Colours of contents; further ones begin again with the first."""

_ENDS = {"healed": "cut", "released": "held", "resumed": "paused", "answers": "silent"}


@dataclass(frozen=True, slots=True)
class Bad:
    """What is wrong with a client at a node, as it is drawn."""

    kind: str  # violation, known or unreached
    client: str
    node: str
    text: str
    from_ms: int
    until_ms: int | None


@dataclass(frozen=True, slots=True)
class Drawn:
    """A run as lanes."""

    run: str
    scale: Scale
    nodes: tuple[Lane, ...]
    clients: tuple[Lane, ...]
    clients_left: int
    kinds: tuple[str, ...]


def drawn(header: Header, events: Sequence[Event], bad: Sequence[Bad]) -> Drawn:
    first = min((event.at_ms for event in events), default=0)
    last = max((event.at_ms for event in events), default=1)
    scale = Scale(header.began, first, max(first + 1, last))
    by_node: defaultdict[str, list[Event]] = defaultdict(list)
    for event in events:
        by_node[event.node].append(event)
    nodes = []
    for node, rows in sorted(by_node.items()):
        up = tuple(scale.bar(period, 0) for period in _lives(rows, _end_ms(header, node, rows, last)))
        troubles = _longest([*_of_node(rows, last), *(_period(each, last) for each in bad if each.node == node)])
        nodes.append(Lane(node, "", (*up, *scale.bars(troubles))))
    clients = list(dict.fromkeys(each.client for each in bad if each.client))
    lanes = list(_of_clients(scale, by_node, clients[:CLIENTS_MAX], bad, last))
    kinds = {bar.kind for lane in (*nodes, *lanes) for bar in lane.bars if not bar.kind.startswith("form")}
    return Drawn(
        header.run,
        scale,
        tuple(nodes),
        tuple(lanes),
        max(0, len(clients) - CLIENTS_MAX),
        tuple(sorted(kinds)),
    )


def _end_ms(header: Header, node: str, rows: Sequence[Event], last_ms: int) -> int:
    """Until when something is known of a node: files end at different times."""
    if not header.observed.covered:
        return last_ms
    spans = (each.until_ms for each in header.observed.covered if each.node == node)
    return min(last_ms, max((rows[-1].at_ms, *spans)))


def _period(each: Bad, last_ms: int) -> Period:
    until = last_ms if each.until_ms is None else each.until_ms
    return Period(each.kind, each.text, each.from_ms, until, each.until_ms is not None)


def _longest(periods: Iterable[Period]) -> list[Period]:
    return sorted(periods, key=lambda period: period.from_ms - period.until_ms)[:PERIODS_MAX]


def _lives(rows: Sequence[Event], last_ms: int) -> Iterator[Period]:
    """When the node was up, as far as its rows say."""
    since: int | None = rows[0].at_ms
    for event in rows:
        if event.kind is Kind.NODE_STOPPED and since is not None:
            yield Period("up", "up", since, event.at_ms)
            since = None
        elif since is None:
            since = event.at_ms
    if since is not None:
        yield Period("up", "up", since, last_ms, has_end=False)


def _of_node(rows: Sequence[Event], last_ms: int) -> Iterator[Period]:
    """Loads, members that its list lacks, faults, and calls that failed until one succeeded."""
    open_: dict[tuple[str, str], tuple[int, str]] = {}
    members: set[str] = set()
    for event in rows:
        if event.kind in RESET_KINDS:
            yield from (Period(kind, text, since, event.at_ms) for (kind, _), (since, text) in open_.items())
            open_.clear()
            members = set()
        for key, text, is_over in _states(event, members):
            if is_over and key in open_:
                since, begun = open_.pop(key)
                yield Period(key[0], begun, since, event.at_ms)
            elif not is_over:
                open_.setdefault(key, (event.at_ms, text))
    yield from (Period(kind, text, since, last_ms, has_end=False) for (kind, _), (since, text) in open_.items())


def _states(event: Event, members: set[str]) -> Iterator[tuple[tuple[str, str], str, bool]]:
    """What begins or ends with an event: kind and subject, in words, and whether it ends."""
    peer = event.peer or ""
    if event.kind is Kind.MEMBERS_CHANGED:
        listed = set(filter(None, (event.detail or "").split(",")))
        yield from ((("member", each), "", True) for each in listed)
        yield from ((("member", each), f"{each} is not in its list", False) for each in sorted(members - listed))
        members |= listed
    elif event.kind is Kind.LINK_FAULT and event.detail in (*_ENDS, *_ENDS.values()):
        what = _ENDS.get(event.detail, event.detail)
        subject = event.client or peer
        yield ("fault", what + subject), f"{what} {subject}".strip(), event.detail in _ENDS
    elif event.kind is Kind.REQUEST_SENT and event.operation == "SNAPSHOT":
        yield ("loading", ""), f"loads from {peer}", False
    elif event.kind is Kind.REPLY_RECEIVED:
        succeeded = event.outcome is Outcome.SUCCESS
        if event.operation == "SNAPSHOT":
            yield ("loading", ""), "", succeeded
        elif event.operation in ("CHANGE", "DELETE"):
            yield (
                ("link", peer),
                f"calls to {peer} fail: {event.operation} of {event.client}, {event.outcome}",
                succeeded,
            )


def _of_clients(
    scale: Scale,
    by_node: Mapping[str, Sequence[Event]],
    clients: Sequence[str],
    bad: Sequence[Bad],
    last_ms: int,
) -> Iterator[Lane]:
    for client in clients:
        forms: dict[str, int] = {}
        for node, rows in sorted(by_node.items()):
            own = [event for event in rows if event.client == client or event.kind in RESET_KINDS]
            held = [scale.bar(period, 0) for period in _longest(_contents(own, client, forms, last_ms))]
            wrong = [_period(each, last_ms) for each in bad if (each.client, each.node) == (client, node)]
            if held or wrong:
                yield Lane(client, node, (*held, *scale.bars(wrong)))


def _contents(rows: Sequence[Event], client: str, forms: dict[str, int], last_ms: int) -> Iterator[Period]:
    """For how long the node held the client in which form; the same form has the same colour on every node."""
    now: tuple[int, str, str] | None = None
    for event in rows:
        is_end = event.kind in (*GONE_KINDS, *RESET_KINDS) or (event.kind is Kind.OBSERVED and event.digest is None)
        if not is_end and (event.kind not in HELD_KINDS or event.digest is None):
            continue
        if now is not None and (is_end or now[1] != event.digest):
            yield Period(_form(forms, now[1]), now[2], now[0], event.at_ms)
            now = None
        if not is_end and now is None and event.digest is not None:
            whose = {True: "its own", False: "a copy", None: "whose is not known"}[event.owned]
            revision = "" if event.revision is None else f", revision {event.revision}"
            now = (event.at_ms, event.digest, f"holds {client}, {whose}{revision}, content {shortened(event.digest)}")
    if now is not None:
        yield Period(_form(forms, now[1]), now[2], now[0], last_ms, has_end=False)


def _form(forms: dict[str, int], digest: str) -> str:
    return f"form{forms.setdefault(digest, len(forms)) % FORMS}"
