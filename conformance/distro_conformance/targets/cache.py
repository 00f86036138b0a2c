"""A cache directory for things that take long to fetch or build: an entry is complete, or it does not exist.

An entry is made beside its place and renamed, so that an interrupted start leaves no incomplete entry.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_directory() -> Path:
    """DISTROCHECK_CACHE, else the user's cache directory (XDG_CACHE_HOME, ~/.cache)."""
    if own := os.environ.get("DISTROCHECK_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "distrocheck"


@contextmanager
def made_for(place: Path) -> Iterator[Path]:
    """A path that does not exist yet, alone in its directory; on exit what was made there is moved to `place`."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as work:
        made = Path(work) / "made"
        yield made
        try:
            made.rename(place)
        except OSError:  # another process was faster, with the same content
            if not place.exists():
                raise
