"""The Spark session of this project's entry points, and the Java it needs.

Only entry points (the command line, tests, benchmarks) may call `local_session`: under `spark-submit` the session
exists already, and library code takes what it is given. Java is looked at before Spark starts it, because a missing
or too old one would otherwise show as a stack trace.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

from pyspark.sql import SparkSession

JAVA_MIN = 17
_JAVA_TIMEOUT_S = 20
_SHUFFLE_PARTITIONS = 2
_SMALL_JAVA_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class JavaMissingError(RuntimeError):
    """There is no Java that Spark 4 can run on. The message is one line that says what to do."""


def require_java() -> int:
    """The major version of the Java that Spark will start. Raises JavaMissingError unless it is 17 or later."""
    java = _java()
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=True, timeout=_JAVA_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError) as error:
        raise JavaMissingError(f"{java} does not run ({error}); install Java {JAVA_MIN} or later") from error
    version = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    if version is None:
        raise JavaMissingError(f"{java} does not say its version; install Java {JAVA_MIN} or later")
    major = int(version[1])
    if major < JAVA_MIN:
        raise JavaMissingError(
            f"{java} is Java {major}, the trace check needs {JAVA_MIN} or later; install one and point JAVA_HOME to it"
        )
    return major


def local_session(master: str = "local[*]", *, small: bool = False) -> SparkSession:
    """Start Spark in this process for an entry point: no UI, few partitions, quiet, loopback only, times in UTC.

    `small`: for recordings of one sitting, where compiling and planning take longer than the work; on millions of
    events it costs more than it saves. Stop the session with `session.stop()`. Raises JavaMissingError before a JVM
    is started.
    """
    require_java()
    log4j = resources.files("distro_spark") / "log4j2-quiet.properties"
    java_options = [f"-Dlog4j2.configurationFile={Path(str(log4j)).as_uri()}", *(_SMALL_JAVA_OPTIONS if small else ())]
    settings = {
        "spark.pyspark.python": sys.executable,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": " ".join(java_options),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.adaptive.enabled": str(not small).lower(),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(_SHUFFLE_PARTITIONS),
        # A recorded gate is hundreds of small files: list them here instead of in a job, pack them into few tasks.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
        "spark.sql.files.openCostInBytes": "16384",
    }
    builder = SparkSession.builder.master(master).appName("distrocheck")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _java() -> str:
    """The same choice as Spark's launcher: JAVA_HOME first, then PATH."""
    home = os.environ.get("JAVA_HOME")
    if home:
        return str(Path(home) / "bin" / "java")
    java = shutil.which("java")
    if java is None:
        raise JavaMissingError(
            f"no Java found, the trace check needs {JAVA_MIN} or later; install one, or point JAVA_HOME to it"
        )
    return java
