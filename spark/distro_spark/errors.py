"""User errors of a check, in a module of their own, so that a command can name them without loading Spark."""

from __future__ import annotations

from distro_spark.java import JavaMissingError


class UnknownInvariantError(ValueError):
    """A requested invariant is not in the registry."""


__all__ = ["JavaMissingError", "UnknownInvariantError"]


class SessionError(ValueError):
    """Spark does not start with the given master or settings. The message is one line."""


class SinkError(ValueError):
    """Violations cannot be written to the given place. The message is one line."""
