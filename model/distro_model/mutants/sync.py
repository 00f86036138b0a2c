"""Mutants of how a change leaves its owner: tasks, what they carry, calls and retries."""

from __future__ import annotations

from dataclasses import replace

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.profiles import RetryAction

SYNC = (
    Mutant(
        "m-merge-keeps-max-delay",
        "A change that meets a queued retry waits as long as the retry: where syncs fail, fresh changes are late.",
        lambda profile: replace(profile, fresh_change_waits_for_retry=True),
        ("INV-DELAY",),
        Bounds(swallows=0, retry_waits=1),
    ),
    Mutant(
        "B24",
        "The retry of a failed CHANGE replaces a queued DELETE, and finding no client to send ends silently.",
        # Either of the two repairs alone is enough for `strict`.
        lambda profile: replace(profile, retry_keeps_pending_delete=False, change_of_gone_client_deletes=False),
        ("INV-DELETE",),
        Bounds(changes=1, swallows=0),
    ),
    Mutant(
        "B42",
        "A sync whose answer cannot be read is neither finished nor retried.",
        lambda profile: replace(profile, retries_unreadable=False),
        ("INV-RETRY",),
        Bounds(changes=1, drops=0, swallows=0, garbles=1),
    ),
    Mutant(
        "B05-sender",
        "The sender reads the content first and then the revision, while its client goes on changing.",
        lambda profile: replace(profile, reads_atomically=False),
        ("INV-REV", "INV-VERIFY", "INV-CONV"),
        Bounds(drops=0),
    ),
    Mutant(
        "m-delete-retried-as-change",
        "A failed DELETE is retried as CHANGE; finding no client to send, that task ends silently.",
        # `strict` has a second line of defence (such a CHANGE becomes a DELETE again) that hides the first.
        lambda profile: replace(profile, retry_action=RetryAction.ALWAYS_CHANGE, change_of_gone_client_deletes=False),
        ("INV-DELETE",),
    ),
    Mutant(
        "m-add-after-fail-to-all",
        "A failed verify brings a full sync to every member, not only to the one that failed it.",
        lambda profile: replace(profile, repairs_only_the_failed=False),
        ("INV-AIM",),
        Bounds(nodes=3, changes=0, drops=0, swallows=0),
    ),
)
