"""Slow answers of a node excuse nothing: a late or wrong action is a violation, however long the node takes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from programs import ROOT

from distro_conformance import waiting
from distro_conformance.findings.finding import Judgement
from distro_conformance.node.run import run_node_conformance
from distro_conformance.slack import Slack
from distro_conformance.targets.registry import resolve_target
from distro_conformance.verdict import Verdict

SERVE = ROOT / "docs" / "examples" / "serve.toml"

SLOW_QUERY = """
import asyncio
from distro_impl.transport import grpc_transport
at_once = grpc_transport.GrpcServer._unary
async def slow(self, request, context):
    await asyncio.sleep({seconds} if b'"QUERY"' in request else 0)
    return await at_once(self, request, context)
grpc_transport.GrpcServer._unary = slow
"""
CONFIRMS_EVERY_VERIFY = """
from distro_impl.distro.data_processor import DistroClientDataProcessor
DistroClientDataProcessor.process_verify = lambda *_: True
"""
RETRIES_LATE = "nacos.core.protocol.distro.data.sync.retryDelayMs=12000"


def _described(tmp_path: Path, program: str, *settings: str) -> str:
    """A reference node as a process, of a program that changes it first."""
    changed, described = tmp_path / "changed.py", tmp_path / "changed.toml"
    changed.write_text(f"{program}\nfrom distro_conformance.cli import main\nmain()\n")
    words = "".join(f', "--set", "{setting}"' for setting in settings)
    command = f'command = ["{sys.executable}", "{changed}", "serve"{words}'
    text = SERVE.read_text().replace('command = ["distrocheck", "serve"', command).replace("nacos-2.2.4", "strict")
    described.write_text(text)
    return f"process:{described}"


@pytest.mark.wire
@pytest.mark.parametrize(
    ("program", "settings", "requirements"),
    [
        pytest.param(
            *(SLOW_QUERY.format(seconds=0.2), [RETRIES_LATE], ["DISTRO-RETRY-001", "DISTRO-RETRY-002"]),
            id="retries after 12 s instead of 3",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *(SLOW_QUERY.format(seconds=0.42) + CONFIRMS_EVERY_VERIFY, []),
            ["DISTRO-HOLDER-001", "DISTRO-HOLDER-002"],
            id="answers every VERIFY with success",
        ),
    ],
)
def test_a_slow_answer_excuses_nothing(
    program: str, settings: list[str], requirements: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine at leisure: what it takes is 0, and what this one may be late is far less than what is late here."""
    monkeypatch.setattr(Slack, "since", lambda *_: 0)
    monkeypatch.setattr(Slack, "is_starved_since", lambda *_: False)
    monkeypatch.setattr(waiting, "TOLERANCE_MS", 5_000)
    report = run_node_conformance(resolve_target(_described(tmp_path, program, *settings)), requirements)
    assert [finding.judgement for finding in report.findings] == [Judgement.VIOLATES, Judgement.VIOLATES], [
        finding.message for finding in report.findings
    ]
    assert report.verdict is Verdict.VIOLATES
