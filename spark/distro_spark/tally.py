"""The violations of a check: evaluated for some whole clients at a time, counted, and listed up to a limit.

There may be more violations than fit into memory. So an engine returns them in parts. Each part is added to the sinks,
and a `Tally` keeps only the data that the result needs.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import polars as pl

from distro_spark.arrow import gathered
from distro_spark.cluster import Cluster
from distro_spark.engine import PART_ROWS, RESULTS_AT_ONCE, Engine, Judge
from distro_spark.invariants import NEEDS
from distro_spark.sinks import Sink, add_to_all
from distro_spark.violations import VIOLATION_COLUMNS, violations_in, violations_of_nodes

LISTED_MAX = 200
"""The number of violations that are listed per invariant; further ones are only counted."""


def violations(
    engine: Engine, cluster: Cluster, chosen: Sequence[str], seconds: dict[str, float]
) -> Iterator[pl.DataFrame]:
    """The violations, in `VIOLATION_COLUMNS`, in parts that fit into memory. The time that each invariant took is added
    to `seconds`; if tasks do not report it, all invariants get an equal share."""
    began = time.perf_counter()
    judge: Judge = lambda part: violations_in(part, cluster, chosen, seconds)  # noqa: E731
    of_clients = engine.of_clients(cluster, judge, VIOLATION_COLUMNS, PART_ROWS)
    parts = chain([violations_of_nodes(cluster, chosen)], of_clients)
    yield from map(pl.concat, gathered(parts, lambda part: part.height, RESULTS_AT_ONCE))
    if not any(seconds.values()):
        seconds.update(dict.fromkeys(chosen, (time.perf_counter() - began) / len(chosen)))


@dataclass
class Tally:
    """The data about violations that the result needs.

    `counts`: by invariant the numbers of `all`, `known` and `unexplained` violations, and of `clients`. `listed`: new
    violations before known ones, and first one of each client and node. `uncovered`: the numbers of violations that are
    not judged (`covered`).
    """

    counts: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    listed: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=VIOLATION_COLUMNS))
    uncovered: Counter[str] = field(default_factory=Counter)


def tallied(parts: Iterable[pl.DataFrame], cluster: Cluster, sinks: Sequence[Sink]) -> Tally:
    """Count the violations in parts of whole clients, and add them to the sinks."""
    tally = Tally()
    order = (pl.col("known").fill_null(""), "run", "first_at_ms", "client", "node", "last_at_ms", "message")
    for part in parts:
        found, uncovered = covered(part, cluster)
        tally.uncovered.update(uncovered)
        add_to_all(sinks, found)
        counts = found.group_by("invariant").agg(
            all=pl.len(),
            known=pl.col("known").count(),
            unexplained=(~pl.col("explained")).sum(),
            clients=pl.struct("run", "client").filter(pl.col("client") != "").n_unique(),
        )
        for row in counts.iter_rows(named=True):
            tally.counts[row.pop("invariant")].update(row)
        both = pl.concat([tally.listed, found.filter("explained")]).sort(order)
        tally.listed = both.group_by("invariant", maintain_order=True).head(LISTED_MAX)
    return tally


def covered(found: pl.DataFrame, cluster: Cluster) -> tuple[pl.DataFrame, Counter[str]]:
    """The violations for which all rows that the invariant needs were recorded, and by invariant the number of
    others."""

    def is_covered(row: Mapping[str, Any]) -> bool:
        observed, needs = cluster.headers[row["run"]].observed, NEEDS[row["invariant"]]
        if not observed.covered:
            return True
        members = [cluster.names[g] for g in cluster.of_run[row["run"]]] if needs.everywhere else [row["node"]]
        return needs.covered(observed, members, row["first_at_ms"], row["last_at_ms"])

    if not any(cluster.headers[run].observed.covered for run in cluster.of_run):
        return found, Counter()
    rows = found.iter_rows(named=True)
    kept = pl.Series([is_covered(row) for row in rows], dtype=pl.Boolean)
    return found.filter(kept), Counter(found.filter(~kept)["invariant"].to_list())
