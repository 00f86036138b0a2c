"""The facts that a recording could show: an unobserved fact must not be taken for absent.

A trace of a whole cluster and a trace of one node's log have the same columns. The header declares the difference:
whose state was recorded and how, which end of which directed link, which operations, which values, and whether rows may
be missing without a sign. A check that needs more than was observed answers "cannot decide".

Nodes and links are patterns: `*` stands for every node, also for one that joins later; a link is `source->target`.

A recording made from files shows each kind of fact only where the file was read, at the level that contains it, and
only in the time from its first to its last record. `covered` lists these spans. A conclusion from the absence of rows
(no DELETE arrived, no other node has the client, it was never applied) needs the fact to be covered on that node during
the whole time that the conclusion is about: ask `covers`. What is not covered is unknown, never absent.
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
FACTS = ("members", "loads", "sent", "received", "verifies", "state", "owned", "revision")
"""What a recording may cover of a node. members: changes of its member list. loads: its starts and the snapshots that
it asks for. sent: the CHANGE and DELETE calls that it makes, and how they end. received: those that arrive. verifies:
each VERIFY that arrives. state: which clients it holds with which content. owned: whether a client is its own or a
copy, and whether a DELETE removed it. revision: of its copies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """On `node`, rows about `fact` (one of FACTS) are complete from `from_ms` to `until_ms`, as far as files say."""

    node: str
    fact: str
    from_ms: int
    until_ms: int


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
    covered     for each node the kinds of facts of which a missing row means something, and from when until when (ms):
                the file was read, at the level that contains them. Empty: as the fields above say, at all times
    limits      a sentence for each thing that this recording cannot show and the fields above do not say
    """

    reported: tuple[str, ...] = (EVERY,)
    inferred: tuple[str, ...] = ()
    sent: tuple[str, ...] = (EVERY + ARROW + EVERY,)
    received: tuple[str, ...] = (EVERY + ARROW + EVERY,)
    operations: tuple[str, ...] = OPERATIONS
    values: tuple[str, ...] = VALUES
    lossless: bool = True
    covered: tuple[Covered, ...] = ()
    limits: tuple[str, ...] = ()

    def state_of(self, node: str) -> bool:
        """Are there rows about what `node` holds?"""
        return any(pattern in (EVERY, node) for pattern in (*self.reported, *self.inferred))

    def contents_of(self, node: str) -> bool:
        """Do these rows say in which form? Without a digest one says that nothing is held."""
        return self.state_of(node) and self.covers(node, "state") and ("digest" in self.values or bool(self.covered))

    def covers(self, node: str, fact: str, from_ms: int | None = None, until_ms: int | None = None) -> bool:
        """May the absence of rows about `fact` on `node` be taken for its absence, from `from_ms` to `until_ms`?

        Without times: at any time at all. Where nothing is listed as covered, the other fields decide.
        """
        if not self.covered:
            return self._covers_always(node, fact)
        return any(
            (each.node, each.fact) == (node, fact)
            and (from_ms is None or each.from_ms <= from_ms)
            and (until_ms is None or until_ms <= each.until_ms)
            for each in self.covered
        )

    def covers_to_end(self, node: str, fact: str, from_ms: int) -> bool:
        """The same from `from_ms` to the end of what was recorded of the node, without a gap. Where nothing is listed,
        rows themselves are all that is known."""
        if not self.covered:
            return True
        until_ms = self.until_ms(node, fact)
        return self.covers(node, fact, from_ms, until_ms)

    def until_ms(self, node: str, fact: str) -> int | None:
        """When the last span of the fact ends; null where no spans are listed."""
        return max((each.until_ms for each in self.covered if (each.node, each.fact) == (node, fact)), default=None)

    def _covers_always(self, node: str, fact: str) -> bool:
        match fact:
            case "state":
                return self.state_of(node) and "digest" in self.values
            case "owned" | "revision":
                return fact in self.values
            case "sent":
                return self.sending(node, EVERY)
            case "received":
                return self.receiving(EVERY, node)
            case "loads":
                return "SNAPSHOT" in self.operations
            case "verifies":
                return "VERIFY" in self.operations and self.receiving(EVERY, node)
        return True

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
        found = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        if not self.covered:
            del found["covered"]
        return found


EVERYTHING = Observed()
INFERRED = Observed(
    reported=(),
    inferred=(EVERY,),
    limits=("calls that fail at their sender, which has no connection to its peer, and so never come to the link",),
)
"""Real servers between recording links, read by probes. Of a call without a connection only its sender's log may have a
record (`[DISTRO] Sync data change failed`), so a DELETE that such a call swallows (B24) counts as new in a recording.
"""


def parse_observed(found: object) -> Observed:
    """Read the JSON form. Raises ValueError that names the field."""
    if not isinstance(found, Mapping):
        raise ValueError("observed is no object")
    values: dict[str, Any] = {}
    for field in fields(Observed):
        value = found.get(field.name)
        if field.name == "covered":
            values["covered"] = tuple(map(_covered, value or ()))
            continue
        if field.name == "lossless":
            fits = isinstance(value, bool)
        else:
            fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
        if not fits:
            raise ValueError(f"observed.{field.name} is missing or of another type")
        values[field.name] = tuple(value) if isinstance(value, list) else value
    return Observed(**values)


def _covered(found: object) -> Covered:
    types = {"node": str, "fact": str, "from_ms": int, "until_ms": int}
    if isinstance(found, Mapping) and all(type(found.get(name)) is kind for name, kind in types.items()):
        return Covered(**{name: found[name] for name in types})
    raise ValueError("observed.covered has an entry that is no span of a fact")


def link(source: str, target: str) -> str:
    """The directed link in the form that `sent` and `received` list."""
    return source + ARROW + target


def _matches(patterns: tuple[str, ...], source: str, target: str) -> bool:
    return any(link(left, right) in patterns for left, right in product((EVERY, source), (EVERY, target)))
