"""The releases, each as what it changed: a table that is read from the oldest to the newest.

A switch that no release has named keeps the value that `strict` has (`profile.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from distro_model.profiles.profile import Profile, TakesRevision


class UnknownProfileError(ValueError):
    """There is no profile of that name; the message lists those there are."""


STRICT = Profile(name="strict")

NACOS_2_2_4 = Profile(
    name="nacos-2.2.4",
    revision_zero_passes=True,
    takes_revision=TakesRevision.AT_CREATION,
    sync_renews_lease=False,
    protects_native=False,
    tombstones=False,
    refuses_before_load=False,
    grace_after_pause=False,
    change_of_gone_client_deletes=False,
    retry_keeps_pending_delete=False,
)

NACOS_2_0_4 = replace(
    NACOS_2_2_4,
    name="nacos-2.0.4",
    revisions_travel=False,
    verify_tests_revision=False,
    sends_only_to_up_members=False,
    sync_delay_ms=2000,
    retry_delay_ms=5000,
    load_retry_ms=60_000,
    load_timeout_ms=3000,
)

PROFILES: Mapping[str, Profile] = MappingProxyType({p.name: p for p in (NACOS_2_0_4, NACOS_2_2_4, STRICT)})


def profile_named(name: str) -> Profile:
    """Look a profile up. Raises UnknownProfileError."""
    try:
        return PROFILES[name]
    except KeyError:
        raise UnknownProfileError(f"unknown profile {name!r}; known: {', '.join(sorted(PROFILES))}") from None
