"""A trace for other people's viewers and for `replay`: one small file for each format, and the order they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from distro_traces.errors import TooLargeError
from distro_traces.event import Event
from distro_traces.exports import itf, mermaid, perfetto, scenario, shiviz
from distro_traces.header import Header


@dataclass(frozen=True, slots=True)
class Export:
    """A format: what writes it, and how many rows its viewers can take (each was tried)."""

    text: Callable[[Header, Sequence[Event]], str]
    rows_max: int


EXPORTS: Mapping[str, Export] = MappingProxyType(
    {
        "itf": Export(itf.export, 5_000),  # every state repeats what all nodes hold
        "shiviz": Export(shiviz.export, 50_000),
        "perfetto": Export(perfetto.export, 1_000_000),
        "mermaid": Export(mermaid.export, 500),
        "scenario": Export(scenario.export, 50_000),  # replay it with one client or few
    }
)


def export(name: str, header: Header, events: Sequence[Event]) -> str:
    """A run in the format of that name. Raises TooLargeError."""
    form = EXPORTS[name]
    if len(events) > form.rows_max:
        raise TooLargeError(
            f"run {header.run}: {len(events)} rows, {name} shows up to {form.rows_max}; choose one client with "
            "--client, leave VERIFY out with --without-verify"
        )
    return form.text(header, events)
