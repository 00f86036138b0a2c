"""The engines of a check, side by side."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from distro_spark.check import check
from distro_spark.local import Local
from distro_spark.on_spark import OnSpark
from distro_spark.result import CheckResult


def in_process(paths: Path | str | Iterable[Path | str], **options: Any) -> CheckResult:
    return check(Local(paths), **options)


def on_spark(session: SparkSession, paths: Path | str | Iterable[Path | str], **options: Any) -> CheckResult:
    with OnSpark(session, paths) as engine:
        return check(engine, **options)


def on_both(session: SparkSession, paths: Path | str | Iterable[Path | str], **options: Any) -> CheckResult:
    """The result of both engines, which must be equal in every field except the time."""
    local, spark = (
        found.without_times() for found in (in_process(paths, **options), on_spark(session, paths, **options))
    )
    assert local == spark
    return local
