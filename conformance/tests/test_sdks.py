"""The official SDKs on reference nodes, and the table for a node that misbehaves or a machine that lacks a tool.

Each SDK has a cluster of its own, and all run side by side: most of their time is waiting. An SDK that this machine
cannot fetch is reported with the reason; the Python SDK comes with the test extra, so it is always there.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from distro_conformance.findings import Finding, Judged, Judgement
from distro_conformance.verdict import TargetError, UsageError, Verdict
from distro_impl.settings import SettingError
from distro_interop.sdks import registry, scenarios
from distro_interop.sdks import run as sdk_runs
from distro_interop.sdks.build import SdkMissingError, built
from distro_interop.sdks.environment import Environment
from distro_interop.sdks.nodes import CREDENTIALS, Nodes
from distro_interop.sdks.registry import SDKS
from distro_interop.sdks.run import run_sdks
from distro_interop.sdks.scenarios import SCENARIOS

pytestmark = pytest.mark.wire

GRPC_SDKS = ("python", "java2", "go")
HTTP_SDKS = ("java1", "node")
FOR_HTTP = ("register", "subscribe", "deregister", "login", "kill-client")
"""A killed node takes a minute, since the test waits for an event that must not happen."""


@pytest.fixture(scope="module")
def cells() -> tuple[Finding, ...]:
    async def side_by_side() -> tuple[Finding, ...]:
        grpc, http = await asyncio.gather(
            run_sdks("embedded", "nacos-2.2.4", GRPC_SDKS, None, quiet, jobs=len(GRPC_SDKS)),
            run_sdks("embedded", "nacos-2.2.4", HTTP_SDKS, FOR_HTTP, quiet, jobs=len(HTTP_SDKS)),
        )
        return grpc.findings + http.findings

    return asyncio.run(side_by_side())


@pytest.mark.slow  # the official Python SDK is met in impl/tests too
@pytest.mark.parametrize("name", GRPC_SDKS + HTTP_SDKS)
def test_an_official_sdk_cannot_distinguish_reference_nodes_from_nacos(cells: tuple[Finding, ...], name: str) -> None:
    of_sdk = [cell for cell in cells if cell.client == name]
    if name != "python" and of_sdk[0].judgement is Judgement.NOT_JUDGED:
        pytest.skip(of_sdk[0].message)
    assert [cell for cell in of_sdk if cell.judgement is not Judgement.CONFORMS] == []
    assert len(of_sdk) == (len(SCENARIOS) if name in GRPC_SDKS else len(FOR_HTTP))


@pytest.mark.slow
def test_nodes_that_push_late_fail_with_what_the_sdk_received() -> None:
    late = ["nacos.naming.push.pushTaskDelay=60000"]
    report = asyncio.run(run_sdks("embedded", "nacos-2.2.4", ["python"], ["subscribe"], quiet, settings=late))
    (cell,) = report.findings
    assert (cell.judgement, report.verdict) == (Judgement.VIOLATES, Verdict.VIOLATES)
    assert cell.message == "not notified of 10.0.1.1:8001 within 8 s, last of nothing"


@pytest.mark.slow
def test_a_password_that_opens_although_it_must_not_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "WRONG_CREDENTIALS", CREDENTIALS)
    (cell,) = run(["python"], ["login"]).findings
    assert (cell.judgement, cell.message) == (
        Judgement.VIOLATES,
        "the SDK reports success of a registration with a wrong password",
    )


@pytest.mark.parametrize(
    ("sdk", "profile", "scenario", "is_offered"),
    [
        ("java2", "nacos-2.2.4", "batch", True),
        ("java2", "nacos-2.0.4", "batch", False),
        ("java2.0", "nacos-2.2.4", "batch", False),
        ("java1", "nacos-2.2.4", "close", False),
        ("java1", "nacos-2.2.4", "login", False),
    ],
)
def test_features_that_sdk_or_nodes_lack_are_not_tested(
    sdk: str, profile: str, scenario: str, is_offered: bool
) -> None:
    env = Environment(SDKS[sdk], Path(), Nodes((), profile))
    assert SCENARIOS[scenario].is_offered(env) is is_offered


def test_an_sdk_that_cannot_be_had_says_nothing_about_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SDKS, "python", replace(SDKS["python"], build=(("no-such-tool", "build"),)))
    report = run(["python"], ["register"])
    (cell,) = report.findings
    assert (cell.judgement, report.verdict) == (Judgement.NOT_JUDGED, Verdict.INCONCLUSIVE)
    assert cell.message == "the SDK python needs 'no-such-tool', which is not installed"


@pytest.mark.slow
def test_trouble_of_the_kit_with_the_nodes_is_no_verdict_on_them(monkeypatch: pytest.MonkeyPatch) -> None:
    async def out_of_reach(_: Environment) -> None:
        raise TargetError("the node is not to be reached")

    monkeypatch.setitem(SCENARIOS, "register", replace(SCENARIOS["register"], run=out_of_reach))
    report = run(["python"], ["register"])
    (cell,) = report.findings
    assert (cell.judgement, report.verdict) == (Judgement.NOT_JUDGED, Verdict.INCONCLUSIVE)
    assert cell.message == "the node is not to be reached"


def test_a_failed_build_is_reported_in_one_line_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DISTROCHECK_CACHE", str(tmp_path))
    says_why = (sys.executable, "-c", "import sys; sys.exit('no route\\nto the registry')")
    with pytest.raises(SdkMissingError, match=r"^the SDK go cannot be built: .* says: no route to the registry$"):
        asyncio.run(built(replace(SDKS["go"], build=(says_why,)), quiet))
    assert list((tmp_path / "sdks").iterdir()) == []


def test_a_changed_program_is_built_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DISTROCHECK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(registry, "SOURCES", tmp_path)
    program = tmp_path / "python" / "client.py"
    program.parent.mkdir()
    program.write_text("first")
    first = asyncio.run(built(SDKS["python"], quiet))
    assert asyncio.run(built(SDKS["python"], quiet)) == first
    program.write_text("second")
    second = asyncio.run(built(SDKS["python"], quiet))
    assert ((first / "client.py").read_text(), (second / "client.py").read_text()) == ("first", "second")


@pytest.mark.parametrize(
    ("target", "profile", "sdk", "scenario", "problem"),
    [
        ("moon", None, "python", "register", "starts its nodes itself: --target embedded or nacos:VERSION, not 'moon'"),
        ("nacos:2.2.4", "strict", "python", "register", "behaves as nacos-2.2.4; it takes no other profile"),
        ("embedded", None, "cobol", "register", "no SDK 'cobol'; known: python, "),
        ("embedded", None, "python", "dance", "no scenario 'dance'; known: register, "),
    ],
)
def test_sdk_runs_that_cannot_be_run_are_refused(
    target: str, profile: str, sdk: str, scenario: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sdk_runs, "built", None)  # nothing is built before
    with pytest.raises(UsageError, match=problem):
        asyncio.run(run_sdks(target, profile, [sdk], [scenario], quiet))


@pytest.mark.parametrize(("setting", "problem"), [("delay", "KEY=VALUE, not 'delay'"), ("a.b=1", "no setting 'a.b'")])
def test_a_setting_that_there_is_not_is_refused_before_anything_is_built(
    setting: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sdk_runs, "built", None)
    with pytest.raises((UsageError, SettingError), match=problem):
        asyncio.run(run_sdks("embedded", None, ["python"], ["register"], quiet, settings=[setting]))


def run(sdks: Sequence[str], of: Sequence[str]) -> Judged:
    return asyncio.run(run_sdks("embedded", "nacos-2.2.4", sdks, of, quiet, jobs=len(sdks)))


def quiet(_: str) -> None: ...
