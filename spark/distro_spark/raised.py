"""What a session raises, and what it says of it in one line; without loading a gateway to a JVM where there is none."""

from __future__ import annotations

import sys

from pyspark.errors import PySparkException


def spark_errors() -> tuple[type[Exception], ...]:
    """For `except`: of any session one family, and of a classic one what its gateway passes on as it is."""
    gateway = sys.modules.get("py4j.protocol")
    return (PySparkException,) if gateway is None else (PySparkException, gateway.Py4JJavaError)


def first_line(error: BaseException) -> str:
    java = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.toString())
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
