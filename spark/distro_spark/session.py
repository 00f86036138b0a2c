"""The Spark session of this project's entry points, and the Java it needs.

Only entry points (the command line, tests, benchmarks) may call `local_session`: under `spark-submit` the session
exists already, and library code takes the session that it is given.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from threading import Thread, current_thread, main_thread
from types import FrameType

from pyspark.sql import SparkSession

from distro_spark.errors import SessionError
from distro_spark.java import JavaMissingError, require_java
from distro_spark.raised import first_line, spark_errors

_GREETING = b"WARNING: Using incubator modules"
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
    # A recorded gate is hundreds of small files: list them here instead of in a job, pack them into few tasks.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    "spark.sql.files.openCostInBytes": "16384",
}
_SMALL_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_SMALL_JAVA_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

__all__ = ["JavaMissingError", "local_session", "require_java"]


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
    handler = signal.getsignal(signal.SIGINT)
    logging.disable(logging.CRITICAL)  # an interrupt while the JVM starts would be logged once by each layer
    try:
        with _jvm_greeting_held_back(), _ends_held_back():
            session = builder.getOrCreate()
    except spark_errors() as error:
        raise SessionError(f"Spark does not start on {master}: {first_line(error)}") from error
    finally:
        logging.disable(logging.NOTSET)
    if current_thread() is main_thread():
        unsaid = handler is None or handler is signal.default_int_handler
        signal.signal(signal.SIGINT, _interrupt if unsaid else handler)
    return session


def _connected(master: str) -> SparkSession:
    """A session of a Spark Connect server, whose settings are its own."""
    refusals: tuple[type[Exception], ...] = (ImportError, *spark_errors())
    try:
        return SparkSession.builder.remote(master).getOrCreate()
    except refusals as error:
        raise SessionError(f"no Spark Connect server at {master}: {first_line(error)}") from error


def _built(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession.Builder:
    builder = builder.appName("distrocheck")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder


def _interrupt(*_: object) -> None:
    """In place of PySpark's handler, which calls the JVM during another call and prints long errors of both."""
    logging.disable(logging.CRITICAL)
    raise KeyboardInterrupt


@contextmanager
def _ends_held_back() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM until the JVM and Spark are up, a second or two later.

    An interrupted PySpark removes the directory in which the JVM reports its port; then the JVM's main thread fails,
    and its other threads never end. A JVM that is up ends when its standard input closes, which is with this process.
    But directories that its main thread creates during the end, Spark's directory of user files for one, remain. An
    installed handler of SIGINT is called at once, and may interrupt a second time.
    """
    if current_thread() is not main_thread():
        yield
        return
    received: list[int] = []
    on_interrupt, on_term = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)

    def hold_back(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if number == signal.SIGINT and callable(on_interrupt):
            with suppress(KeyboardInterrupt):
                on_interrupt(number, frame)

    # Other handlers, such as an ignored signal, stay as they are.
    replaced = {signal.SIGINT: callable(on_interrupt), signal.SIGTERM: on_term is signal.SIG_DFL}
    held_back = [number for number, is_replaced in replaced.items() if is_replaced]
    for number in held_back:
        signal.signal(number, hold_back)
    try:
        yield
    finally:
        for number in held_back:
            signal.signal(number, on_interrupt if number == signal.SIGINT else on_term)
    if signal.SIGTERM in received:
        signal.raise_signal(signal.SIGTERM)
    if received:
        raise KeyboardInterrupt


@contextmanager
def _jvm_greeting_held_back() -> Iterator[None]:
    """The JVM warns of an incubator module that Spark asks for, before any log configuration; all else passes."""
    read, write = os.pipe()
    kept = os.dup(2)
    os.dup2(write, 2)
    Thread(target=_pass_on, args=(read, os.dup(kept)), name="stderr of the JVM", daemon=True).start()
    try:
        yield  # the JVM inherits the pipe as its stderr, and keeps it
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(write)


def _pass_on(source: int, target: int) -> None:
    with open(source, "rb") as lines, open(target, "wb", buffering=0) as stderr:
        for line in lines:
            if not line.startswith(_GREETING):
                stderr.write(line)
