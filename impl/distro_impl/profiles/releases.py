"""The releases as a short history: each is the one before it, with the switches that it turned.

Read from docs/protocol #releases-matrix. A release that is not named here behaves like the last one before it, unless
the next one says that it began earlier. `strict` is no release: it stands on 2.5.1, and every defect known in the part
that this node covers is repaired in it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from distro_impl.profiles.profile import (
    InnerAuth,
    MissingClient,
    Profile,
    ReportTransport,
    RevisionTakenOver,
    UnknownProfileError,
)


def _next(before: Profile, version: str, **changes: Any) -> Profile:
    return replace(before, name=f"nacos-{version}", version=version, **changes)


NACOS_2_0_0 = Profile(
    name="nacos-2.0.0",
    version="2.0.0",
    sync_delay_ms=2_000,
    sync_retry_delay_ms=5_000,
    load_retry_delay_ms=60_000,
    load_timeout_ms=3_000,
    client_expired_ms=30_000,
    ip_port_lease=False,
    member_starts_down=True,
    member_shows_grpc_report=False,
    report_transport=ReportTransport.HTTP,
    http_report_answers_member=False,
    connects_to_reported_only=True,
    waits_for_upgraded_members=True,
    reports_to_members_not_up=False,
    push_timeout_ms=3_000,
    push_of_subscribed_cluster=False,
    subscription_hides_disabled=False,
    revision_sent=False,
    verify_tests_revision=False,
    revision_taken_over=RevisionTakenOver.NEVER,
    sends_only_to_up_members=False,
    detection_timeout_ms=1_000,
    push_blocked_ms=None,
    refusal_is_sent=True,
    exception_code_in_result=False,
    missing_client=MissingClient.EXCEPTION,
    batch_registration=False,
    batch_replaces_single=False,
    batch_bumps_revision=False,
    persistent_over_grpc=False,
    instances_checked=False,
    parameters_checked=False,
    instance_response_has_type=False,
)
NACOS_2_0_1 = _next(NACOS_2_0_0, "2.0.1", member_starts_down=False, push_timeout_ms=5_000)
NACOS_2_0_2 = _next(NACOS_2_0_1, "2.0.2")
NACOS_2_0_4 = _next(
    NACOS_2_0_2, "2.0.4", client_expired_ms=180_000, ip_port_lease=True, missing_client=MissingClient.IGNORED
)
"""Since 2.0.3."""
NACOS_2_1_0 = _next(NACOS_2_0_4, "2.1.0", waits_for_upgraded_members=False)
NACOS_2_1_1 = _next(
    NACOS_2_1_0,
    "2.1.1",
    sends_only_to_up_members=True,
    load_timeout_ms=30_000,
    batch_registration=True,
    instances_checked=True,
    subscription_hides_disabled=True,
)
NACOS_2_1_2 = _next(
    NACOS_2_1_1,
    "2.1.2",
    revision_sent=True,
    verify_tests_revision=True,
    revision_taken_over=RevisionTakenOver.ON_CREATION,
    push_of_subscribed_cluster=True,
    instance_response_has_type=True,
)
NACOS_2_2_0 = _next(
    NACOS_2_1_2,
    "2.2.0",
    http_report_answers_member=True,
    sync_delay_ms=1_000,
    sync_retry_delay_ms=3_000,
    load_retry_delay_ms=30_000,
    detection_timeout_ms=None,
    http_v1_distro=False,
    http_v2_api=True,
)
NACOS_2_2_4 = _next(
    NACOS_2_2_0,
    "2.2.4",
    report_transport=ReportTransport.GRPC_BY_ABILITY,
    connects_to_reported_only=False,
    cluster_client_says_tls=True,
)
"""Since 2.2.1."""
NACOS_2_3_0 = _next(
    NACOS_2_2_4,
    "2.3.0",
    http_cluster_needs_auth=True,
    report_transport=ReportTransport.GRPC_UNLESS_BOTH_REFUSE,
    reports_to_members_not_up=True,
    member_shows_grpc_report=True,
    publishers_show_cluster=True,
    revision_taken_over=RevisionTakenOver.ALWAYS,
    detection_timeout_ms=5_000,
    refusal_is_sent=False,
    ability_negotiation=True,
    batch_bumps_revision=True,
    persistent_over_grpc=True,
    parameters_checked=True,
    instance_id_generated=True,
)
NACOS_2_3_1 = _next(NACOS_2_3_0, "2.3.1", push_blocked_ms=300_000, batch_replaces_single=True)
NACOS_2_3_2 = _next(NACOS_2_3_1, "2.3.2", missing_client=MissingClient.REFUSED, exception_code_in_result=True)
NACOS_2_4_0 = _next(NACOS_2_3_2, "2.4.0")
NACOS_2_4_3 = _next(NACOS_2_4_0, "2.4.3", distro_on_sdk_port=False)
NACOS_2_5_0 = _next(NACOS_2_4_3, "2.5.0", identity_sent=True, gray_model_sent=True)
NACOS_2_5_1 = _next(NACOS_2_5_0, "2.5.1", exception_visible=True)

NACOS_3_0_3 = _next(
    NACOS_2_5_1, "3.0.3", inner_auth=InnerAuth.ALL_MEMBERS_3X, http_v3_api=True, address_from_ip_and_port=True
)
"""Since 3.0.0."""
NACOS_3_1_0 = _next(NACOS_3_0_3, "3.1.0")
"""As its head of September 2025 was. Namespaces can be validated there, which is off by default."""

STRICT = replace(
    NACOS_2_5_1,
    name="strict",
    address_from_ip_and_port=True,
    newcomer_starts_down=True,
    member_found_by_substring=False,
    zero_is_a_revision=True,
    revision_follows_beats=True,
    revision_sums_services=False,
    owner_by_configured_place=True,
    owner_judges_by_beats=True,
    owner_hands_over=True,
    sender_is_named=True,
    native_untouched_by_peers=True,
    deleted_stays_deleted=True,
    snapshot_needs_load=True,
    reply_bytes_max=None,
    load_outlives_exception=True,
    renews_after_pause=True,
    sync_renews_lease=True,
    equality_sees_cluster=True,
    unhandled_visible=True,
    missing_client_is_deleted=True,
    pending_delete_survives_retry=True,
    connection_replaces_copy=True,
    queries_read_pushed_view=False,
    every_write_forwarded=True,
    client_queries_repaired=True,
    inner_auth=InnerAuth.ALWAYS,
)

PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        NACOS_2_0_0,
        NACOS_2_0_1,
        NACOS_2_0_2,
        NACOS_2_0_4,
        NACOS_2_1_0,
        NACOS_2_1_1,
        NACOS_2_1_2,
        NACOS_2_2_0,
        NACOS_2_2_4,
        NACOS_2_3_0,
        NACOS_2_3_1,
        NACOS_2_3_2,
        NACOS_2_4_0,
        NACOS_2_4_3,
        NACOS_2_5_0,
        NACOS_2_5_1,
        NACOS_3_0_3,
        NACOS_3_1_0,
        STRICT,
    )
}
"""By name, in the order of the releases; `strict` is the last."""


_FIRST_OF_SPAN = {"2.0.4": "2.0.3", "2.2.4": "2.2.1", "3.0.3": "3.0.0"}
"""The first release that behaves so, where a profile is called after a later one."""


def profile_named(name: str) -> Profile:
    """The profile of that name, of a release that is not listed, too. Raises UnknownProfileError."""
    found = listed(name)
    return found if found.name == name else replace(found, name=name, version=name.removeprefix("nacos-"))


def listed(name: str) -> Profile:
    """The profile of that name; of a release that is not listed, that of the last listed one before it.

    Raises UnknownProfileError, also for a major version that is later than all.
    """
    if name in PROFILES:
        return PROFILES[name]
    asked = _numbers(name.removeprefix("nacos-")) if name.startswith("nacos-") else ()
    releases = [profile for profile in PROFILES.values() if profile is not STRICT]
    before = [each for each in releases if _numbers(_FIRST_OF_SPAN.get(each.version, each.version)) <= asked]
    if not before or asked[0] > _numbers(releases[-1].version)[0]:
        meant = f" (a release is named nacos-{name})" if _numbers(name) else ""
        raise UnknownProfileError(f"no profile {name!r}{meant}; known: {', '.join(PROFILES)}")
    return before[-1]


def _numbers(version: str) -> tuple[int, ...]:
    """Three numbers or more, or none where it is no release."""
    parts = version.split(".")
    return tuple(int(part) for part in parts) if len(parts) >= 3 and all(part.isdecimal() for part in parts) else ()
