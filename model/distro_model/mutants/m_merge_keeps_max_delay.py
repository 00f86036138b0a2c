from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.node import Task
from distro_model.profile import Profile
from distro_model.rules import sync
from distro_model.rules.rule import instead_of


@instead_of(sync.delay_ms)
def waits_for_retry(pending: Task | None, profile: Profile) -> int:
    """A change that meets a queued retry takes over its longer delay."""
    return profile.sync_delay_ms if pending is None else max(pending.delay_ms, profile.sync_delay_ms)


MUTANT = Mutant(
    id="m-merge-keeps-max-delay",
    sentence="A change that meets a queued retry waits as long as the retry: where syncs fail, fresh changes are late.",
    rules=(waits_for_retry,),
    breaks=("INV-DELAY",),
    bounds=Bounds(swallows=0, retry_waits=1),
)
