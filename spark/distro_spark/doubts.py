"""Why a check is inconclusive: what was not recorded, or was not judged. The sentences that a verdict comes with.

A run that adds nothing to a verdict is named: one without rows, one of which nothing that it was asked for could be
judged, one whose recording contradicts itself. Else it would count as a run that conforms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from distro_spark.cluster import Cluster
from distro_spark.invariants.registry import Invariant
from distro_spark.result import InvariantResult
from distro_traces.invalid import InvalidRecording
from distro_traces.invalid import doubled as doubled_rows
from distro_traces.invalid import missing as missing_rows

CHECKPOINT = (
    "a moment of rest at which all nodes should agree: simulate, test and gate record it, logs have none; "
    "for live servers, audit shows whether they agree"
)
"""Names the checkpoint that a run lacks when its end state is not judged."""

INVALID_MAX = 3
"""Limit of the runs that are named with the reason why they are not judged."""


def without_checkpoint(cluster: Cluster) -> list[str]:
    there = set(cluster.checks["run"])
    return [run for run in cluster.of_run if run not in there]


def with_unreached_checkpoint(cluster: Cluster) -> list[str]:
    """The runs in which a node that is up, or of which nothing is known, has no row of a checkpoint: its end state is
    not compared."""
    unreached = {run for run, _ in cluster.unreached}
    with_one = set(cluster.checks["run"])
    return sorted(unreached | (with_one & cluster.partial))


def of_invalid(invalid: Mapping[str, InvalidRecording]) -> Iterator[str]:
    for run, fault in islice(invalid.items(), INVALID_MAX):
        yield f"run {run} is not judged: {fault}"
    if len(invalid) > INVALID_MAX:
        yield f"{len(invalid) - INVALID_MAX} further runs are not judged for such reasons"


def without_events(headers: Iterable[str], cluster: Cluster) -> Iterator[str]:
    """`headers`: the runs that were read; `cluster`: with invalid ones."""
    runs = list(headers)
    empty = [run for run in runs if run not in cluster.of_run]
    if len(empty) == len(runs):
        yield "there is no event"
    elif empty:
        yield f"{_of(empty, runs)}, have no event"
    if cluster.of_run and not cluster.nodes["client_rows"].sum():
        yield "no event is about a client"


def doubts(cluster: Cluster, quarantined: int, chosen: Sequence[Invariant], named: Sequence[str]) -> Iterator[str]:
    """`cluster`: without invalid runs. `chosen`: the invariants that were evaluated; `named`: those asked for by name,
    empty if all are evaluated."""
    if quarantined:
        yield f"{quarantined} rows do not fit the schema"
    if cluster.missing:
        yield missing_rows(sum(cluster.missing.values()))
    if cluster.doubled:
        yield doubled_rows(cluster.doubled)
    nameless = [run for run in cluster.of_run if not cluster.headers[run].names_release]
    if nameless:
        yield (
            f"{_of(nameless, cluster.of_run)}, are not judged: their logs name "
            "no release, or several, and which failures are known depends on it; import them with --profile nacos-X.Y.Z"
        )
    yield from _of_checkpoints(cluster, [each.name for each in chosen if each.needs_checkpoint])
    yield from _unobserved(cluster, chosen, named)


def _of_checkpoints(cluster: Cluster, blind: Sequence[str]) -> Iterator[str]:
    without, unreached = without_checkpoint(cluster), with_unreached_checkpoint(cluster)
    if blind and without:
        which = f"{_of(without, cluster.of_run)}, have no checkpoint"
        whole = len(without) == len(cluster.of_run)
        yield f"{', '.join(blind)} cannot be judged: {'no run has a checkpoint' if whole else which} ({CHECKPOINT})"
    if blind and unreached:
        which = f"{_of(unreached, cluster.of_run)}, have a checkpoint without a row of each node that was up"
        yield f"{', '.join(blind)} cannot be judged: {which}"


def _unobserved(cluster: Cluster, chosen: Sequence[Invariant], named: Sequence[str]) -> Iterator[str]:
    """Of each invariant that is named the runs that it did not judge, else the runs that none has judged."""
    runs = [run for run in cluster.of_run if cluster.headers[run].names_release]
    blind: dict[str, list[str]] = {}
    for each in chosen:
        judged = {cluster.runs[g] for g in cluster.judged[each.name]}
        blind[each.name] = [run for run in runs if run not in judged]
        applies = [run for run in blind[each.name] if each.applies_to(cluster.headers[run].profile)]
        if each.name in named and applies:
            where = "" if len(applies) == len(cluster.of_run) else f" in {_of(applies, cluster.of_run)}"
            yield f"{each.name} cannot be judged{where}: it needs {each.needs}, which was not observed"
    profiles = {cluster.headers[run].profile for run in runs}
    if profiles and not any(each.applies_to(profile) for each in chosen for profile in profiles):
        names = ", ".join(each.name for each in chosen)
        yield f"{names} cannot be judged: not required of {', '.join(sorted(profiles))}"
    nothing = [] if named else sorted(set(runs).intersection(*blind.values()))
    if nothing:
        yield f"{_of(nothing, cluster.of_run)}, are not judged: no invariant has the rows that it needs"


def of_results(results: Iterable[InvariantResult], uncovered: Mapping[str, int]) -> Iterator[str]:
    for each in results:
        if each.unexplained:
            yield f"{each.unexplained} violations of {each.name} are too many to be compared with the known failures"
    for name, count in uncovered.items():
        yield f"{count} violations of {name} are not judged: in their time logs are missing that might say otherwise"


def _of(some: Sequence[str], runs: Sequence[str] | Mapping[str, object]) -> str:
    return f"{len(some)} of {len(runs)} runs, {some[0]} for one"
