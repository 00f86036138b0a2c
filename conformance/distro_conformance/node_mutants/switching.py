"""The switches that an operator turns."""

from __future__ import annotations

from typing import Any

from distro_conformance.node_mutants.mutant import Change, Mutant, add, mutant
from distro_impl.http.operator import ENTRIES, Operator
from distro_impl.naming.push import PushService


def _ignored(mutant_id: str, field: str, text: str) -> None:
    """A switch that can be turned, without an effect."""

    def made(old: Any) -> Any:
        def turn_switch(self: Any, parameters: Any) -> None:
            if ENTRIES.get(parameters.text("entry")) != field:
                old(self, parameters)

        return turn_switch

    add(Mutant(mutant_id, text, changes=(Change(Operator, "turn_switch", made),)))


_ignored("m-health-switch-is-ignored", "health_check_enabled", "Health checks cannot be switched off.")
_ignored("m-push-switch-is-ignored", "push_enabled", "Pushes cannot be switched off.")
_ignored("m-distro-switch-is-ignored", "distro_enabled", "Distro cannot be switched off.")
_ignored("m-light-beat-switch-is-ignored", "light_beat_enabled", "Light beats cannot be switched off.")
_ignored("m-beat-interval-is-not-set", "client_beat_interval_ms", "The interval of beats cannot be set.")


@mutant("m-pushes-do-not-wait", PushService, "_push_to")
def _lost(old: Any, self: Any, *arguments: Any) -> None:
    """A push that is due while pushes are switched off is lost."""
    if self._switches.push_enabled:
        old(self, *arguments)
