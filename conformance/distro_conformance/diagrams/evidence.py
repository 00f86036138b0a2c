"""The lines that a check of one node noted (`node/kit.py`), as a sequence diagram.

A line is `7000 ms: 127.0.0.1:8848 -> 127.0.0.1:9848: CHANGE of …, answered with success`, or `… sends CHANGE of …:` and
the answer; every other note is an action of the client. Ids of clients are long, so the clients are numbered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from distro_conformance.diagrams.sequence import Delivery, Fault, Item, Message, Note, Sequence

CLIENT, NO_BREAK = "client", "\N{NO-BREAK SPACE}"
CLIENT_ID = re.compile(r"\d{13}_[\d.]+_\d+|[\d.]+:\d+#(?:true|false)")
"""An id in a text: of a client with a connection, or of one of the HTTP API."""
_LINE = re.compile(r"(-?\d+) ms: (.*)", re.DOTALL)
_OF_NODE = re.compile(r"(\S+:\d+) -> (\S+:\d+): (.*), answered with (success|failure)", re.DOTALL)
_TO_NODE = re.compile(r"(\S+:\d+) sends (.*): ((success|failure) \(.*\))", re.DOTALL)


def sequence_of_evidence(lines: Iterable[str], node: str, bad: str, client: str | None = None) -> Sequence:
    """`node`: the address of the one under test; `bad`: the finding at the end, about `client`, which is c1."""
    numbers: dict[str, str] = {} if client is None else {client: "c1"}

    def named(text: str) -> str:
        return CLIENT_ID.sub(lambda found: numbers.setdefault(found[0], f"c{len(numbers) + 1}"), text)

    items = [item for line in lines if (item := _item(named(line), node)) is not None]
    items.append(Fault(named(bad), bad=True))
    ends = dict.fromkeys(end for item in items for end in _ends(item))
    members = sorted(end for end in ends if end not in (CLIENT, node))
    return Sequence((*([CLIENT] if CLIENT in ends else []), node, *members), tuple(items))


def _item(line: str, node: str) -> Item | None:
    timed = _LINE.fullmatch(line)
    if timed is None:
        return None
    at, text = f"{timed[1]} ms", timed[2]
    if sent := _OF_NODE.fullmatch(text):
        delivery = Delivery.ARRIVED if sent[4] == "success" else Delivery.FAILED
        return Message(node, sent[2], sent[3], delivery, f"{at}, answered with {sent[4]}")
    if request := _TO_NODE.fullmatch(text):
        is_success = request[4] == "success"  # then the type of the answer adds nothing
        delivery = Delivery.ARRIVED if is_success else Delivery.FAILED
        return Message(
            request[1], node, request[2], delivery, f"{at}, answered with {request[4] if is_success else request[3]}"
        )
    return Note(CLIENT, f"{text}, {at.replace(' ', NO_BREAK)}")


def _ends(item: Item) -> tuple[str, ...]:
    return (item.source, item.target) if isinstance(item, Message) else (item.at,) if isinstance(item, Note) else ()
