"""What is said about a configuration that cannot be used. Every message names the key and what to do."""

from __future__ import annotations


class SettingError(ValueError):
    """A key, a value or a combination of keys that this node refuses."""
