"""How tests start Spark quickly: options of its JVMs, and an archive of the classes that it loads, which
`spark_classes.py ARCHIVE` writes.

With `-XX:SharedArchiveFile=ARCHIVE` a start of Spark takes half of the processor time, and the tests start it some
twenty times. What they do is done here once: a recording is stored in a table of Hive's catalog, checked, and its
violations are written to a database. The archive fits this Java and the jars of this environment. With others, and if
the file is empty because this Java can write none, Java starts without it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from pyspark import SparkContext

from distro_spark import tables
from distro_spark.check import check
from distro_spark.load import load
from distro_spark.on_spark import OnSpark
from distro_spark.session import local_session
from distro_spark.sinks import JdbcSink

JAVA_OPTIONS = f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""Of a JVM that lives for seconds: the archive, and no compiler and no collector for long work."""

_SETTINGS = {
    "sql.adaptive.enabled": "false",
    "sql.codegen.factoryMode": "NO_CODEGEN",
    "sql.codegen.wholeStage": "false",
    "sql.shuffle.partitions": "2",
    "ui.enabled": "false",
}
SUBMIT_OPTIONS = " ".join([JAVA_OPTIONS, *(f"-Dspark.{name}={value}" for name, value in _SETTINGS.items())])
"""Of a driver, in the variable SPARK_SUBMIT_OPTS: with the settings of Spark for little data."""

RECORDING = Path(__file__).parents[1] / "conformance" / "tests" / "data" / "real-cluster-2.2.4"


def use_spark() -> None:
    """In the current directory, where Hive keeps its catalog."""
    session = local_session("local[2]", small=True, settings={"spark.sql.catalogImplementation": "hive"})
    loaded = load(session, [RECORDING])
    tables.add(session, "table:traces", loaded.events, [source.header for source in loaded.sources])
    with OnSpark(session, "table:traces") as engine:
        check(engine, sinks=[JdbcSink(session, "jdbc:derby:found;create=true")], replay=True)
    session.table("traces").groupBy("node").count().orderBy("node").show()
    session.stop()


def end_java() -> None:
    """Java writes the archive when it ends, which it does when its standard input is closed."""
    java = SparkContext._gateway.proc  # type: ignore[union-attr]
    java.stdin.close()
    java.wait()


def main() -> None:
    archive = Path(sys.argv[1]).absolute()
    with tempfile.TemporaryDirectory(prefix="distrocheck-spark-") as place:
        os.chdir(place)
        written = archive.with_suffix(".part")
        os.environ["SPARK_SUBMIT_OPTS"] = f"-XX:ArchiveClassesAtExit={written} -Xlog:disable -Xlog:all=error:stderr"
        use_spark()
        end_java()
        os.chdir(archive.parent)
    if written.exists():
        written.replace(archive)
    else:
        archive.touch()


if __name__ == "__main__":
    main()
