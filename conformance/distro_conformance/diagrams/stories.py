"""The three runs with which the documentation explains Distro, found by searching the model and not drawn by hand.

A story is the shortest run to what a property looks for: a copy that follows its owner, a change that is lost for ever,
a DELETE that nobody repeats. When a rule changes, so does the picture, and the freshness check says so.
"""

from __future__ import annotations

from collections.abc import Mapping

from distro_conformance.diagrams.sequence import Fault, Sequence
from distro_conformance.diagrams.svg import svg_file
from distro_conformance.diagrams.transitions import sequence_of
from distro_model.bounded.bounds import Bounds
from distro_model.explorer import explore
from distro_model.profiles import profile_named
from distro_model.properties import property_named

STORIES: Mapping[str, tuple[str, str, str]] = {
    "healthy-change": ("strict", "REACH-SECOND-REVISION", "A change of a client arrives at the other node"),
    "lost-change": (
        "nacos-2.0.4",
        "INV-CONV",
        "A change that is acknowledged and lost, and confirmed for ever",
    ),
    "swallowed-delete": ("nacos-2.2.4", "INV-DELETE", "The retry of a CHANGE replaces the queued DELETE"),
}
"""Name -> profile, property, and what the picture shows."""


def stories() -> Mapping[str, str]:
    """File name to SVG. Searches three small clusters: some seconds."""
    return {f"{name}.svg": _story(*story) for name, story in STORIES.items()}


def _story(profile: str, property_id: str, title: str) -> str:
    bounds = Bounds()
    result = explore(bounds, profile_named(profile), [property_named(property_id)]).result(property_id)
    shown = result.counterexample or result.witness
    assert shown is not None, f"{property_id} finds nothing in {profile} any more: choose another story"
    labels = [step.transition for step in shown.steps]
    drawn = sequence_of(bounds.node_names, labels, last_is_bad=result.counterexample is not None)
    wrong = (Fault(result.counterexample.found, bad=True),) if result.counterexample is not None else ()
    return svg_file(Sequence(drawn.lifelines, (*drawn.items, *wrong), title))
