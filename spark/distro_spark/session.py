"""The Spark session of this project's entry points, and the Java it needs.

Only entry points (the command line, tests, benchmarks) may call `local_session`: under `spark-submit` the session
exists already, and library code takes the session that it is given.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from threading import current_thread, main_thread

from pyspark.sql import SparkSession

from distro_spark.errors import SessionError, one_line
from distro_spark.java import require_java

_IS_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""In the environment of a program that spark-submit has started."""

CONNECT = "sc://"
_MASTERS = (CONNECT, "local", "spark://", "k8s://", "yarn")

_LOCAL_SETTINGS = {
    # Each task has a core of its own.
    "spark.executorEnv.POLARS_MAX_THREADS": "1",
    # Executors on other machines must reach the driver: Spark finds its address itself.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Large data is partitioned by its size; the rest (a line for each node, for example) needs no more than this.
    "spark.sql.shuffle.partitions": "2",
    # A recorded gate is hundreds of small files: list them here instead of in a job, and put them into few tasks.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    "spark.sql.files.openCostInBytes": "16384",
    # The files and chunks that the tasks of one JVM hold: 1 GiB, Spark's default, is too little for 100 million rows.
    "spark.driver.memory": "3g",
}
_SMALL_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_SMALL_JAVA_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def local_session(
    master: str | None = None, *, small: bool = False, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Start Spark for an entry point. Without `master`: the master of spark-submit, else this machine.

    Settings of a session that spark-submit starts are not changed. Other sessions have no UI and log little. `small`,
    on this machine: for short recordings, where compiling and planning take longer than the work; on millions of
    events it costs more than it saves. `settings` are Spark's, and override those made here. Stop the session with
    `session.stop()`. Raises JavaMissingError before a JVM is started, and SessionError.
    """
    if master is None and _IS_SUBMITTED in os.environ:
        return _built(SparkSession.builder, settings or {}).getOrCreate()
    if master is not None and master.startswith(CONNECT):
        return _connected(master)
    require_java()
    master = master or "local[*]"
    if not master.startswith(_MASTERS):
        raise SessionError(f"no Spark master '{master}'; one begins with {', '.join(_MASTERS)}")
    # The setting `spark.pyspark.python` is for spark-submit only; without this, tasks run on the first `python3`.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    log4j = resources.files("distro_spark") / "log4j2-quiet.properties"
    java_options = [f"-Dlog4j2.configurationFile={Path(str(log4j)).as_uri()}"]
    own = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Else every column expression asks Python for its line number, which costs more than the expression.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
    }
    if master.startswith("local"):
        own |= _LOCAL_SETTINGS
        if small:
            own |= _SMALL_SETTINGS
            java_options += _SMALL_JAVA_OPTIONS
    own["spark.driver.extraJavaOptions"] = " ".join(java_options)
    builder = _built(SparkSession.builder.master(master), own | dict(settings or {}))
    with one_line(lambda text: SessionError(f"Spark does not start on {master}: {text}")), _ends_held_back():
        return builder.getOrCreate()


def _connected(master: str) -> SparkSession:
    """A session of a Spark Connect server, whose settings are its own."""
    with one_line(lambda text: SessionError(f"no Spark Connect server at {master}: {text}"), ImportError):
        return SparkSession.builder.remote(master).getOrCreate()


def _built(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession.Builder:
    builder = builder.appName("distrocheck")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder


@contextmanager
def _ends_held_back() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM until the JVM and Spark are up, a second or two later.

    A JVM that PySpark abandons before never ends; one that is up ends with this process, which holds its standard
    input, and leaves no directories.
    """
    if current_thread() is not main_thread():
        yield
        return
    received: list[int] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    handlers = {number: handler for number, handler in handlers.items() if handler not in (signal.SIG_IGN, None)}
    for number in handlers:
        signal.signal(number, lambda number, _: received.append(number))
    try:
        yield
    finally:
        for each, handler in handlers.items():  # PySpark has set one of its own
            signal.signal(each, handler)
        for late in received:
            signal.raise_signal(late)
