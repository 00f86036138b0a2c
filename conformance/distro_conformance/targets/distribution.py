"""A Nacos server as it is distributed: `bin`, `conf`, and one runnable jar that contains all others.

Its jars and its own classes are extracted once, into the cache, under a name that is unique for each build. The class
path is in the order of the archive, which is the order that Spring's launcher uses: from 2.5 on a shaded `nacos-client`
and `nacos-common` contain classes of the same names. The configuration in `conf` is not used: every node of a run gets
its own home. Layout: docs/real-servers.md#where-they-come-from.
"""

from __future__ import annotations

import shutil
import zipfile
from hashlib import sha256
from pathlib import Path, PurePosixPath

from distro_conformance.targets.cache import cache_directory, made_for
from distro_conformance.targets.maven import CLASSES, ORDER
from distro_conformance.verdict import UsageError

RUNNABLE = Path("target/nacos-server.jar")
_LIBRARIES, _CLASSES = "BOOT-INF/lib/", "BOOT-INF/classes/"


def jars_in(directory: Path) -> Path:
    """The directory with the jars: those extracted from a distribution, else `directory` itself.

    Raises UsageError when the runnable jar is no archive.
    """
    runnable = directory / RUNNABLE
    if not runnable.is_file():
        return directory
    about = runnable.stat()
    build = sha256(f"{runnable.resolve()} {about.st_size} {about.st_mtime_ns}".encode()).hexdigest()[:12]
    jars = cache_directory() / "nacos" / f"unpacked-{build}"
    if not jars.is_dir():
        _extract(runnable, jars)
    return jars


def _extract(runnable: Path, jars: Path) -> None:
    with made_for(jars) as whole:
        whole.mkdir()
        try:
            with zipfile.ZipFile(runnable) as archive:
                entries = [
                    CLASSES,
                    *(name for entry in archive.infolist() if (name := _extracted(archive, entry, whole))),
                ]
        except (zipfile.BadZipFile, OSError) as error:
            raise UsageError(f"the jars of {runnable} cannot be extracted: {error}") from error
        (whole / ORDER).write_text("".join(f"{entry}\n" for entry in entries), encoding="utf-8")


def _extracted(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, whole: Path) -> str | None:
    """Copies a jar, or a file of the server's own classes; the name of the jar."""
    name = entry.filename
    if entry.is_dir() or not name.startswith((_LIBRARIES, _CLASSES)):
        return None
    is_class = name.startswith(_CLASSES)
    below = PurePosixPath(CLASSES, name.removeprefix(_CLASSES)) if is_class else PurePosixPath(PurePosixPath(name).name)
    if ".." in below.parts or below.is_absolute():
        raise zipfile.BadZipFile(f"the entry {name} would be outside of the directory")
    place = whole / below
    place.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(entry) as packed, place.open("wb") as copied:
        shutil.copyfileobj(packed, copied)
    return None if is_class else place.name
