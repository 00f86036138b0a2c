"""What a recording could show, so that nobody takes for absent what nobody looked at.

A trace of everything and a trace of one node's log have the same columns. The difference stands in the header: whose
state was recorded and how, which end of which directed link, which operations, which values, and whether rows may be
missing without a sign. A check that needs more than was observed answers "cannot decide".

Nodes and links are patterns: `*` stands for every node, also for one that joins later; a link is `source->target`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from itertools import product
from typing import Any

EVERY = "*"
ARROW = "->"
OPERATIONS = ("CHANGE", "DELETE", "VERIFY", "SNAPSHOT", "QUERY")
VALUES = ("owned", "revision", "digest")


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The default is everything, as a reference node and the links around it show it.

    reported    nodes that say every change of their state themselves
    inferred    nodes whose state follows from what they acknowledged, corrected by probes: right at a probe, and
                between probes as far as INV-ACK holds
    sent        links whose source end is recorded: `request_sent`, `reply_received`
    received    links whose target end is recorded: `request_received`, `reply_sent`
    operations  of which calls there are rows
    values      which columns the state rows of the nodes above carry where they apply
    lossless    no row is missing, save those after the last; false: the absence of a row proves nothing
    limits      a sentence for each thing that this recording cannot show and the fields above do not say
    """

    reported: tuple[str, ...] = (EVERY,)
    inferred: tuple[str, ...] = ()
    sent: tuple[str, ...] = (EVERY + ARROW + EVERY,)
    received: tuple[str, ...] = (EVERY + ARROW + EVERY,)
    operations: tuple[str, ...] = OPERATIONS
    values: tuple[str, ...] = VALUES
    lossless: bool = True
    limits: tuple[str, ...] = ()

    def state_of(self, node: str) -> bool:
        """Are there rows about what `node` holds?"""
        return any(pattern in (EVERY, node) for pattern in (*self.reported, *self.inferred))

    def contents_of(self, node: str) -> bool:
        """Do these rows say in which form? Without a digest one says that nothing is held."""
        return self.state_of(node) and "digest" in self.values

    def reports(self, node: str) -> bool:
        """Does `node` say every change of its state itself?"""
        return any(pattern in (EVERY, node) for pattern in self.reported)

    def sending(self, source: str, target: str) -> bool:
        """Are calls from `source` to `target` recorded where they leave and where their answer arrives?"""
        return _matches(self.sent, source, target)

    def receiving(self, source: str, target: str) -> bool:
        """Are calls from `source` to `target` recorded where they arrive and where they are answered?"""
        return _matches(self.received, source, target)

    def to_json(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


EVERYTHING = Observed()
INFERRED = Observed(reported=(), inferred=(EVERY,))
"""Real servers between recording links, read by probes."""


def parse_observed(found: object) -> Observed:
    """Read the JSON form. Raises ValueError that names the field."""
    if not isinstance(found, Mapping):
        raise ValueError("observed is no object")
    values: dict[str, Any] = {}
    for field in fields(Observed):
        value = found.get(field.name)
        if field.name == "lossless":
            fits = isinstance(value, bool)
        else:
            fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
        if not fits:
            raise ValueError(f"observed.{field.name} is missing or of another type")
        values[field.name] = tuple(value) if isinstance(value, list) else value
    return Observed(**values)


def link(source: str, target: str) -> str:
    """The directed link in the form that `sent` and `received` list."""
    return source + ARROW + target


def _matches(patterns: tuple[str, ...], source: str, target: str) -> bool:
    return any(link(left, right) in patterns for left, right in product((EVERY, source), (EVERY, target)))
