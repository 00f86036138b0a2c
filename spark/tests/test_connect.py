"""`check --master sc://…` on a server of Spark Connect, without a local JVM; no code here needs one."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
from engines import in_process
from spark_classes import SUBMIT_OPTIONS

import distro_spark
from distro_conformance.simulation.run import SimulationOptions, simulate
from distro_model.simulation.faults import faults_named

LIBRARY = Path(distro_spark.__file__).parent
OF_A_JVM = re.compile(r"\b(_jvm|_jsc|_jdf|py4j|sparkContext|parallelize)\b|\.rdd\b|sparkContext\.broadcast")

WITHIN_S = 600


@contextmanager
def server(place: Path) -> Iterator[str]:
    """The address of a server of Spark Connect on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    home = Path(pyspark.__file__).parent
    service = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal")
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SUBMIT_OPTS": SUBMIT_OPTIONS,
        "PYSPARK_PYTHON": sys.executable,
    }
    with (place / "server.log").open("wb") as log:
        running = subprocess.Popen(
            [
                home / "bin" / "spark-class",
                "org.apache.spark.deploy.SparkSubmit",
                "--master=local[1]",
                f"--conf=spark.connect.grpc.binding.port={port}",
                *service,
            ],
            env=environment,
            cwd=place,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + WITHIN_S
        while not _listens(port):
            assert running.poll() is None, (place / "server.log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def test_the_library_needs_no_local_jvm() -> None:
    """But for the gateway's own errors, which are looked up where one is loaded."""
    named = {
        (path.name, found.group())
        for path in LIBRARY.rglob("*.py")
        for line in path.read_text().splitlines()
        for found in OF_A_JVM.finditer(line)
    }
    assert named == {("errors.py", "py4j")}


@pytest.mark.spark
@pytest.mark.slow
def test_a_server_of_spark_connect_finds_the_same(tmp_path: Path) -> None:
    simulate(
        SimulationOptions(
            out=tmp_path / "runs", clients=4, duration_s=60, seed=2, faults=faults_named("all"), mutant="B02"
        )
    )
    expected = in_process(tmp_path / "runs", convergence=True, responsibility=True).without_times()
    assert expected.violations
    command = str(Path(sys.executable).with_name("distrocheck"))
    check = [command, "check", str(tmp_path / "runs"), "--convergence", "--responsibility", "--json", "--master"]
    environment = {**os.environ, "PATH": "/nowhere", "JAVA_HOME": "/nowhere"}
    with server(tmp_path) as address:
        done = subprocess.run(
            [*check, address], env=environment, capture_output=True, text=True, check=False, timeout=WITHIN_S
        )
    assert done.returncode == 1, done.stderr[-3000:]
    found = json.loads(done.stdout)
    wanted = json.loads(json.dumps(expected.to_json()))
    for each in (found, *found["invariants"]):
        each["seconds"] = 0.0
    assert {name: found[name] for name in wanted} == wanted
