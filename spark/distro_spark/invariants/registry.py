"""An invariant of `check`: one function over a timeline, and the sentences for its violations.

The function sees all rows of some whole clients (`timeline`) and gives one row for each violation:

    g, first, last     the node that violates; the row with which the violation begins, and the row that shows it
                       (`Timeline.rows`, or -1 - place in `Cluster.marks`); `first` may be null where the trace shows
                       no beginning
    after              the message that preceded the violation, or null; without this column that of `last`
    any other column   evidence, under that name; one that begins with `_` is used only in the
                       sentences

`says` and `expects` are filled in with these, with `first` and `last` as rows, and with client and node.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import polars as pl

from distro_spark.needs import Needs
from distro_spark.timeline import Timeline

__all__ = ["Invariant", "Needs"]
Find = Callable[[Timeline], pl.DataFrame]


@dataclass(frozen=True, slots=True)
class Invariant:
    """`of_nodes`: finds violations in the nodes' own rows, in a timeline without clients; `needs_checkpoint`: cannot be
    judged without one; `needs_end`: later rows may excuse a violation; `not_on`: pattern of the profiles that it does
    not apply to; `differ_by`: what violations that begin with the same event differ in, `last_seq` or a name of
    evidence."""

    name: str
    text: str
    find: Find | None = None
    says: str = ""
    expects: str = ""
    needs: Needs = field(default_factory=Needs)
    needs_checkpoint: bool = False
    needs_end: bool = False
    of_nodes: Find | None = None
    of_nodes_says: str = ""
    of_nodes_expects: str = ""
    not_on: re.Pattern[str] | None = None
    differ_by: str = "peer"

    def applies_to(self, profile: str) -> bool:
        return self.not_on is None or self.not_on.search(profile) is None
