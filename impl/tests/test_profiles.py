"""The table of profiles and the registry of mutants."""

from __future__ import annotations

import pytest

from distro_impl import (
    MUTANTS,
    PROFILES,
    NodeConfig,
    UnknownMutantError,
    UnknownProfileError,
    profile_named,
    with_mutant,
)


@pytest.mark.parametrize(
    ("name", "sync_delay_ms", "retry_ms", "load_retry_ms"),
    [("nacos-2.0.4", 2000, 5000, 60000), ("nacos-2.2.4", 1000, 3000, 30000), ("strict", 1000, 3000, 30000)],
)
def test_timings_are_those_of_the_sheet(name: str, sync_delay_ms: int, retry_ms: int, load_retry_ms: int) -> None:
    """wire-protocol.md section 6.9."""
    profile = profile_named(name)
    timings = (profile.sync_delay_ms, profile.sync_retry_delay_ms, profile.load_retry_delay_ms)
    assert timings == (sync_delay_ms, retry_ms, load_retry_ms)
    assert (profile.verify_interval_ms, profile.client_expired_ms) == (5000, 180000)


def test_an_unknown_profile_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownProfileError) as raised:
        profile_named("nacos-9")
    assert str(raised.value) == "the node knows no profile 'nacos-9'; known are: nacos-2.0.4, nacos-2.2.4, strict"
    assert isinstance(raised.value, ValueError)


def test_an_unknown_mutant_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownMutantError) as raised:
        with_mutant(PROFILES["strict"], "B99")
    assert str(raised.value) == "the node knows no mutant 'B99'; known are: B02, B07, m-delete-retried-as-change"
    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize("mutant_id", MUTANTS)
def test_a_mutant_changes_the_profile_and_leaves_its_name_on_it(mutant_id: str) -> None:
    profile = PROFILES["strict"]
    mutated = with_mutant(profile, mutant_id)
    assert mutated != profile
    assert (mutated.name, mutated.mutant) == ("strict", mutant_id)
    assert MUTANTS[mutant_id].apply(profile) != profile  # more than the label


def test_a_member_list_without_the_node_itself_is_refused() -> None:
    with pytest.raises(ValueError, match=r"lacks the node itself, 127\.0\.0\.1:8848"):
        NodeConfig(port=8848, members=("127.0.0.1:8858",))


def test_other_members_are_sorted_as_text() -> None:
    config = NodeConfig(port=9000, members=("127.0.0.1:9000", "127.0.0.1:8000", "127.0.0.1:10000"))
    assert config.other_members == ("127.0.0.1:10000", "127.0.0.1:8000")
