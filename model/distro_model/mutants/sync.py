"""Mutants of how a change leaves its owner and is taken over by a peer."""

from __future__ import annotations

from dataclasses import replace

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.profiles import RetryAction

SYNC = (
    Mutant(
        "B07",
        "A synced copy is created as native: it is sent on, verified, and never expires.",
        lambda profile: replace(profile, replicas_are_native=True),
        ("INV-OWNER",),
        Bounds(changes=1, drops=0, swallows=0),
    ),
    Mutant(
        "m-delete-retried-as-change",
        "A failed DELETE is retried as CHANGE; finding no client to send, that task ends silently.",
        # `strict` has a second line of defence (such a CHANGE becomes a DELETE again) that hides the first.
        lambda profile: replace(profile, retry_action=RetryAction.ALWAYS_CHANGE, change_of_gone_client_deletes=False),
        ("INV-DELETE",),
    ),
)
