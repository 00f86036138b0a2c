"""A real server of 2.2.4 and two reference nodes as one cluster; other releases are run by hand, with the same command.

Skipped, and said so, where there is no Java and where Maven cannot fetch the release.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys

import pytest

from distro_conformance.cli.mixed import run_mixed
from distro_conformance.targets.maven import jars_of
from distro_conformance.targets.releases import nacos_release
from distro_conformance.verdict import TargetError, UsageError

RELEASE = "2.2.4"
LEASE_S = 10
COMMAND = (sys.executable, "-c", "from distro_conformance.cli import main; main()", "test", "cluster")


@pytest.mark.wire
@pytest.mark.slow
def test_a_real_server_and_reference_nodes_take_each_other_for_their_own_kind() -> None:
    if shutil.which("java") is None:
        pytest.skip("there is no Java here")
    try:
        asyncio.run(jars_of(nacos_release(RELEASE), print))
    except TargetError as error:
        pytest.skip(f"Nacos {RELEASE} cannot be fetched: {error}")

    command = [*COMMAND, "--target", f"mixed:{RELEASE}", "--seconds", str(LEASE_S), "--json"]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
    assert ran.stdout, ran.stderr
    found = json.loads(ran.stdout)
    assert [(check["name"], check["missing"]) for check in found["checks"] if not check["held"]] == []
    assert (ran.returncode, found["verdict"], found["failure"]) == (0, "conforms", None)
    names = [check["name"] for check in found["checks"]]
    assert "none of them is lost within 16 s, beyond the lease" in names
    for other in (
        "reference1, restarted, loads from the real server",
        "both reference nodes show what they have loaded",
        "the real server, restarted, loads from a reference node",
        "the real server shows what it has loaded",
    ):
        assert other in names


@pytest.mark.parametrize(
    ("release", "profile", "lease_s", "complaint"),
    [
        ("9.9.9", None, 20.0, "no Nacos release '9.9.9'; known: 2.0.4"),
        ("2.2.3", None, 20.0, "the node knows no profile 'nacos-2.2.3'"),
        ("2.2.4", "strict", 20.0, "behave as nacos-2.2.4, not as strict"),
        ("2.2.4", None, 5.0, "a lease of 5 s ends before it can be renewed"),
    ],
)
def test_what_is_no_mixed_cluster_is_refused(release: str, profile: str | None, lease_s: float, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        run_mixed(release, profile, lease_s, json=True)
