"""The violations in the whole logs of real servers: known failures of their releases, each with its symptom."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import pytest
from engines import in_process

from distro_traces.nacos_logs.importer import import_logs

WHOLE = Path(__file__).parents[3] / "shared" / "real-logs"
H1, H2 = "10.0.1.1:80#true", "10.0.1.2:81#true"


@pytest.mark.slow
@pytest.mark.skipif(not WHOLE.is_dir(), reason="the whole logs of real servers are not beside this checkout")
def test_each_failure_of_real_servers_is_known_by_its_symptom_in_their_logs(tmp_path: Path) -> None:
    """h1 is deregistered and its copies keep their revision, in 2.2.4; h2 expires, and travels under the one it had."""
    safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # from 3.11.4 on
    for release in ("2.2.4", "2.2.4-debug", "2.3.2"):
        shutil.unpack_archive(WHOLE / f"nacos-{release}.tar.xz", tmp_path / "logs" / release, **safely)
        import_logs(tmp_path / "logs" / release, tmp_path / "traces", run=release)
    result = in_process(tmp_path / "traces", invariants=["INV-REV"])
    assert result.verdict == "conforms"
    found = {(each.run, each.client, each.known) for each in result.violations if each.client in (H1, H2)}
    assert found == {
        ("2.2.4", H1, "B10"),
        ("2.2.4-debug", H1, "B10"),
        ("2.2.4-debug", H2, "B06"),
        ("2.3.2", H2, "B06"),
    }
    assert {each.run for each in result.violations} == set(result.began)
