"""The table of profiles."""

from __future__ import annotations

from dataclasses import replace

import pytest

from distro_impl import (
    PROFILES,
    NodeConfig,
    UnknownProfileError,
    profile_named,
)

MATRIX = """
                             2.0.0 2.0.2 2.0.4 2.1.0 2.1.1 2.1.2 2.2.0 2.2.4 2.3.0 2.4.0 2.4.3 2.5.1 3.0.3
sync_delay_ms                2000  2000  2000  2000  2000  2000  1000  1000  1000  1000  1000  1000  1000
sync_retry_delay_ms          5000  5000  5000  5000  5000  5000  3000  3000  3000  3000  3000  3000  3000
load_retry_delay_ms          60000 60000 60000 60000 60000 60000 30000 30000 30000 30000 30000 30000 30000
load_timeout_ms              3000  3000  3000  3000  30000 30000 30000 30000 30000 30000 30000 30000 30000
verify_interval_ms           5000  5000  5000  5000  5000  5000  5000  5000  5000  5000  5000  5000  5000
client_expired_ms            30000 30000 180000 180000 180000 180000 180000 180000 180000 180000 180000 180000 180000
revision_sent                no    no    no    no    no    yes   yes   yes   yes   yes   yes   yes   yes
verify_tests_revision        no    no    no    no    no    yes   yes   yes   yes   yes   yes   yes   yes
revision_taken_over          never never never never never onnew onnew onnew always always always always always
sends_only_to_up_members     no    no    no    no    yes   yes   yes   yes   yes   yes   yes   yes   yes
http_v1_distro               yes   yes   yes   yes   yes   yes   no    no    no    no    no    no    no
batch_registration           no    no    no    no    yes   yes   yes   yes   yes   yes   yes   yes   yes
batch_bumps_revision         no    no    no    no    no    no    no    no    yes   yes   yes   yes   yes
batch_replaces_single        no    no    no    no    no    no    no    no    no    yes   yes   yes   yes
persistent_over_grpc         no    no    no    no    no    no    no    no    yes   yes   yes   yes   yes
instance_id_generated        no    no    no    no    no    no    no    no    yes   yes   yes   yes   yes
instance_response_has_type   no    no    no    no    no    yes   yes   yes   yes   yes   yes   yes   yes
instances_checked            no    no    no    no    yes   yes   yes   yes   yes   yes   yes   yes   yes
parameters_checked           no    no    no    no    no    no    no    no    yes   yes   yes   yes   yes
push_of_subscribed_cluster   no    no    no    no    no    yes   yes   yes   yes   yes   yes   yes   yes
subscription_hides_disabled  no    no    no    no    yes   yes   yes   yes   yes   yes   yes   yes   yes
queries_read_pushed_view     yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes
ability_negotiation          no    no    no    no    no    no    no    no    yes   yes   yes   yes   yes
distro_on_sdk_port           yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   no    no    no
detection_timeout_ms         1000  1000  1000  1000  1000  1000  none  none  5000  5000  5000  5000  5000
push_blocked_ms              none  none  none  none  none  none  none  none  none  300000 300000 300000 300000
refusal_is_sent              yes   yes   yes   yes   yes   yes   yes   yes   no    no    no    no    no
exception_code_in_result     no    no    no    no    no    no    no    no    no    yes   yes   yes   yes
exception_visible            no    no    no    no    no    no    no    no    no    no    no    yes   yes
"""
"""docs/protocol #wire-errors, #connection-stream, #ejector-check, #releases-matrix, as far as they concern the node: a
row a switch, a column a release."""

TEXTS = {"yes": True, "no": False, "none": None, "never": "never", "onnew": "on creation", "always": "always"}


HEAD, *ROWS = MATRIX.strip().splitlines()


@pytest.mark.parametrize("row", ROWS, ids=[row.split()[0] for row in ROWS])
def test_switches_and_timings_are_those_of_the_sheet(row: str) -> None:
    switch, *cells = row.split()
    values = [TEXTS[cell] if cell in TEXTS else int(cell) for cell in cells]
    expected = dict(zip(HEAD.split(), values, strict=True))
    assert {release: getattr(profile_named(f"nacos-{release}"), switch) for release in expected} == expected


def test_profiles_are_named_after_their_release_and_come_in_its_order() -> None:
    *releases, strict = PROFILES.values()
    assert [profile.name for profile in releases] == [f"nacos-{profile.version}" for profile in releases]
    versions = [tuple(map(int, profile.version.split("."))) for profile in releases]
    assert versions == sorted(versions)
    assert strict.name == "strict"


@pytest.mark.parametrize(
    ("release", "behaves_as"),
    [
        ("2.0.3", "2.0.4"),
        ("2.2.0.1", "2.2.0"),
        ("2.2.1", "2.2.4"),
        ("2.2.3", "2.2.4"),
        ("2.2.5", "2.2.4"),
        ("3.0.0", "3.0.3"),
        ("3.0.7", "3.0.3"),
        ("3.2.0", "3.1.0"),
    ],
)
def test_a_release_that_is_not_listed_behaves_as_the_last_one_before_it(release: str, behaves_as: str) -> None:
    found = profile_named(f"nacos-{release}")
    assert found == replace(PROFILES[f"nacos-{behaves_as}"], name=f"nacos-{release}", version=release)


@pytest.mark.parametrize("name", ["nacos-1.4.7", "nacos-4.0.0", "nacos-2.2", "nacos-2.2.x", "2.2.4", "2", ""])
def test_a_release_that_was_not_examined_has_no_profile(name: str) -> None:
    with pytest.raises(UnknownProfileError, match="no profile"):
        profile_named(name)


def test_an_unknown_profile_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownProfileError) as raised:
        profile_named("nacos-9")
    assert str(raised.value).startswith("no profile 'nacos-9'; known: nacos-2.0.0, nacos-2.0.1, ")
    assert str(raised.value).endswith(", strict")
    with pytest.raises(UnknownProfileError, match=r"'3\.0\.3' \(a release is named nacos-3\.0\.3\); known:"):
        profile_named("3.0.3")
    assert isinstance(raised.value, ValueError)


def test_a_member_list_without_the_node_itself_is_refused() -> None:
    with pytest.raises(ValueError, match=r"lacks the node itself, 127\.0\.0\.1:8848"):
        NodeConfig(port=8848, members=("127.0.0.1:8858",))


def test_other_members_are_sorted_as_text() -> None:
    config = NodeConfig(port=9000, members=("127.0.0.1:9000", "127.0.0.1:8000", "127.0.0.1:10000"))
    assert config.other_members == ("127.0.0.1:10000", "127.0.0.1:8000")
