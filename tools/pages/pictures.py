"""The three runs with which the documentation explains Distro, found by searches of the model and not drawn by hand.

They are the runs of the explorer in the browser. When a rule changes, the picture changes, and the freshness check
fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from distro_conformance.diagrams.sequence import Fault, Sequence
from distro_conformance.diagrams.svg import svg
from distro_conformance.ui.stories import STORIES, Story, begin
from distro_model.properties import property_named
from distro_model.search.system import Kind

COLOURS = """
svg{--ink:#1b1f24;--soft:#57606a;--line:#9aa4b0;--panel:#eef1f4;--bad:#b3261e;--bad-panel:#ffe3e0;--warn:#8a5200;
--warn-panel:#fff3dc;background:#fff}
@media (prefers-color-scheme:dark){svg{--ink:#e6e9ec;--soft:#a7b0ba;--line:#56606b;--panel:#20262c;--bad:#ff9d94;
--bad-panel:#4a1d1a;--warn:#f0bd6b;--warn-panel:#3c2e12;background:#14181c}}
""".replace("\n", "")


def pictures() -> Iterator[tuple[str, str]]:
    """Name and text of each file. Searches three small clusters: some seconds."""
    for name, story in STORIES.items():
        yield f"{name}.svg", svg(drawn(name, story), COLOURS) + "\n"


def drawn(name: str, story: Story) -> Sequence:
    """The whole walk of a story, followed by the violation at its end."""
    ahead = begin(name)
    walk = ahead.move(len(ahead.path))
    assert walk.sought is not None
    wrong = property_named(story.property_id).kind is not Kind.SOMETIMES
    diagram = walk.diagram()
    items = (*diagram.items, Fault(walk.sought.what, bad=True)) if wrong else diagram.items
    return replace(diagram, items=items, title=story.title)
