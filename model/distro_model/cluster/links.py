"""Links that are cut and healed. Of clocks only: a search has crashes, and false alarms for reports that fail."""

from __future__ import annotations

from dataclasses import replace

from distro_model.actions import Cut, Heal
from distro_model.cluster.statement import Transition, of, writes
from distro_model.cluster.values import Link


def cut(link: Link) -> Link | None:
    """From now on every request on the link fails at once, and so do those in transit."""
    return None if link.cut else replace(link.refused(), cut=True)


def heal(link: Link) -> Link | None:
    return replace(link, cut=False) if link.cut else None


CUT = Transition("cut", (writes(cut, "it is cut"),), of(Cut, "source_name", "target_name"))
HEAL = Transition("heal", (writes(heal, "it is not cut"),), of(Heal, "source_name", "target_name"))
