"""`check --follow`: violations in recordings that are still being written, as soon as they can be decided.

Each round judges the runs that have grown, from their beginning, in this process. Violations go to the sinks, which
store each one once; so a follower that dies loses none, and a restarted one adds none twice.

Only the part of a run is judged in which later rows cannot revoke a violation:

* a run in which sequence numbers are missing, beyond its lines in quarantine, waits until they are there;
* an invalid recording is never judged, and a `check` of the whole reports the reason;
* its last checkpoint counts once every node that was up then has reached it.

The cost of a round grows with the run: nearly every invariant needs a client's whole past. So a long run is judged
again when it has grown by a tenth since the last round, or when no more rows come; all rounds together then cost at
most eleven times as much as a check of the whole.

A violation can have more evidence when more of the run is known (a divergence that lasts for further checkpoints); its
id stays. Violations that depend on the end of a run (`Invariant.needs_end`, a checkpoint that a node never reaches) are
found by a `check` of the whole into the same sinks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import polars as pl

from distro_spark.check import chosen_invariants, surveyed
from distro_spark.cluster import Cluster, cluster_of
from distro_spark.local import Local
from distro_spark.sinks import Sink, add_to_all
from distro_spark.tally import covered, violations
from distro_traces.ndjson import SUFFIX, read_header
from distro_traces.places import below

LOOK_S = 1.0
QUIET_S = 10.0
"""After this time without new rows, postponed runs are judged."""

SMALL_BYTES, GROWTH = 64 << 20, 0.1
"""A run of fewer bytes is judged whenever it has grown; a larger one when it has grown by this share."""

OnViolations = Callable[[pl.DataFrame], None]


def follow(
    directory: Path,
    *,
    invariants: Sequence[str] | None = None,
    sinks: Sequence[Sink] = (),
    on_violations: OnViolations = lambda _: None,
    idle_s: float | None = None,
) -> None:
    """Add to `sinks` the decided violations of the recordings below `directory`, until no row was written for `idle_s`.

    `on_violations` gets the violations that were not there before. `idle_s` None: for ever. Raises SinkError,
    UnknownInvariantError, and the TraceError family.
    """
    chosen = [each.name for each in chosen_invariants(invariants) if not each.needs_end]
    seen: dict[str, int] = {}  # bytes of a run when it was last judged
    sizes: dict[str, int] = {}
    grew = time.monotonic()
    while True:
        files = _recordings(directory)
        now = {run: sum(file.stat().st_size for file in of_run) for run, of_run in files.items()}
        if now != sizes:
            sizes, grew = now, time.monotonic()
        quiet_s = time.monotonic() - grew
        is_over = idle_s is not None and quiet_s >= idle_s
        for run, size in sizes.items():
            grown = size > seen.get(run, 0)
            if grown and (
                is_over or quiet_s >= QUIET_S or size < SMALL_BYTES or size >= seen.get(run, 0) * (1 + GROWTH)
            ):
                seen[run] = size
                added = add_to_all(sinks, decided(files[run], chosen))
                if added.height:
                    on_violations(added)
        if is_over:
            return
        time.sleep(LOOK_S)


def _recordings(directory: Path) -> Mapping[str, Sequence[Path]]:
    """By run its files that have a header already; hidden files and folders are skipped."""
    found: dict[str, list[Path]] = {}
    for path in sorted(below(directory, (SUFFIX,))):
        found.setdefault(read_header(path).run, []).append(path)
    return found


def decided(files: Sequence[Path], chosen: Sequence[str]) -> pl.DataFrame:
    """The violations that no later row can revoke, of the runs in these files, in times that their logs cover."""
    engine = Local(files)
    cluster, invalid = surveyed(engine)
    good = settled(cluster.without([*cluster.missing, *invalid]))
    return covered(pl.concat(violations(engine, good, chosen, dict.fromkeys(chosen, 0.0))), good)[0]


def settled(cluster: Cluster) -> Cluster:
    """Without the last checkpoint of a run while a node that was up then has not reached it."""
    last = cluster.checks.filter(pl.col("ordinal") == pl.col("ordinal").max().over("run"))
    is_open = [check in cluster.unreached for check in last.select("run", "ordinal").iter_rows()]
    marks = cluster.marks.join(last.filter(pl.Series(is_open, dtype=pl.Boolean)), "mark", how="anti").drop("g")
    return cluster_of(cluster.nodes.drop("g"), marks, cluster.headers, cluster.needs, cluster.aside)
