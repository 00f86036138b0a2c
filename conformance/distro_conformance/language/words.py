"""The words of one line of a scenario: taken from the left; each method names the missing word."""

from __future__ import annotations

import re

from distro_model.actions import OPERATIONS
from distro_protos.addresses import is_ip_and_port

_WEIGHT = re.compile(r"(?!1$)(0|[1-9]\d*)(\.\d*[1-9])?")
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000}


class Words:
    """The arguments of one line, taken from the left; each method names the missing word."""

    def __init__(self, verb: str, words: list[str], nodes: tuple[str, ...]) -> None:
        self._verb = verb
        self._rest = list(words)
        self._nodes = nodes

    def word(self, what: str) -> str:
        if not self._rest:
            raise ValueError(f"'{self._verb}' misses its {what}")
        return self._rest.pop(0)

    def node(self) -> str:
        return self.known(self.word("node"))

    def link(self) -> tuple[str, str]:
        source, arrow, target = self.word("link").partition("->")
        if not arrow:
            raise ValueError(f"'{self._verb}' takes a link such as a->b")
        if source == target:
            raise ValueError("a link has two ends")
        return self.known(source), self.known(target)

    def operation(self) -> str | None:
        if not self._rest:
            return None
        operation = self._rest.pop(0)
        if operation not in OPERATIONS:
            raise ValueError(f"'{operation}' is no operation; known are {', '.join(OPERATIONS)}")
        return operation

    def optional(self) -> str | None:
        return self._rest.pop(0) if self._rest else None

    def keyword(self, word: str) -> None:
        if self.word(f"'{word}'") != word:
            raise ValueError(f"'{self._verb}' expects '{word}' there")

    def node_after(self, word: str) -> str:
        self.keyword(word)
        return self.node()

    def nodes_after(self, word: str, *until: str) -> tuple[str, ...]:
        """One or more, in the order in which they are named."""
        named = [self.node_after(word)]
        while self._rest and self._rest[0] not in until:
            named.append(self.node())
        return tuple(named)

    @property
    def is_more(self) -> bool:
        return bool(self._rest)

    def takes(self, word: str) -> bool:
        """Whether the next word is this one, which is then taken."""
        if not self._rest or self._rest[0] != word:
            return False
        self._rest.pop(0)
        return True

    def nodes(self) -> tuple[str, ...]:
        """All that are left, one at least."""
        named = [self.node()]
        while self._rest:
            named.append(self.node())
        return tuple(sorted(named))

    def clients(self) -> tuple[str, ...]:
        """All that are left, one at least."""
        named = [self.word("client")]
        while self._rest:
            named.append(self.word("client"))
        return tuple(sorted(named))

    def instance(self, until: str | None = None) -> str:
        """`ip:port key=value …` up to a word or the end; the keys in order, so that equal instances are equal texts.

        `cluster=…` names its cluster, which is DEFAULT otherwise; `weight=…` is 1 and `enabled=…` true otherwise.
        """
        address = self.word("instance")
        if not is_ip_and_port(address):
            raise ValueError(f"'{address}' is no instance such as 10.0.0.1:80 or [2001:db8::1]:80")
        end = self._rest.index(until) if until in self._rest else len(self._rest)
        metadata, self._rest = sorted(self._rest[:end]), self._rest[end:]
        if any("=" not in pair for pair in metadata):
            raise ValueError("metadata is written key=value")
        for key, value in (pair.split("=", 1) for pair in metadata):
            if key == "weight" and not _WEIGHT.fullmatch(value):
                raise ValueError(f"weight={value}: a weight is a number such as 2.5, and 1 is left out")
            if key == "enabled" and value != "false":
                raise ValueError(f"enabled={value}: an instance is enabled unless it has enabled=false")
        return " ".join([address, *metadata])

    def instances(self) -> tuple[str, ...]:
        """`INSTANCE and INSTANCE …`, or `nothing`; sorted."""
        if self.takes("nothing"):
            return ()
        found = [self.instance("and")]
        while self.takes("and"):
            found.append(self.instance("and"))
        return tuple(sorted(found))

    def batch(self) -> tuple[str, ...]:
        """`INSTANCE, INSTANCE …`"""
        parts = [Words(self._verb, part.split(), self._nodes) for part in " ".join(self._rest).split(",")]
        self._rest = []
        if len(parts) < 2:
            raise ValueError("a batch has two or more instances, with commas between them")
        return tuple(sorted(part.instance() for part in parts))

    def published(self) -> str:
        """`INSTANCE`, or a batch, up to `and` or the end."""
        end = self._rest.index("and") if "and" in self._rest else len(self._rest)
        words = Words(self._verb, self._rest[:end], self._nodes)
        is_batch = any("," in word for word in self._rest[:end])
        self._rest = self._rest[end:]
        return ", ".join(words.batch()) if is_batch else words.instance()

    def end(self) -> None:
        if self._rest:
            raise ValueError(f"'{self._verb}' does not take '{' '.join(self._rest)}'")

    def known(self, node: str) -> str:
        if node not in self._nodes:
            raise ValueError(f"there is no node '{node}'; the nodes are {' '.join(self._nodes)}")
        return node


def duration_ms(text: str) -> int:
    """Read `300ms`, `2.5s` or `3m`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m)", text)
    if match is None or (value := float(match[1]) * _UNITS_MS[match[2]]) != int(value):
        raise ValueError(f"'{text}' is no duration such as 300ms, 2.5s or 3m")
    return int(value)


def render_duration(ms: int) -> str:
    return f"{ms}ms" if ms % 100 else f"{ms / 1000:g}s"
