"""Beats that a client of the HTTP API sends again and again, as every SDK of 1.x does, until it is stopped.

A scenario has one line for them; the beats are sent while time passes in later lines. On a cluster `running.py` sends
the beats that are due; for a simulation `expand_beats` writes each beat out as an action of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from distro_conformance.language.words import render_duration
from distro_model.actions import Advance, HttpBeat, HttpDeregister, HttpLightBeat

T = TypeVar("T")
Beat = HttpBeat | HttpLightBeat


@dataclass(frozen=True, slots=True)
class Repeat:
    """The beat is sent now and then every `every_ms`, to `nodes` in turn, until `http stop` or `http deregister`."""

    beat: Beat
    nodes: tuple[str, ...]
    every_ms: int

    def __str__(self) -> str:
        beat = self.beat
        by_v2 = " by v2" if beat.by_v2 else ""
        every = f"every {render_duration(self.every_ms)}"
        return f"http {beat.verb} {beat.service} {beat.instance} at {' '.join(self.nodes)}{by_v2} {every}"


@dataclass(frozen=True, slots=True)
class StopBeats:
    """The client of this address stops its beats for the service, as if its process had ended."""

    service: str
    instance: str

    def __str__(self) -> str:
        return f"http stop {self.service} {self.instance}"


@dataclass
class _Due:
    repeat: Repeat
    at_ms: int
    number: int = 0


class Beats:
    """The schedule of beats. A client has one series of beats for each service."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, str], _Due] = {}

    def __bool__(self) -> bool:
        return bool(self._series)

    def start(self, repeat: Repeat, now_ms: int) -> None:
        self._series[_key(repeat.beat.service, repeat.beat.instance)] = _Due(repeat, now_ms)

    def stop(self, service: str, instance: str) -> None:
        self._series.pop(_key(service, instance), None)

    def is_beating(self, service: str, instance: str) -> bool:
        return _key(service, instance) in self._series

    def next_until(self, until_ms: int) -> tuple[int, Beat] | None:
        """The first beat that is due until then, with its time; it counts as sent."""
        due = min(self._series.values(), key=lambda each: each.at_ms, default=None)
        if due is None or due.at_ms > until_ms:
            return None
        at_ms, nodes = due.at_ms, due.repeat.nodes
        beat = replace(due.repeat.beat, node=nodes[due.number % len(nodes)])
        due.at_ms, due.number = at_ms + due.repeat.every_ms, due.number + 1
        return at_ms, beat


def expand_beats(steps: Iterable[T]) -> Iterator[T | Beat | Advance]:
    """The steps with every repeated beat written out: time passes in `advance` alone."""
    beats, now_ms = Beats(), 0
    for step in steps:
        match step:
            case Repeat():
                beats.start(step, now_ms)
            case StopBeats(service, instance) | HttpDeregister(service, instance):
                beats.stop(service, instance)
            case _:
                pass
        until_ms = now_ms + (step.ms if isinstance(step, Advance) else 0)
        while (due := beats.next_until(until_ms)) is not None:
            at_ms, beat = due
            if at_ms > now_ms:
                yield Advance(at_ms - now_ms)
            now_ms = at_ms
            yield beat
        if isinstance(step, Advance):
            if until_ms > now_ms:
                yield Advance(until_ms - now_ms)
            now_ms = until_ms
        elif not isinstance(step, Repeat | StopBeats):
            yield step


def _key(service: str, instance: str) -> tuple[str, str]:
    return service, instance.partition(" ")[0]
