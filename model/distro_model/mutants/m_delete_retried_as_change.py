from __future__ import annotations

from distro_model.messages import Change, Delete
from distro_model.mutants.mutant import Mutant
from distro_model.node import Action
from distro_model.profile import Profile
from distro_model.rules import sync
from distro_model.rules.rule import instead_of


@instead_of(sync.retry_action)
def always_change(_request: Change | Delete, _: Profile) -> Action:
    """Whatever has failed, a CHANGE is queued."""
    return Action.CHANGE


MUTANT = Mutant(
    id="m-delete-retried-as-change",
    sentence="A failed DELETE is retried as CHANGE; finding no client to send, that task ends silently.",
    # `strict` has a second line of defence (such a CHANGE becomes a DELETE again) that hides the first.
    rules=(
        always_change,
        sync.skips_gone_client,
    ),
    breaks=("INV-DELETE",),
)
