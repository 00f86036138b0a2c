"""Where tests that were saved by version 0.1 find what they import; it lives in `language.replay` now."""

from distro_conformance.language.replay import assert_scenario

__all__ = ["assert_scenario"]
