"""What takes long to fetch or build, kept in a cache directory: a thing is there as a whole, or not at all.

It is made beside its place and renamed, so that an interrupted start leaves nothing that a later one could mistake for
what it wants.
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
    """A path, not there yet and alone in its directory; what is made there stands at `place` when this is left."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as work:
        made = Path(work) / "made"
        yield made
        try:
            made.rename(place)
        except OSError:  # another process was faster, with the same content
            if not place.exists():
                raise
