"""The releases, oldest first, each as what it changed: read it as a diff from release to release.

The base is `_ALWAYS`, what every release has and `strict` has not; a `Release` then names the switches that it set, the
defects of the catalogue that it repaired and those that it brought. A release that changed nothing that this model can
tell is not listed; `span` says how far an entry reaches. Sources: wire-protocol.md 6.9 and 6.10, known-bugs.md.

Some defects are known here as mutants only, and no release has their switches: B05, a torn apply or read, would make
every search many times as large; B32 is a first load that comes before any peer is known, where a run begins later;
and a node that is alone and never completes its load is one in cluster mode, where a run of one node is standalone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from distro_model.profiles.profile import OwnerRing, Profile, TakesRevision


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One step of the history. `name` is the profile's, of the first or the best known release of its span."""

    name: str
    span: str
    changed: Mapping[str, Any]
    fixed: tuple[str, ...] = ()
    broke: tuple[str, ...] = ()


STRICT = Profile(name="strict")

_ALWAYS = Profile(
    name="every release",
    sync_renews_lease=False,
    protects_native=False,
    tombstones=False,
    refuses_before_load=False,
    grace_after_pause=False,
    retries_unreadable=False,
    largest_revision=2**31 - 1,
    interrupted_load_retried=False,
    connection_takes_over=False,
    change_of_gone_client_deletes=False,
    retry_keeps_pending_delete=False,
    rechecks_client=False,
    rechecks_transport=False,
    overflow_overtakes=True,
    audits_index=False,
    owner_ring=OwnerRing.ALIVE,
    hands_over=False,
    verify_renews_owners_beats=True,
    matches_parts_of_addresses=True,
    records_answer_before_counting=False,
    keeps_metadata_of_published=False,
    reports_to_members_not_up=False,
)

RELEASES = (
    Release(
        name="nacos-2.0.0",
        span="2.0.0",
        changed={
            "revisions_travel": False,
            "verify_tests_revision": False,
            "sends_only_to_up_members": False,
            "acknowledges_failed_applies": True,
            "queue_per_event_class": True,
            "creates_atomically": False,
            "sends_to_members_that_left": True,
            "releases_in_order": False,
            "sending_counts_as_activity": True,
            "sync_delay_ms": 2000,
            "retry_delay_ms": 5000,
            "load_retry_ms": 60_000,
            "load_timeout_ms": 3000,
            "lease_ms": 30_000,
        },
        broke=("B02", "B08", "B13", "B16", "B30", "B31", "B32", "B35", "B37"),
    ),
    Release(
        name="nacos-2.0.1",
        span="2.0.1",
        changed={"sending_counts_as_activity": False, "new_members_start_down": False},
        fixed=("B35",),
        broke=("B36",),
    ),
    Release(
        name="nacos-2.0.2",
        span="2.0.2",
        changed={"queue_per_event_class": False, "sends_to_members_that_left": False},
        fixed=("B08", "B37"),
    ),
    Release(
        name="nacos-2.0.4",
        span="2.0.3 to 2.1.0",
        changed={"lease_ms": 180_000, "refuses_unknown_client": False, "creates_atomically": True},
        fixed=("B30", "B31"),
        broke=("B12",),
    ),
    Release(
        name="nacos-2.1.1",
        span="2.1.1",
        changed={"sends_only_to_up_members": True, "load_timeout_ms": 30_000, "batch_replaces_single": False},
        broke=("B19",),
    ),
    Release(
        name="nacos-2.1.2",
        span="2.1.2",
        changed={
            "revisions_travel": True,
            "verify_tests_revision": True,
            "revision_zero_passes": True,
            "takes_revision": TakesRevision.AT_CREATION,
            "batch_bumps_revision": False,
            "health_changes_revision": False,
        },
        fixed=("B02",),
        broke=("B06", "B10", "B18"),
    ),
    Release(
        name="nacos-2.2.0",
        span="2.2.0",
        changed={
            "detects_silent_connections": False,
            "sync_delay_ms": 1000,
            "retry_delay_ms": 3000,
            "load_retry_ms": 30_000,
        },
        broke=("B03",),
    ),
    Release(name="nacos-2.2.4", span="2.2.1 to 2.2.4", changed={}, fixed=("B32",)),
    Release(
        name="nacos-2.3.0",
        span="2.3.0",
        changed={
            "reports_to_members_not_up": True,
            "takes_revision": TakesRevision.ALWAYS,
            "batch_bumps_revision": True,
            "detects_silent_connections": True,
            "releases_in_order": True,
        },
        fixed=("B03", "B10", "B13", "B18"),
    ),
    Release(name="nacos-2.3.1", span="2.3.1", changed={"batch_replaces_single": True}, fixed=("B19",)),
    Release(name="nacos-2.3.2", span="2.3.2 to 2.5.0", changed={"refuses_unknown_client": True}, fixed=("B12",)),
    Release(name="nacos-2.5.1", span="2.5.1", changed={"acknowledges_failed_applies": False}, fixed=("B16",)),
    Release(name="nacos-3.0.3", span="3.0.0 to 3.0.3", changed={"indexes_before_push": False}, broke=("B44",)),
)


def _profiles() -> Iterator[Profile]:
    profile = _ALWAYS
    for release in RELEASES:
        profile = replace(profile, name=release.name, **release.changed)
        yield profile
    yield STRICT


PROFILES: Mapping[str, Profile] = MappingProxyType({profile.name: profile for profile in _profiles()})

NACOS_2_0_4 = PROFILES["nacos-2.0.4"]
NACOS_2_2_4 = PROFILES["nacos-2.2.4"]


class UnknownProfileError(ValueError):
    """There is no profile of that name; the message lists those there are."""


def profile_named(name: str) -> Profile:
    """Look a profile up. Raises UnknownProfileError."""
    try:
        return PROFILES[name]
    except KeyError:
        raise UnknownProfileError(f"unknown profile {name!r}; known: {', '.join(sorted(PROFILES))}") from None
