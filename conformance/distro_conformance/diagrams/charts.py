"""Figures as pictures: matplotlib writes SVG, and the page that it stands in gives it its colours.

One library for every chart of reports and benches. Text stays text, so that it can be searched and read out; colours
are the custom properties of the page, so that a chart follows its theme; every picture has a sentence that says what
it shows. Without matplotlib (the extra `report`) `drawn` raises ModuleNotFoundError, which a verb turns into a hint.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from statistics import quantiles
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Rectangle

Shade = Callable[[str, str], float | None]
BARS = 12
INK, LINE, BAD, GOOD, PAGE, ACCENT = "#010101", "#020202", "#030303", "#040404", "#050505", "#060606"
"""Placeholders for custom properties while matplotlib draws."""
_PROPERTIES: Mapping[str, str] = {
    INK: "var(--ink,#1b1f24)",
    LINE: "var(--line,#9aa4b0)",
    BAD: "var(--bad,#b3261e)",
    GOOD: "var(--good,#1a6b34)",
    PAGE: "var(--page,#fff)",
    ACCENT: "var(--accent,#2f6db3)",
}
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "distrocheck",
    "font.family": "monospace",
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": LINE,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def histogram(values: Sequence[int], *, title: str) -> str:
    """A chart of milliseconds. Empty text for no values."""
    if not values:
        return ""
    p50, p95 = _percentiles(values)
    low, high = min(values), max(values)
    summary = f"{len(values):,} from {low:,} to {high:,} ms; half within {p50:,} ms, 95 % within {p95:,} ms"

    def draw(axes: Axes) -> None:
        counts, _, bars = axes.hist(values, bins=BARS, color=ACCENT, rwidth=0.92)
        axes.bar_label(bars, labels=[str(int(count)) if count else "" for count in counts])  # type: ignore[arg-type]
        axes.set_xlabel(summary)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)

    return drawn(draw, f"{title}: {summary}", width=6.6, height=1.9)


def bars(values: Mapping[str, float], *, title: str, bad: Sequence[str] = ()) -> str:
    """One bar a name, from the first above to the last below; those in `bad` are marked. Empty text for no values."""
    if not values:
        return ""
    names = list(values)[::-1]

    def draw(axes: Axes) -> None:
        drawn_bars = axes.barh(
            names, [values[name] for name in names], color=[BAD if n in bad else ACCENT for n in names]
        )
        axes.bar_label(drawn_bars, labels=[f" {values[name]:,.4g}" for name in names])
        axes.margins(x=0.22)
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)

    summary = "; ".join(f"{name} {value:,.4g}" for name, value in values.items())
    return drawn(draw, f"{title}: {summary}", width=7, height=0.5 + 0.24 * len(names))


def busy(when: tuple[int, int], counts: Mapping[str, Sequence[int]], marks_ms: Sequence[int], *, title: str) -> str:
    """How many rows each node recorded over time, as a map; `marks_ms` are the times of findings."""
    if not counts:
        return ""
    first, last = when[0] / 1000, when[1] / 1000
    most = max(max(row) for row in counts.values()) or 1

    def draw(axes: Axes) -> None:
        extent = (first, max(last, first + 0.001), len(counts) - 0.5, -0.5)
        for number, row in enumerate(counts.values()):
            width = (extent[1] - first) / len(row)
            for part, count in enumerate(row):
                if count:
                    left = first + part * width
                    shade = 0.12 + 0.88 * count / most
                    axes.barh(number, width, left=left, height=0.8, color=INK, alpha=shade, linewidth=0)
        for mark in marks_ms:
            axes.axvline(mark / 1000, color=BAD, linewidth=1.5)
        axes.set_yticks(range(len(counts)), labels=list(counts))
        axes.set_xlim(extent[0], extent[1])
        axes.set_ylim(extent[2], extent[3])
        axes.set_xlabel("seconds since the start of the run")

    found = f", {len(marks_ms)} findings marked" if marks_ms else ""
    return drawn(draw, f"{title}, from {first:g} to {last:g} s{found}", width=9.5, height=0.7 + 0.28 * len(counts))


def matrix(rows: Sequence[str], columns: Sequence[str], shade: Shade, *, title: str) -> str:
    """A heat map; `shade` is from 0 to 1, None for an empty cell."""
    if not rows or not columns:
        return ""

    def draw(axes: Axes) -> None:
        for y, row in enumerate(rows):
            for x, column in enumerate(columns):
                value = shade(row, column)
                if value is not None:
                    axes.add_patch(_square(x, y, 0.25 + 0.75 * value))
        axes.set_xlim(-0.5, len(columns) - 0.5)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xticks(range(len(columns)), labels=list(columns), rotation=90)
        axes.set_yticks(range(len(rows)), labels=list(rows))
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        axes.grid(color=LINE, linewidth=0.2)
        axes.set_axisbelow(True)

    return drawn(draw, title, width=2.8 + 0.22 * len(columns), height=1.6 + 0.2 * len(rows))


def _square(x: int, y: int, alpha: float) -> Rectangle:
    from matplotlib import patches  # noqa: PLC0415 - an extra

    return patches.Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, color=GOOD, alpha=alpha, linewidth=0)


def drawn(draw: Callable[[Axes], None], summary: str, *, width: float, height: float) -> str:
    """The picture as an element of a page; `summary` says in words what it shows. Sizes are inches of 72 px."""
    import matplotlib as mpl  # noqa: PLC0415 - an extra
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(width, height), layout="constrained")
        figure.patch.set_alpha(0)
        axes = figure.add_subplot()
        axes.patch.set_alpha(0)
        draw(axes)
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return _element(file.getvalue(), summary)


def _element(text: str, summary: str) -> str:
    element = text[text.index("<svg") :].rstrip()
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = re.sub(r"<style.*?</style>", "", element, flags=re.DOTALL)  # the title would become that of the page
    element = re.sub(r"<!--.*?-->", "", element, flags=re.DOTALL)
    used = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", element))
    element = re.sub(r' id="([^"]+)"', lambda found: found[0] if found[1] in used else "", element)
    for stands_for, value in _PROPERTIES.items():
        element = element.replace(stands_for, value)
    label = escape(summary, quote=True)
    return element.replace("<svg", f'<svg class="chart" role="img" aria-label="{label}"', 1).replace(
        ">", f"><title>{escape(summary)}</title>", 1
    )


def _percentiles(values: Sequence[int]) -> tuple[int, int]:
    if len(values) == 1:
        return values[0], values[0]
    cut = quantiles(values, n=100, method="inclusive")
    return round(cut[49]), round(cut[94])
