"""A cluster of Spark: spark-submit with distrocheck as one file, and a worker that dies.

Jobs with distrocheck installed are those of docs/how-to/operate.md.

Master, workers and driver are real processes on loopback. The traces are the same, so the answer is, too.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyspark
import pytest
from engines import in_process
from spark_classes import JAVA_OPTIONS, SUBMIT_OPTIONS

from distro_conformance.simulation.run import SimulationOptions, simulate
from distro_model.simulation.faults import faults_named

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SPARK_HOME = Path(pyspark.__file__).parent
REPOSITORY = Path(__file__).parents[2]
WITHIN_S = 600
"""Six JVMs on a busy machine; what waits so long hangs."""

JOB = """
import json
import sys
from pathlib import Path
from distro_spark.check import check
from distro_spark.on_spark import OnSpark
from distro_spark.session import local_session

session = local_session()
with OnSpark(session, sys.argv[1]) as engine:
    document = {"found_in": check.__code__.co_filename, **check(engine, replay=True).to_json()}
Path("answer.json").write_text(json.dumps(document))
session.stop()
"""

HELD_JOB = """
import sys
import time
from pathlib import Path
from pyspark import TaskContext
from distro_spark import load, on_spark
from distro_spark import tally as checking

load.PART_ROWS = on_spark.PART_ROWS = 1000
find, place = checking.violations_in, Path(sys.argv[2])

def held(*arguments):
    task = TaskContext.get()
    (place / f"{task.partitionId()}-{task.attemptNumber()}").touch()
    while not (place / "killed").exists():
        time.sleep(0.05)
    return find(*arguments)

checking.violations_in = held
"""


@dataclass
class Process:
    """A JVM and the processes that it starts, with their output in `log`."""

    running: subprocess.Popen[bytes]
    log: Path

    def said(self, pattern: str) -> re.Match[str] | None:
        """Fails when it has ended."""
        assert self.running.poll() is None, self.log.read_text()
        return re.search(pattern, self.log.read_text())

    def kill(self) -> None:
        """Kill the process and those that it started, without a clean end."""
        with suppress(ProcessLookupError):
            os.killpg(self.running.pid, signal.SIGKILL)
        self.running.wait()


def eventually(what: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        if found := what():
            return found
        time.sleep(0.1)
    raise AssertionError(f"not within {WITHIN_S} s")


@contextmanager
def started(place: Path, name: str, *command: str) -> Iterator[Process]:
    options = {"SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS, "SPARK_SUBMIT_OPTS": SUBMIT_OPTIONS}
    environment = {**os.environ, **options, "SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1"}
    log = place / f"{name}.log"
    with log.open("wb") as output:
        running = subprocess.Popen(
            [str(SPARK_HOME / "bin" / "spark-class"), *command],
            env=environment,
            cwd=place,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    process = Process(running, log)
    try:
        yield process
    finally:
        process.kill()


@dataclass
class Cluster:
    url: str
    workers: tuple[Process, Process]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers of one core each."""
    place = tmp_path_factory.mktemp("cluster")
    here = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")

    def worker(name: str, url: str) -> Any:
        size = ("--cores", "1", "--memory", "1g", "--work-dir", str(place / name))
        return started(place, name, "org.apache.spark.deploy.worker.Worker", *here, *size, url)

    with started(place, "master", "org.apache.spark.deploy.master.Master", *here) as master:
        url = eventually(lambda: master.said(r"Starting Spark master at (spark://\S+)"))[1]
        with worker("one", url) as one, worker("two", url) as two:
            for each in (one, two):
                eventually(lambda each=each: each.said("Successfully registered with master"))
            yield Cluster(url, (one, two))


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("traces") / "out"
    faults = faults_named("all")
    simulate(SimulationOptions(out=out, clients=4, duration_s=60, seed=2, faults=faults, mutant="B02"), lambda *_: None)
    return out


@contextmanager
def submitted(cluster: Cluster, place: Path, job: str, *arguments: str, **options: str) -> Iterator[Process]:
    """`options`: of spark-submit. It runs with the same Python on driver and workers."""
    (place / "job.py").write_text(job)
    (place / "answer.json").unlink(missing_ok=True)
    settings = {"spark.driver.host": "127.0.0.1", "spark.executor.memory": "512m"}
    settings["spark.executor.extraJavaOptions"] = JAVA_OPTIONS
    if "PYTHONPATH" in os.environ:
        settings["spark.executorEnv.PYTHONPATH"] = os.environ["PYTHONPATH"]
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    flags += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = ("org.apache.spark.deploy.SparkSubmit", f"--master={cluster.url}", *flags, "job.py", *arguments)
    with started(place, "driver", *command) as driver:
        yield driver


def answer(driver: Process) -> Mapping[str, Any]:
    assert driver.running.wait(WITHIN_S) == 0, driver.log.read_text()
    document: dict[str, Any] = json.loads((driver.log.parent / "answer.json").read_text())
    return document


def without_times(document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are equal in every run."""
    kept = {key: value for key, value in document.items() if key not in ("seconds", "found_in")}
    kept["invariants"] = [{**each, "seconds": 0} for each in document["invariants"]]
    return kept


def test_a_worker_that_dies_in_the_middle_changes_no_answer(
    cluster: Cluster, traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = without_times(json.loads(json.dumps(in_process(traces, replay=True).to_json())))
    assert here["verdict"] == "violates"
    # Another Python, which has the libraries and no distrocheck but in the one file that is sent along.
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
    )
    (built,) = tmp_path.glob("*.whl")
    one_file = shutil.copy(built, tmp_path / "distrocheck.zip")
    monkeypatch.setenv("PYSPARK_PYTHON", os.path.realpath(sys.executable))
    monkeypatch.setenv("PYTHONPATH", str(Path(np.__file__).parents[1]))
    held = tmp_path / "held"
    held.mkdir()
    with submitted(cluster, tmp_path, HELD_JOB + JOB, str(traces), str(held), py_files=str(one_file)) as driver:
        # Each worker is running a task.
        eventually(lambda: driver.said("") and len(list(held.iterdir())) == 2)
        cluster.workers[1].kill()
        (held / "killed").touch()
        sent_along = answer(driver)
    assert without_times(sent_along) == here
    assert "distrocheck.zip" in sent_along["found_in"]
    attempts = [path.name for path in held.iterdir() if path.name != "killed"]
    assert any(not name.endswith("-0") for name in attempts), attempts
