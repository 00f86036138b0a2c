"""Every check is seen to fail: a node is broken by a mutant, and the requirement that it breaks is violated.

A line of `noticed.txt` is a requirement and the mutants that violate it, the most specific first, from a run of every
mutant against every requirement (`distrocheck mutants run --level node --json`). A new mutant or requirement is added
with the result of such a run. Here each requirement is checked on a node with its first mutant.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from zlib import adler32

import pytest

from distro_conformance.findings import Judgement
from distro_conformance.node.run import run_requirements
from distro_conformance.node_mutants import MUTANTS
from distro_conformance.requirements import all_requirements
from distro_conformance.targets.embedded import EmbeddedTarget
from distro_impl import PROFILES

_LINES = Path(__file__).with_name("noticed.txt").read_text("utf-8").splitlines()
NOTICED = {name: mutants for name, *mutants in map(str.split, _LINES)}

pytestmark = [pytest.mark.wire, pytest.mark.quality]


@pytest.mark.parametrize(
    "requirement",
    [
        pytest.param(each, marks=[pytest.mark.slow] * (adler32(each.encode()) % 6 > 0))  # a sixth in `make test`
        for each in NOTICED
    ],
)
def test_a_requirement_notices_a_mutant(requirement: str) -> None:
    (finding,) = asyncio.run(run_requirements(EmbeddedTarget("strict", NOTICED[requirement][0]), [requirement]))

    assert finding.judgement is Judgement.VIOLATES, finding.message
    assert finding.expected


OF_EARLIER_RELEASES = {
    "DISTRO-MEMBER-003": replace(PROFILES["nacos-2.5.1"], address_from_ip_and_port=True),
}
"""Requirements that `strict` need not meet, each with a release that has been changed to violate it."""


@pytest.mark.parametrize("requirement", OF_EARLIER_RELEASES)
def test_a_requirement_of_earlier_releases_notices_a_changed_one(requirement: str) -> None:
    (finding,) = asyncio.run(run_requirements(EmbeddedTarget(OF_EARLIER_RELEASES[requirement]), [requirement]))

    assert finding.judgement is Judgement.VIOLATES, finding.message


def test_every_requirement_has_been_seen_to_fail() -> None:
    assert {each.id for each in all_requirements()} == NOTICED.keys() | OF_EARLIER_RELEASES.keys()


ONLY_IN_LOCKSTEP = {"B36", "D7", "m-load-waits-for-down"}
"""They show when a listed member does not exist, when a node of `strict`, which announces what it accepts, keeps the
client of another owner, and when two of three nodes start without the third. No requirement covers
them; lockstep kills them."""


def test_every_other_mutant_is_noticed_by_a_requirement() -> None:
    noticed = {mutant for mutants in NOTICED.values() for mutant in mutants}
    assert MUTANTS.keys() - ONLY_IN_LOCKSTEP == noticed
