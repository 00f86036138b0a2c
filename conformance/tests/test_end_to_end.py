"""End to end on real servers: they diverge, the trace names the node and the cause, and a failing test is written.

In 2.2.4 a batch does not move the revision on (B18), so the copy that missed one, since a link of the kit swallowed its
CHANGE, is confirmed by every verify. Skipped, with the reason, where there is no Java and where Maven cannot fetch the
release.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from programs import Document, executed

from distro_conformance.language.recording import record
from distro_conformance.language.text import parse
from distro_conformance.targets.releases import nacos_release
from distro_conformance.verdict import Verdict
from distro_spark.check import check
from distro_spark.local import Local
from distro_traces.event import BATCH, Event, Kind
from distro_traces.reading import read_run

RELEASE = "2.2.4"
TARGET, PROFILE = f"nacos:{RELEASE}", f"nacos-{RELEASE}"
_RUNS_MAX = 3
LOST_BATCH = parse(
    """
nodes a b c
connect c1 a
batch c1 web 10.0.0.1:80, 10.0.0.2:80
advance 5s
swallow a->b CHANGE c1
batch c1 web 10.0.0.1:80, 10.0.0.2:80, 10.0.0.3:80
advance 12s
checkpoint
"""
)


@pytest.mark.wire
@pytest.mark.slow
def test_a_real_cluster_that_diverges_ends_as_a_test_that_fails(
    tmp_path: Path, document: Document, need_release: Callable[..., None]
) -> None:
    need_release(nacos_release(RELEASE))
    trace, change = _recorded(TARGET, tmp_path)
    _check_names_node_client_and_message(trace, change)
    _validate_names_the_guard(trace, document)
    test = _reproduced(trace, ("model", TARGET, "embedded"), document)
    ran = executed(sys.executable, "-m", "pytest", "-q", test, cwd=tmp_path)
    assert ran.returncode == 1, ran.stdout
    assert "'expect within 15s: all agree'" in ran.stdout


@pytest.mark.wire
def test_reference_nodes_of_that_release_go_the_same_way(tmp_path: Path, document: Document) -> None:
    trace, _ = _recorded("embedded", tmp_path)
    _validate_names_the_guard(trace, document)
    assert (
        'assert_scenario(SCENARIO, target="embedded")'
        in _reproduced(trace, ("model", "embedded"), document).read_text()
    )


def _recorded(target: str, directory: Path) -> tuple[Path, Event]:
    """The trace, and the row of the change that does not come through."""
    trace = directory / "recorded"
    record(LOST_BATCH, target=target, profile=PROFILE, directory=trace, run="lost-batch")
    changes = _rows(trace, Kind.CLIENT_CHANGED)
    assert [change.detail for change in changes] == [BATCH, BATCH]
    return trace, changes[1]


def _reproduced(trace: Path, targets: Sequence[str], document: Document) -> Path:
    """The pytest file of the trace's scenario, which each target violates; a run in real time that the machine leaves
    open is repeated."""
    scenario, test = trace.with_name("lost-batch.scenario"), trace.with_name("test_lost_batch.py")
    document("export", str(trace), "--to", "scenario", "--out", str(scenario))
    for target in targets:
        for _ in range(_RUNS_MAX):
            code, again = document("replay", str(scenario), "--target", target, "--pytest", str(test))
            if code != Verdict.INCONCLUSIVE.exit_code:
                break
        assert (code, again["reproduced"], again["profile"]) == (1, True, PROFILE), again
    return test


def _check_names_node_client_and_message(trace: Path, change: Event) -> None:
    found = check(Local(trace))
    (diverged,) = [each for each in found.violations if each.invariant == "INV-CONV"]
    assert (diverged.node, diverged.client, diverged.known) == ("b", "c1", "B18")
    assert (diverged.first_event.node, diverged.first_event.seq) == (change.node, change.seq)
    (lost,) = [row for row in _rows(trace, Kind.REQUEST_SENT) if row.peer == "b" and row.digest == change.digest]
    assert diverged.evidence["lost_message"] == lost.message
    assert f"{lost.message} (CHANGE) of a never reached it" in diverged.message


def _validate_names_the_guard(trace: Path, document: Document) -> None:
    """The release may do so; with every defect repaired the first batch already is no step of the owner."""
    change = _rows(trace, Kind.CLIENT_CHANGED)[0]
    code, of_release = document("validate", str(trace))
    assert (code in (0, 3), of_release["accepted"]) == (True, True), of_release
    code, repaired = document("validate", str(trace), "--profile", "strict")
    rejection = repaired["rejection"]
    assert (code, rejection["event"]["node"], rejection["event"]["seq"]) == (1, change.node, change.seq)
    assert [each["guard"] for each in rejection["candidates"]] == ["this is its revision"]


def _rows(trace: Path, kind: Kind) -> list[Event]:
    return [event for event in read_run(trace).events if (event.kind, event.client) == (kind, "c1")]
