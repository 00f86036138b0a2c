"""A check in this process: it needs neither Java nor Spark, and no line of a recording ends it."""

import subprocess
import sys
from pathlib import Path

import pytest

from distro_spark.local import Local
from distro_traces.content import digest
from distro_traces.event import Kind
from distro_traces.ndjson import Recorder

COMMAND = """
import sys
from distro_conformance.__main__ import main
try:
    main()
finally:
    loaded = [name for name in ("pyspark", "py4j", "numba", "pandas") if name in sys.modules]
    assert not loaded, loaded
"""


def test_no_java_is_needed_and_no_spark_is_loaded(tmp_path: Path) -> None:
    with Recorder(tmp_path, "r1", profile="strict", target="test", nodes=["a"]) as recorder:
        recorder.record("a", Kind.CLIENT_CONNECTED, at_ms=1, client="c1", owned=True, revision=0, digest=digest(()))
        recorder.record("a", Kind.CHECKPOINT, at_ms=5, detail="1")
    options = ["--convergence", "--responsibility", "--replay", "--out", str(tmp_path / "found"), "--json"]
    command = [sys.executable, "-c", COMMAND, "check", str(recorder.path), *options]
    environment = {"PATH": "/nowhere", "JAVA_HOME": "/nowhere", "HOME": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr


EVENT = '{"run":"r1","node":"a","seq":1,"at_ms":1,"kind":"node_started"}'


@pytest.mark.parametrize(
    ("line", "reason"),
    [("null", "not a JSON object"), ("[]", "not a JSON object"), (f"\n{EVENT}{EVENT}", "not JSON")],
    ids=["null", "a list", "two objects after an empty line"],
)
def test_a_line_that_is_no_object_is_set_aside(tmp_path: Path, line: str, reason: str) -> None:
    """Arrow's reader ends the process where such a line is the first of a block."""
    with Recorder(tmp_path, "r1", profile="strict", target="test") as recorder:
        pass
    with recorder.path.open("a") as file:
        file.write(f"{line}\n{EVENT}\n")
    (found,) = Local(recorder.path).set_aside().invalid
    assert (found.reason, found.rows) == (reason, 1)
