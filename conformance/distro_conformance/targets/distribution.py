"""A Nacos server as it is distributed: `bin`, `conf`, and one runnable jar in which all others lie.

Its jars are taken out once, into the cache, under a name that tells one build from another; from there on it is a
directory of jars like those that Maven fills. What is configured in `conf` is not used: every node of a run gets a home
of its own. Layout: docs/real-servers.md#where-they-come-from.
"""

from __future__ import annotations

import shutil
import zipfile
from hashlib import sha256
from pathlib import Path

from distro_conformance.targets.cache import cache_directory, made_for
from distro_conformance.verdict import UsageError

RUNNABLE = Path("target/nacos-server.jar")
_LIBRARIES = "BOOT-INF/lib/"


def jars_in(directory: Path) -> Path:
    """The directory with the jars: of a distribution those taken out of it, else `directory` itself.

    Raises UsageError when the runnable jar is no archive.
    """
    runnable = directory / RUNNABLE
    if not runnable.is_file():
        return directory
    about = runnable.stat()
    build = sha256(f"{runnable.resolve()} {about.st_size} {about.st_mtime_ns}".encode()).hexdigest()[:12]
    jars = cache_directory() / "nacos" / f"distribution-{build}"
    if not jars.is_dir():
        _take_out(runnable, jars)
    return jars


def _take_out(runnable: Path, jars: Path) -> None:
    with made_for(jars) as whole:
        whole.mkdir()
        try:
            with zipfile.ZipFile(runnable) as archive:
                for entry in archive.infolist():
                    if entry.filename.startswith(_LIBRARIES) and entry.filename.endswith(".jar"):
                        with archive.open(entry) as packed, (whole / Path(entry.filename).name).open("wb") as taken:
                            shutil.copyfileobj(packed, taken)
        except (zipfile.BadZipFile, OSError) as error:
            raise UsageError(f"the jars of {runnable} cannot be taken out: {error}") from error
