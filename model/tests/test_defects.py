"""The table of known defects: its releases are those of the model's history, and a release has it or has it not."""

from __future__ import annotations

import pytest

from distro_model.defects import DEFECTS, Clause, Defect, Symptom
from distro_model.defects.defect import LAST_READ
from distro_model.defects.symptom import of
from distro_model.profiles import PROFILES, RELEASES
from distro_model.release import Span, parsed

FIRST = "2.0.0"
STARTS = [release.span.split()[0] for release in RELEASES]
REPAIRED_IN_PART = ("D4", "B37")
"""D4: from 2.3.0 on instances have an id, in which their cluster is; those without one are still compared without it.
B37: 2.0.2 drops the tasks of a node that has left, unless its address is a part of a member's."""
ELSEWHERE = ("push-of-every-cluster", "subscription-shows-disabled", "revision-zero-wildcard")
"""The history of the model does not name them: pushes have no clusters there, and the rule for 0 has no defect's id."""


@pytest.mark.parametrize("name", [name for name in DEFECTS if name not in ELSEWHERE])
def test_the_table_and_the_history_of_the_model_name_the_same_releases(name: str) -> None:
    releases = DEFECTS[name].releases
    broke = [start for start, each in zip(STARTS, RELEASES, strict=True) if name in each.broke]
    fixed = [start for start, each in zip(STARTS, RELEASES, strict=True) if name in each.fixed]
    if releases is None:
        assert (broke, fixed) == ([], [])
        return
    assert (releases.since or FIRST) == (broke[0] if broke else FIRST)
    if fixed and name not in REPAIRED_IN_PART:
        assert releases.until is not None
        before = STARTS[STARTS.index(fixed[0]) - 1]
        assert parsed(before) <= parsed(releases.until) < parsed(fixed[0])
    else:
        assert releases.until is None


DEFECT = Defect(id="x", sentence="", releases=Span("2.1.2"), link="", last_seen="2.5.1")


@pytest.mark.parametrize(
    ("profile", "has_it", "only_expected"),
    [
        ("nacos-2.1.1", False, False),
        ("nacos-2.1.2", True, False),
        ("nacos-2.5.1", True, False),
        ("nacos-3.0.0", True, True),
        ("strict", False, False),
        ("nacos-next", False, None),
    ],
)
def test_a_defect_without_an_end_is_expected_of_later_releases(
    profile: str, has_it: bool, only_expected: bool | None
) -> None:
    assert DEFECT.is_of(profile) is has_it
    if only_expected is not None:
        assert DEFECT.is_expected_only(profile) is only_expected


def test_an_unreleased_defect_is_of_no_profile_and_strict_has_none() -> None:
    assert not any(defect.is_of("strict") for defect in DEFECTS.values())
    unreleased = [name for name, defect in DEFECTS.items() if defect.releases is None]
    assert unreleased == ["B07"]
    assert not any(DEFECTS["B07"].is_of(profile) for profile in PROFILES)


def test_every_defect_was_seen_no_later_than_the_last_release_that_was_read() -> None:
    assert all(parsed(defect.last_seen) <= parsed(LAST_READ) for defect in DEFECTS.values())


def test_a_symptom_holds_with_all_clauses_and_in_its_own_releases() -> None:
    even, small = Clause[int]("even", lambda n: n % 2 == 0), Clause[int]("small", lambda n: n < 10)
    symptom = Symptom(bug="B10", about=("INV-A", "INV-B"), sentence="", clauses=(even, small), releases=Span("2.2.0"))
    assert [symptom.missing(n) for n in (4, 14, 15)] == [(), (small,), (even, small)]
    spoken = {profile: of([symptom], "INV-B", profile) for profile in ("nacos-2.1.2", "nacos-2.2.4", "nacos-2.3.0")}
    assert spoken == {"nacos-2.1.2": [], "nacos-2.2.4": [symptom], "nacos-2.3.0": []}
    assert not of([symptom], "INV-C", "nacos-2.2.4")
