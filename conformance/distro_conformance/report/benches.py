"""The figures of benches as a page: one chart for each bench and unit, one for its ratios.

A bench prints `{"bench": NAME, "figures": {…}, "ratios": {…}}`; figures may be nested, and the last word of a name is
its unit. What is no number is left out: it is in the document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from distro_conformance.diagrams.charts import bars
from distro_conformance.report.document import Chart
from distro_conformance.report.write import render, write_whole
from distro_conformance.version import origin

UNITS = ("per_s", "ms", "us", "s", "bytes", "mib", "ratio")
BARS_MAX = 40


def write_benches(documents: Sequence[Mapping[str, Any]], page: Path) -> None:
    charts = [chart for document in documents for chart in charts_of(document)]
    write_whole(page, render("bench.html.j2", charts=charts, origin=origin()))


def charts_of(document: Mapping[str, Any]) -> Iterator[Chart]:
    by_unit: dict[str, dict[str, float]] = {}
    for name, value in _numbers(document["figures"]):
        by_unit.setdefault(unit_of(name), {})[name] = value
    by_unit["ratio"] = by_unit.get("ratio", {}) | dict(_numbers(document["ratios"]))
    for unit, values in by_unit.items():
        title = f"{document['bench']}: {unit.replace('_', ' ') or 'counts'}"
        drawn = bars(dict(list(values.items())[:BARS_MAX]), title=title)
        if drawn:
            yield Chart(title, drawn)


def unit_of(name: str) -> str:
    """Empty where the name has none."""
    return next((unit for unit in UNITS if name.lower().endswith((f"_{unit}", f" {unit}"))), "")


def _numbers(values: Mapping[str, Any], under: str = "") -> Iterator[tuple[str, float]]:
    for name, value in values.items():
        whole = f"{under} {name}".strip()
        if isinstance(value, Mapping):
            yield from _numbers(value, whole)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield whole, float(value)
