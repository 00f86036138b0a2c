"""`distrocheck test cluster --target mixed:VERSION`: a real server and reference nodes as members of one cluster."""

from __future__ import annotations

import asyncio

from distro_conformance.cli.output import print_json, progress, row
from distro_conformance.cluster.mixed_script import MixedReport, run_mixed_cluster
from distro_conformance.verdict import UsageError, Verdict

KIND = "mixed"
LEASE_S_MIN = 10.0
"""Two verify periods: below, a healthy copy would expire."""


def run_mixed(release: str, profile: str | None, lease_s: float, *, json: bool) -> Verdict:
    """Run it and print what came of it. Raises UsageError, TargetError."""
    if profile not in (None, f"nacos-{release}"):
        raise UsageError(f"the members of {KIND}:{release} behave as nacos-{release}, not as {profile}")
    if lease_s < LEASE_S_MIN:
        raise UsageError(
            f"a lease of {lease_s:g} s ends before it can be renewed; give --seconds {LEASE_S_MIN:g} or more"
        )
    with progress() as on_progress:
        report = asyncio.run(run_mixed_cluster(release, round(lease_s * 1000), on_progress))
    if json:
        print_json("test cluster", _document(report))
    else:
        for check in report.checks:
            row(Verdict.CONFORMS if check.held else Verdict.VIOLATES, f"{check.name} ({check.seconds:.1f} s)")
        lease = f"lease {report.lease_ms / 1000:g} s"
        row(report.verdict, f"{KIND}:{release}, {len(report.checks)} checks, {lease}, {report.seconds:.1f} s")
    return report.verdict


def _document(report: MixedReport) -> dict[str, object]:
    failing = next((check for check in report.checks if not check.held), None)
    replay = f"distrocheck test cluster --target {KIND}:{report.release} --seconds {report.lease_ms / 1000:g}"
    return {
        "verdict": report.verdict,
        "steps": len(report.checks),
        "seconds": round(report.seconds, 3),
        "requirements": [],
        "checks": [
            {"name": check.name, "held": check.held, "seconds": round(check.seconds, 3), "missing": check.detail}
            for check in report.checks
        ],
        "failure": failing
        and {
            "requirement": KIND.upper(),
            "message": f"{failing.name}: {failing.detail}",
            "steps": report.checks.index(failing) + 1,
            "replay": replay,
        },
    }
