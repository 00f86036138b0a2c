"""What a user can do wrong with a check; apart from it, so that a command can name the errors without loading Spark."""

from __future__ import annotations

from distro_spark.java import JavaMissingError


class UnknownInvariantError(ValueError):
    """An invariant was asked for that is not in the registry."""


__all__ = ["JavaMissingError", "UnknownInvariantError"]


class SessionError(ValueError):
    """Spark does not start where, or as, it was told to. The message is one line."""


class SinkError(ValueError):
    """Violations cannot be written where they were to be written. The message is one line."""
