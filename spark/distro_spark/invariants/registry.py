"""An invariant of `check`: a sentence, and the functions over a timeline that find its violations.

A finder sees all rows of some whole clients (`timeline`), or, `of_nodes`, the nodes' own rows in a timeline without
clients. It gives one row for each violation:

    g, first, last     the node that violates; the row with which the violation begins, and the row that shows it
                       (`Timeline.rows`, or -1 - place in `Cluster.marks`); `first` may be null where the trace shows
                       no beginning
    after              the message that preceded the violation, or null; without this column that of `last`
    NAME_row           the number of a further row, or null; that row is NAME
    any other column   evidence, under that name; what begins with `_` is used only in the sentences

The sentences of a finder, what the violation is and what is expected instead, are filled in with these, with `first`
and `last` as rows, and with client and node. Of `[one|other]` the first is taken, or where one of its values is
missing the other, or nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import polars as pl

from distro_spark.needs import Needs
from distro_spark.timeline import Timeline

Find = Callable[[Timeline], pl.DataFrame]


@dataclass(frozen=True, slots=True)
class Finder:
    find: Find
    says: str
    expects: str
    of_nodes: bool


@dataclass(frozen=True, slots=True)
class Invariant:
    """`needs_checkpoint`: cannot be judged without one; `needs_end`: later rows may excuse a violation; `not_on`:
    pattern of the profiles that it does not apply to; `differ_by`: what violations that begin with the same event
    differ in, `last_seq` or a name of evidence."""

    name: str
    text: str
    needs: Needs
    needs_checkpoint: bool = False
    needs_end: bool = False
    not_on: re.Pattern[str] | None = None
    differ_by: str = "peer"
    finders: list[Finder] = field(default_factory=list)

    def found_by(self, says: str, expects: str, *, of_nodes: bool = False) -> Callable[[Find], Find]:
        """The function below finds violations of it."""

        def added(find: Find) -> Find:
            self.finders.append(Finder(find, says, expects, of_nodes))
            return find

        return added

    def applies_to(self, profile: str) -> bool:
        return self.not_on is None or self.not_on.search(profile) is None


def filled(sentence: str, values: Mapping[str, object]) -> str:
    """The sentence with these values."""

    def chosen(part: re.Match[str]) -> str:
        one, _, other = part[1].partition("|")
        return other if any(values[name] is None for name in re.findall(r"{(\w+)", one)) else one

    return re.sub(r"\[([^]]*)\]", chosen, sentence).format_map(values)
