"""Delta, whose jars Maven fetches: the settings of a session that keeps its tables in it."""

import asyncio
from pathlib import Path

import pyspark
import pytest

from distro_conformance.targets.jars import artifact
from distro_conformance.verdict import TargetError

RELEASES = {"4.1": "4.4.0", "4.2": "4.4.0"}
"""By release of Spark the release of Delta that is made for it."""


def settings_of_delta(warehouse: Path) -> dict[str, str]:
    """Skips the test where there is no Delta."""
    spark = ".".join(pyspark.__version__.split(".")[:2])
    if spark not in RELEASES:
        pytest.skip(f"no Delta is made for Spark {spark} yet; those for {', '.join(RELEASES)} do not run on it")
    release = RELEASES[spark]
    names = (f"io.delta:delta-spark_{spark}_2.13:{release}", f"io.delta:delta-storage:{release}")
    try:
        jars = ",".join(str(asyncio.run(artifact(name, print))) for name in names)
    except TargetError as error:
        pytest.skip(f"no Delta: {error}")
    return {
        "spark.jars": jars,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.sources.default": "delta",
        # By default 50 tasks read each state of a table, whose log has a few lines here.
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.warehouse.dir": str(warehouse),
    }
