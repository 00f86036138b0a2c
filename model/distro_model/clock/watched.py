"""The calls that were observed to end while time passed, and the possible clusters that still match them.

A long time with refusing links has very many outcomes: at each failed verify a retry may meet the tick of its instant
or miss it, and every round adds some. All but a few are soon known to be wrong: they have a call that was not observed,
or lack one that was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from distro_model.clock.mutable_cluster import MutableCluster
from distro_model.clock.traffic import Ended, Traffic

SLACK_MS = 50
"""The tolerance between the end of a call and its observation: half a tick. The observer uses the same clock, on which
calls take no time, so of two retries that are a tick apart one is wrong."""


class Watched:
    """`ended` in order of time; `from_ms` is when the action began. Instants are passed in their order."""

    def __init__(self, ended: Sequence[Ended], from_ms: int) -> None:
        self._ended = [(from_ms + each.after_ms, each.call) for each in ended if each.call.is_seen]
        self._surely, self._possibly = Counter[Traffic](), Counter[Traffic]()
        self._surely_count = self._possibly_count = 0

    def nearest(self, clusters: list[MutableCluster], now_ms: int) -> list[MutableCluster]:
        """The clusters that match the observations until now; if none does, those that match best, for the report."""
        if len(clusters) < 2 or all(cluster.counted == clusters[0].counted for cluster in clusters):
            return clusters
        self._pass(now_ms)
        mismatches = [self._mismatches(cluster) for cluster in clusters]
        least = min(mismatches)
        return [cluster for cluster, count in zip(clusters, mismatches, strict=True) if count == least]

    def _pass(self, now_ms: int) -> None:
        self._surely_count = self._count(self._surely, self._surely_count, now_ms - SLACK_MS)
        self._possibly_count = self._count(self._possibly, self._possibly_count, now_ms + SLACK_MS)

    def _count(self, calls: Counter[Traffic], position: int, until_ms: int) -> int:
        while position < len(self._ended) and self._ended[position][0] <= until_ms:
            calls[self._ended[position][1]] += 1
            position += 1
        return position

    def _mismatches(self, cluster: MutableCluster) -> int:
        """The number of calls that it has and that were not observed, and of those that it lacks and that were."""
        had, surely, possibly = cluster.counted, self._surely, self._possibly
        too_many = sum(count - possibly[call] for call, count in had.items() if count > possibly[call])
        return too_many + sum(count - had.get(call, 0) for call, count in surely.items() if count > had.get(call, 0))
