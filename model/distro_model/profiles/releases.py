"""The releases, oldest first, each as a difference from the release before it.

The base is `_ALWAYS`, the replacements that every release has and `strict` has not; a `Release` then names the rules
that it replaced (a rule itself: from then on the release behaves as `strict`), the parameters that it set, the defects
of the catalogue that it repaired and those that it introduced. A release without a change that this model can represent
is not listed; `span` gives the range of an entry. Source: docs/protocol/releases.md.

Two defects are known here as mutants only, and no release has them: a node that is alone and never completes its load
is one in cluster mode, where a run of one node is standalone; and the number of clients that fill the one message of a
snapshot (B11) cannot be represented in the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from distro_model.profile import Profile
from distro_model.rules import (
    clients,
    connections,
    ip_clients,
    load,
    members,
    metadata,
    notify,
    owners,
    receive,
    sync,
    torn,
    verify,
)
from distro_model.rules.rule import Function


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One step of the history. `name` is the name of the profile, of the first or the best known release of its
    span."""

    name: str
    span: str
    rules: tuple[Function, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    fixed: tuple[str, ...] = ()
    broke: tuple[str, ...] = ()


STRICT = Profile(name="strict")

_ALWAYS = replace(
    STRICT.with_rules(
        receive.keeps_lease,
        receive.natives_are_unprotected,
        receive.is_forgotten_at_once,
        receive.unknown_unseen,
        receive.differs_but_for_cluster,
        receive.gives_unloaded,
        load.refusals_fail,
        load.missing_none,
        load.ends_interrupted_load,
        verify.checks_always,
        sync.drops_unreadable,
        sync.skips_gone_client,
        sync.sent_by_a_former_owner,
        sync.replaces_anything,
        sync.has_part_of_member,
        clients.leaves_copy,
        clients.copy_may_ask,
        clients.looked_before,
        clients.transport_was_open,
        notify.overtaken,
        notify.not_audited,
        notify.announces_what_it_owns,
        owners.owner_among_alive,
        owners.summed_revision,
        ip_clients.changed_and_announced_late,
        ip_clients.held_as_a_copy,
        ip_clients.always_counts_as_beat,
        members.not_handed_over,
        connections.counts_first,
        metadata.is_always_marked,
        torn.on_change,
        torn.on_task_due,
    ),
    name="every release",
    largest_revision=2**31 - 1,
    reports_to_members_not_up=False,
)

RELEASES = (
    Release(
        name="nacos-2.0.0",
        span="2.0.0",
        rules=(
            verify.existence_is_enough,
            sync.reaches_all,
            sync.for_any_target,
            receive.raised_unseen,
            notify.queue_of_class,
            notify.removed_by_one_event,
            notify.handled_removal_from_index_too,
            ip_clients.creates_twice,
            ip_clients.has_no_v2,
            ip_clients.never_ends_unowned,
            members.judged_over_http,
            load.knows_no_peer_at_first,
        ),
        parameters={
            "revisions_travel": False,
            "batches": False,
            "sending_counts_as_activity": True,
            "sync_delay_ms": 2000,
            "retry_delay_ms": 5000,
            "load_retry_ms": 60_000,
            "load_timeout_ms": 3000,
            "lease_ms": 30_000,
            "detection_ms": 1000,
        },
        broke=("B02", "B08", "B13", "B16", "B30", "B31", "B32", "B35", "B37"),
    ),
    Release(
        name="nacos-2.0.1",
        span="2.0.1",
        rules=(members.listed_up,),
        parameters={"sending_counts_as_activity": False},
        fixed=("B35",),
        broke=("B36",),
    ),
    Release(
        name="nacos-2.0.2",
        span="2.0.2",
        rules=(notify.queue_of, sync.is_executed_for),
        fixed=("B08", "B37"),
    ),
    Release(
        name="nacos-2.0.4",
        span="2.0.3 to 2.1.0",
        rules=(clients.success_to_unknown, ip_clients.before_creation, ip_clients.ends_unowned),
        parameters={"lease_ms": 180_000},
        fixed=("B30", "B31"),
        broke=("B12",),
    ),
    Release(
        name="nacos-2.1.1",
        span="2.1.1",
        rules=(sync.is_reachable, receive.no_batch_over_single),
        parameters={"batches": True, "load_timeout_ms": 30_000},
        broke=("B19",),
    ),
    Release(
        name="nacos-2.1.2",
        span="2.1.2",
        rules=(
            verify.zero_always_matches,
            receive.revision_of_batches_only,
            clients.revision_forgotten,
            ip_clients.revision_of_registration,
        ),
        parameters={"revisions_travel": True},
        fixed=("B02",),
        broke=("B06", "B10", "B18"),
    ),
    Release(
        name="nacos-2.2.0",
        span="2.2.0",
        rules=(connections.checks_no_connection, ip_clients.has_v2, ip_clients.only_v1_is_passed_on),
        parameters={"sync_delay_ms": 1000, "retry_delay_ms": 3000, "load_retry_ms": 30_000},
        broke=("B03", "D7"),
    ),
    Release(name="nacos-2.2.4", span="2.2.1 to 2.2.4", rules=(members.judged, load.knows_a_peer), fixed=("B32",)),
    Release(
        name="nacos-2.3.0",
        span="2.3.0",
        rules=(
            receive.taken_revision,
            receive.differs_with_id,
            clients.revision_of_batch,
            connections.on_connection_check_due,
            notify.removed,
            notify.handled_removal,
        ),
        parameters={"reports_to_members_not_up": True, "detection_ms": 5000},
        fixed=("B03", "B10", "B13", "B18", "D4"),
    ),
    Release(name="nacos-2.3.1", span="2.3.1", rules=(receive.is_applicable,), fixed=("B19",)),
    Release(name="nacos-2.3.2", span="2.3.2 to 2.5.0", rules=(clients.answer_to_unknown,), fixed=("B12",)),
    Release(name="nacos-2.5.1", span="2.5.1", rules=(receive.raised,), fixed=("B16",)),
    Release(
        name="nacos-3.0.3",
        span="3.0.0 to 3.1.0",
        rules=(notify.registered_after_push, ip_clients.registered_with_id),
        broke=("B44",),
    ),
)


def _profiles() -> Iterator[Profile]:
    profile = _ALWAYS
    for release in RELEASES:
        profile = replace(profile.with_rules(*release.rules), name=release.name, **release.parameters)
        yield profile
    yield STRICT


PROFILES: Mapping[str, Profile] = MappingProxyType({profile.name: profile for profile in _profiles()})

NACOS_2_0_4 = PROFILES["nacos-2.0.4"]
NACOS_2_2_4 = PROFILES["nacos-2.2.4"]


class UnknownProfileError(ValueError):
    """There is no profile of that name; the message lists the known names."""


def beside_nodes(profile: Profile) -> Profile:
    """The profile as the reference nodes behave against which the model is tested: their members have reported
    themselves before the run, over gRPC; a CHANGE is read and applied in one step; no task is sent to a node that has
    left the list, and no address is a part of another. This holds for every release; `strict` is unchanged."""
    there = (load.knows_a_peer, members.judged, sync.is_executed_for, sync.has_member)
    return profile.with_rules(*there, receive.on_change, sync.on_task_due)


def profile_named(name: str) -> Profile:
    """The profile of this name; a release that is not listed behaves as the last listed one before it.

    Raises UnknownProfileError, also for a major version that is not described.
    """
    if name in PROFILES:
        return PROFILES[name]
    asked = _version(name) if name.startswith("nacos-") else ()
    before = [release for release in RELEASES if _version(release.span) <= asked]
    if not before or asked[:1] > _version(RELEASES[-1].span)[:1]:
        meant = f" (a release is named nacos-{name})" if _version(name) and not asked else ""
        raise UnknownProfileError(f"no profile {name!r}{meant}; known: {', '.join(PROFILES)}")
    return replace(PROFILES[before[-1].name], name=name)


def _version(text: str) -> tuple[int, ...]:
    """(2, 2, 1) of `nacos-2.2.1` and of the span `2.2.1 to 2.2.4`, (2, 2, 0, 1) of `nacos-2.2.0.1`; () of any other
    text."""
    numbers = text.removeprefix("nacos-").partition(" ")[0].split(".")
    return tuple(map(int, numbers)) if len(numbers) >= 3 and all(map(str.isdecimal, numbers)) else ()
