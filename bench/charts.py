"""The figures that benches printed, as charts on one page: one for each bench and unit, one for its ratios.

python bench/charts.py distrocheck-out/bench/*.json --html distrocheck-out/bench/index.html

A bench prints `{"bench": NAME, "figures": {…}, "ratios": {…}}`; figures may be nested, and the last word of a name is
its unit. What is no number is left out: it is in the document.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from distro_conformance.diagrams.charts import bars
from distro_conformance.report.document import Chart
from distro_conformance.report.write import templates_of, write_whole
from distro_conformance.version import origin

PAGE = Path(__file__).with_name("charts.html.j2")
UNITS = ("per_s", "ms", "us", "s", "bytes", "mib", "ratio")
BARS_MAX = 40


def write_benches(documents: Sequence[Mapping[str, Any]], page: Path) -> None:
    charts = [chart for document in documents for chart in charts_of(document)]
    template = templates_of("distro_conformance.report").from_string(PAGE.read_text(encoding="utf-8"))
    write_whole(page, template.render(charts=charts, origin=origin()))


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("documents", nargs="+", type=Path, help="what benches printed with --json, a file each")
    parser.add_argument("--html", required=True, type=Path, help="the page")
    arguments = parser.parse_args()
    write_benches([json.loads(path.read_text(encoding="utf-8")) for path in arguments.documents], arguments.html)
    print(arguments.html)


if __name__ == "__main__":
    main()
