"""User errors of a check, and what a session raises in one line, without loading Spark: a command can name them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class UnknownInvariantError(ValueError):
    """A requested invariant is not in the registry."""


class JavaMissingError(RuntimeError):
    """There is no Java that Spark 4 can run on. The message is one line that says what to do."""


class SessionError(ValueError):
    """Spark does not start with the given master or settings. The message is one line."""


class SinkError(ValueError):
    """Violations cannot be written to the given place. The message is one line."""


def spark_errors() -> tuple[type[Exception], ...]:
    """For `except`: of any session one family, and of a classic one what its gateway passes on as it is."""
    from pyspark.errors import PySparkException  # noqa: PLC0415

    gateway = sys.modules.get("py4j.protocol")
    return (PySparkException,) if gateway is None else (PySparkException, gateway.Py4JJavaError)


def first_line(error: BaseException) -> str:
    java = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.toString())
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)


@contextmanager
def one_line(error_of: Callable[[str], Exception], *others: type[Exception]) -> Iterator[None]:
    """Of an error of Spark, or one of the others, raise the error that is made of its first line."""
    try:
        yield
    except (*spark_errors(), *others) as error:
        raise error_of(first_line(error)) from error
