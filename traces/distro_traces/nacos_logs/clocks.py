"""The differences between the clocks of the nodes, by the calls that one node logs as sent and another as received.

Both records of a call name the same operation, client and target, and are milliseconds apart. So the difference that
most calls have in common is that of the clocks, or of the time zones of the logs. Without the correction, calls
are not matched, and a known failure would be taken for a new one. A sample is enough: each node keeps the calls of the
same clients, those with a small hash.
"""

from __future__ import annotations

import statistics
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from distro_traces.nacos_logs.facts import Fact, What

CALLS_MIN = 3
"""So many calls must have a difference in common."""
SKEW_MS = 2000
"""A call received that much before it was sent is still the same call."""
AHEAD_MS_MIN = 1000
"""A smaller difference may be the time that a call takes, and is not corrected."""
_CALLS_MAX = 4096
_TIMES_MAX = 16
"""Times kept of one call, which may be repeated."""
_STEP_MS = 1000
_LATE_MS = 4000
"""A call times out after 3 s; one that arrives later may be any."""
_ON_THE_WAY_MS = 4000
"""What a call and one back may take together, by any clock."""

_Call = tuple[str, str, str]  # operation, client, target


@dataclass(slots=True)
class Calls:
    """A sample of the calls that one node logs. Times are since 1970."""

    sent: defaultdict[_Call, list[int]] = field(default_factory=lambda: defaultdict(list))
    received: defaultdict[_Call, list[int]] = field(default_factory=lambda: defaultdict(list))
    _limit: int = 1 << 32

    def take(self, fact: Fact) -> None:
        kept = self.sent if fact.what is What.CALL else self.received
        if zlib.crc32(fact["client"].encode()) >= self._limit:
            return
        operation = "DELETE" if fact["operation"].upper() == "DELETE" else "CHANGE"
        times = kept[operation, fact["client"], fact["target"]]
        if len(times) < _TIMES_MAX:
            times.append(fact.at_ms)
        if len(kept) > _CALLS_MAX:
            self._limit //= 2
            for calls in (self.sent, self.received):
                for call in [call for call in calls if zlib.crc32(call[1].encode()) >= self._limit]:
                    del calls[call]

    def add(self, other: Calls) -> None:
        self._limit = min(self._limit, other._limit)
        for mine, its in ((self.sent, other.sent), (self.received, other.received)):
            for call, times in its.items():
                mine[call] += times


@dataclass(frozen=True, slots=True)
class Ahead:
    """A node's clock is `ms` ahead of that of most nodes, according to `calls` calls."""

    ms: int
    calls: int

    def __str__(self) -> str:
        where = "ahead of" if self.ms > 0 else "behind"
        text = f"by {self.calls} calls its clock is {timedelta(seconds=round(abs(self.ms) / 1000))} h {where}"
        return f"{text} the others (another zone: --zone DIRECTORY=ZONE); its times are given by their clock"


def ahead(nodes: Sequence[Calls]) -> dict[int, Ahead]:
    """The nodes, by position, whose clock differs from that of most of those with which they exchange calls."""
    links: defaultdict[int, dict[int, Ahead]] = defaultdict(dict)
    for one in range(len(nodes)):
        for other in range(one + 1, len(nodes)):
            found = _between(nodes[one], nodes[other])
            if found is not None:
                links[one][other], links[other][one] = found, Ahead(-found.ms, found.calls)
    clocks = dict[int, Ahead]()
    for group in _groups(links):
        zero = statistics.median_low(each.ms for each in group.values())
        apart = {node: Ahead(each.ms - zero, each.calls) for node, each in group.items()}
        clocks |= {node: each for node, each in apart.items() if abs(each.ms) >= AHEAD_MS_MIN}
    return clocks


def unsteady(
    nodes: Sequence[Calls], clocks: Mapping[int, Ahead], first_ms: Sequence[int], *, is_whole: bool
) -> set[int]:
    """The nodes, by position, with calls that arrived before they were sent, also by the corrected clocks: the clock of
    one of the two was set while the logs were written, or there are too few calls to correct it.

    `first_ms`: the first stamp of each node, uncorrected. `is_whole`: there are logs of all members; else the sender
    of a change of a client of the HTTP API may be one of the others.
    """
    found = set[int]()
    ms = [0 if each not in clocks else clocks[each].ms for each in range(len(nodes))]
    began = [first - ms[one] for one, first in enumerate(first_ms)]
    for target, node in enumerate(nodes):
        for call, times in node.received.items():
            sent = [(at - ms[one], one) for one, each in enumerate(nodes) for at in each.sent.get(call, ())]
            if max(len(sent), len(times)) >= _TIMES_MAX or (not is_whole and "#" in call[1]):
                continue
            received = [at - ms[target] for at in times]
            early = [at for at in received if not any(_fits(each, at) for each, _ in sent)]
            lost = [(at, one) for at, one in sent if not any(_fits(at, each) for each in received)]
            found |= {each for at, one in lost for r in early if began[one] < r < at for each in (one, target)}
    return found


def _fits(sent_ms: int, received_ms: int) -> bool:
    return -SKEW_MS <= received_ms - sent_ms <= _LATE_MS


def _groups(links: Mapping[int, Mapping[int, Ahead]]) -> Iterator[dict[int, Ahead]]:
    """Nodes that exchange calls, each with its difference from the first of its group."""
    left = set(links)
    while left:
        first = min(left)
        group = {first: Ahead(0, max(each.calls for each in links[first].values()))}
        edge = [first]
        while edge:
            node = edge.pop()
            for other, each in links[node].items():
                if other not in group:
                    group[other] = Ahead(group[node].ms + each.ms, each.calls)
                    edge.append(other)
        left -= set(group)
        yield group


def _between(one: Calls, other: Calls) -> Ahead | None:
    """By how much the clock of `other` is ahead of that of `one`; None: too few calls show it."""
    there, back = _delay(one, other), _delay(other, one)
    if there is None or back is None:
        found = there or back
        ms = 0 if found is None else found.ms if there else -found.ms
    elif abs(there.ms + back.ms) > _ON_THE_WAY_MS:
        return None
    else:
        ms = (there.ms - back.ms) // 2  # the time on the way cancels out
    calls = sum(each.calls for each in (there, back) if each is not None)
    return Ahead(ms, calls) if calls >= CALLS_MIN else None


def _delay(source: Calls, target: Calls) -> Ahead | None:
    """The time from sending to receiving that most calls have in common; None: there is none."""
    votes: Counter[int] = Counter()
    delays, of_all = list[int](), 0
    for call, sent in source.sent.items():
        received = target.received.get(call, ())
        of_all += min(len(sent), len(received))
        for at_ms in sent:
            of_one = [other_ms - at_ms for other_ms in received]
            steps = {delay // _STEP_MS for delay in of_one}
            votes.update(steps | {step - 1 for step in steps})
            delays += of_one
    if not votes:
        return None
    best, count = max(votes.items(), key=lambda vote: (vote[1], -abs(vote[0])))
    alike = [delay for delay in delays if best <= delay // _STEP_MS <= best + 1]
    return Ahead(round(statistics.median(alike)), count) if 2 * count >= of_all else None
