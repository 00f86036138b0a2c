"""Mutants of `rules/sync.py`."""

from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.events import CallEnded
from distro_model.messages import CallResult, Change, Delete
from distro_model.mutants.mutant import Mutant
from distro_model.node import Action, NodeState, Step, Task
from distro_model.profile import Profile
from distro_model.rules import sync
from distro_model.rules.rule import RULES, instead_of


@instead_of(sync.retry_action)
def always_change(_request: Change | Delete, _: Profile) -> Action:
    """After any failure, a CHANGE is queued."""
    return Action.CHANGE


@instead_of(sync.delay_ms)
def waits_for_retry(pending: Task | None, profile: Profile) -> int:
    """A change that meets a queued retry takes over its longer delay."""
    return profile.sync_delay_ms if pending is None else max(pending.delay_ms, profile.sync_delay_ms)


@instead_of(sync.worker_of)
def one_worker(_client: str, _target: str, _: Profile) -> str:
    """All tasks have one worker."""
    return "the only one"


@instead_of(sync.is_free_when_sent)
def waits_for_the_end(_: Profile) -> bool:
    """A worker waits for the end of each call."""
    return False


@instead_of(sync.on_sync_ended)
def sent_again(node: NodeState, event: CallEnded, request: Change | Delete, profile: Profile) -> Step:
    """A CHANGE that has succeeded is queued again."""
    done: Step = RULES["end-a-sync"].own(node, event, request, profile)
    held = done.node.client(request.client)
    if event.answer.result is not CallResult.SUCCESS or isinstance(request, Delete) or held is None:
        return done
    return Step(sync.retried(done.node, request, event.target, event.at_ms, profile), done.outputs)


MUTANTS = (
    Mutant(
        "B24",
        # Either of the two repairs alone is enough for `strict`.
        rules=(sync.replaces_anything, sync.skips_gone_client),
        breaks=("INV-DELETE",),
        bounds=Bounds(changes=1, drops=0, swallows=0, lost_replies=1),
    ),
    Mutant(
        "B37",
        "A node counts as a member when its address is a part of a member's.",
        rules=(sync.has_part_of_member,),
        breaks=("INV-RETRY",),
        bounds=Bounds(nodes=3, changes=1, drops=0, swallows=0, leaves=1, in_flight=1),
    ),
    Mutant(
        "B37-fall-through",
        "A task for a node that has left the member list ends with success, and is executed nevertheless.",
        rules=(sync.for_any_target, sync.reaches_all),
        breaks=("INV-RETRY",),
        bounds=Bounds(changes=1, drops=1, swallows=0, leaves=1),
    ),
    Mutant(
        "B42",
        rules=(sync.drops_unreadable,),
        breaks=("INV-RETRY",),
        bounds=Bounds(changes=1, drops=0, swallows=0, garbles=1),
    ),
    Mutant(
        "m-delete-retried-as-change",
        "A failed DELETE is retried as CHANGE; finding no client to send, that task ends silently.",
        # `strict` has a second line of defence (such a CHANGE becomes a DELETE again) that hides the first.
        rules=(always_change, sync.skips_gone_client),
        breaks=("INV-DELETE",),
    ),
    Mutant(
        "m-merge-keeps-max-delay",
        "A change that meets a queued retry waits as long as the retry: where syncs fail, fresh changes are late.",
        rules=(waits_for_retry,),
        breaks=("INV-DELAY",),
        bounds=Bounds(swallows=0, retry_waits=1),
    ),
    Mutant(
        "m-resends-after-success",
        "A CHANGE that has succeeded is queued again, for ever.",
        rules=(sent_again,),
        breaks=("EVENTUALLY-QUIET",),
        bounds=Bounds(changes=1, drops=0, swallows=0),
    ),
    Mutant(
        "m-one-worker",
        "Syncs to all members share one worker that waits for each answer.",
        rules=(one_worker, waits_for_the_end),
        breaks=("INV-ISOLATE",),
        bounds=Bounds(nodes=3, changes=1, drops=0, swallows=0, in_flight=1),
    ),
)
