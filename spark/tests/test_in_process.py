"""A check in this process needs neither Java nor Spark."""

import subprocess
import sys
from pathlib import Path

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
