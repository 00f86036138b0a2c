"""A session of Spark Connect, which has no local JVM, has the same results; no code here needs a local JVM."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from engines import in_process, timeless

import distro_spark
from distro_conformance.simulation.run import SimulationOptions, simulate
from distro_model.simulation.faults import faults_named

LIBRARY = Path(distro_spark.__file__).parent
OF_A_JVM = re.compile(r"\b(_jvm|_jsc|_jdf|py4j|sparkContext|parallelize)\b|\.rdd\b|sparkContext\.broadcast")

JOB = """
import json, sys
from pyspark.sql import SparkSession
from distro_spark.check import check
from distro_spark.on_spark import OnSpark

session = SparkSession.builder.remote("local[1]").getOrCreate()
assert "connect" in type(session).__module__
before = dict(session.conf.getAll)
with OnSpark(session, sys.argv[1]) as engine:
    found = check(engine, convergence=True, responsibility=True)
assert dict(session.conf.getAll) == before
print(json.dumps(found.to_json()))
"""


def test_the_library_needs_no_local_jvm() -> None:
    """But for the gateway's own errors, which are looked up where one is loaded."""
    named = {
        (path.name, found.group())
        for path in LIBRARY.rglob("*.py")
        for line in path.read_text().splitlines()
        for found in OF_A_JVM.finditer(line)
    }
    assert named == {("raised.py", "py4j")}


@pytest.mark.spark
def test_a_session_of_spark_connect_finds_the_same(tmp_path: Path) -> None:
    simulate(
        SimulationOptions(
            out=tmp_path / "runs", clients=4, duration_s=60, seed=2, faults=faults_named("all"), mutant="B02"
        )
    )
    expected = timeless(in_process(tmp_path / "runs", convergence=True, responsibility=True))
    assert expected.violations
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", JOB, str(tmp_path / "runs")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    wanted = json.loads(json.dumps(expected.to_json()))
    for document in (found, wanted):
        document["seconds"] = 0
        for each in document["invariants"]:
            each["seconds"] = 0
    assert found == wanted
