"""How long something took, as a histogram in SVG: bars with their counts in words, so nothing depends on colour."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from statistics import quantiles

BARS, WIDTH, HEIGHT, FOOT = 12, 620, 150, 34


def histogram(values: Sequence[int], *, unit: str, title: str) -> str:
    """Empty text for no values. The width of a bar is the same everywhere, and the last bar holds the slowest."""
    if not values:
        return ""
    low, high = min(values), max(values)
    step = max(1, -(-(high - low + 1) // BARS))
    counts = [0] * BARS
    for value in values:
        counts[min((value - low) // step, BARS - 1)] += 1
    most, bar = max(counts), WIDTH / BARS
    drawn = []
    for number, count in enumerate(counts):
        height = (HEIGHT - FOOT - 20) * count / most
        x, top = number * bar, HEIGHT - FOOT - height
        label = f"{count} from {low + number * step} to {low + (number + 1) * step - 1} {unit}"
        drawn.append(
            f'<g><title>{label}</title><rect class="bar" x="{x + 2:.1f}" y="{top:.1f}" width="{bar - 4:.1f}" '
            f'height="{height:.1f}"/>'
            + (f'<text x="{x + bar / 2:.1f}" y="{top - 4:.1f}" text-anchor="middle">{count}</text>' if count else "")
            + "</g>"
        )
    p50, p95 = _percentiles(values)
    told = f"{len(values)} from {low} to {high} {unit}; half within {p50}, 95 of 100 within {p95}"
    return (
        f'<svg class="histogram" role="img" aria-label="{escape(title)}: {told}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" xmlns="http://www.w3.org/2000/svg"><title>{escape(title)}</title>'
        "<style>.histogram{font:11px ui-monospace,Menlo,monospace}.histogram text{fill:var(--ink,#1b1f24)}"
        ".histogram .bar{fill:var(--line,#9aa4b0)}</style>"
        f'{"".join(drawn)}<text x="0" y="{HEIGHT - FOOT + 16}">{low} {unit}</text>'
        f'<text x="{WIDTH}" y="{HEIGHT - FOOT + 16}" text-anchor="end">{high} {unit}</text>'
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 4}" text-anchor="middle">{told}</text></svg>'
    )


def _percentiles(values: Sequence[int]) -> tuple[int, int]:
    if len(values) == 1:
        return values[0], values[0]
    cut = quantiles(values, n=100, method="inclusive")
    return round(cut[49]), round(cut[94])
