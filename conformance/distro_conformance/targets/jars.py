"""The jars of a Nacos release: resolved once with Maven, or extracted from a distribution, and served from a cache.

The cache holds one directory per release or build. An entry is complete, or it does not exist: it is made beside its
place and renamed. A distribution has one runnable jar that contains all others; its `conf` is not used, since every
node of a run gets its own home. The class path is in the order of the archive, which is the order that Spring's
launcher uses: from 2.5 on a shaded `nacos-client` and `nacos-common` contain classes of the same names. Source:
docs/real-servers.md#where-they-come-from.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path, PurePosixPath

from distro_conformance.targets.releases import NacosRelease
from distro_conformance.targets.server_process import child
from distro_conformance.targets.target import OnProgress
from distro_conformance.verdict import TargetError, UsageError

_COPY = "org.apache.maven.plugins:maven-dependency-plugin:2.8:copy-dependencies"  # the default of Maven 3
_RESOLVE_TIMEOUT_S = 900.0
_JARS_PER_LINE = 10
ORDER, CLASSES = "class-path.txt", "classes"
"""In a directory of jars: the file with the class path, one entry a line, and the server's classes outside jars."""
RUNNABLE = Path("target/nacos-server.jar")
_LIBRARIES, _CLASSES = "BOOT-INF/lib/", "BOOT-INF/classes/"


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


async def jars_of(release: NacosRelease, on_progress: OnProgress) -> Path:
    """The directory with all jars of a release; Maven fetches them when they are not in the cache.

    Raises TargetError, in one line, when Maven is missing or cannot resolve them.
    """
    directory = cache_directory() / "nacos" / release.directory
    if directory.is_dir():
        return directory
    on_progress(f"fetching Nacos {release.version} ({release.coordinates}) with Maven; only the first start takes this")
    with made_for(directory) as jars:
        await _resolve(release, jars, on_progress)
    on_progress(f"Nacos {release.version} is in the cache: {directory}")
    return directory


async def artifact(coordinates: str, on_progress: OnProgress) -> Path:
    """One jar without its dependencies, `group:name:version`. Raises TargetError as `jars_of` does."""
    group, name, version = coordinates.split(":")
    jar = cache_directory() / "agents" / f"{name}-{version}.jar"
    if jar.is_file():
        return jar
    on_progress(f"fetching {coordinates} with Maven; only the first start takes this")
    release = NacosRelease(version, group, artifact_name=name, excluded=("*:*",))
    with made_for(jar) as made:
        jars = made.with_name("jars")
        await _resolve(release, jars, on_progress)
        (jars / jar.name).rename(made)
    return jar


def class_path(jars: Path) -> str:
    """In the order of the directory's class path file (of a distribution), else every jar by name, but hessian 4
    before hessian 3, which share class names (docs/real-servers.md#starting), and the client of Nacos last: from 2.5
    on it has shaded copies of classes of `nacos-common`, with which no cluster client connects."""
    if (order := jars / ORDER).is_file():
        ordered = [jars / name for name in order.read_text(encoding="utf-8").splitlines()]
    else:
        ordered = sorted(jars.glob("*.jar"), key=_order)
    return os.pathsep.join(map(str, ordered))


def _order(jar: Path) -> tuple[bool, bool, str]:
    return jar.name.startswith("nacos-client"), not jar.name.startswith("hessian-4"), jar.name


async def _resolve(release: NacosRelease, jars: Path, on_progress: OnProgress) -> None:
    """Fetch the jars into `jars`, with the pom beside the directory."""
    maven = shutil.which("mvn")
    if maven is None:
        raise TargetError(
            f"Nacos {release.version} is not in the cache {cache_directory()} and Maven (mvn) is not installed; "
            "install Maven, or copy a filled cache and name it in DISTROCHECK_CACHE"
        )
    pom = jars.with_name("pom.xml")
    pom.write_text(_pom(release), encoding="utf-8")
    command = (maven, "--batch-mode", "--file", str(pom), _COPY)
    options = ("-DincludeScope=runtime", f"-DoutputDirectory={jars}")
    try:
        async with child(*command, *options) as process, asyncio.timeout(_RESOLVE_TIMEOUT_S):
            problem = await _follow(process, on_progress)
            code = await process.wait()
    except TimeoutError:
        raise TargetError(f"Maven did not resolve {release.coordinates} in {_RESOLVE_TIMEOUT_S:.0f} s") from None
    if code != 0:
        raise TargetError(
            f"Maven cannot resolve {release.coordinates} ({problem or f'exit code {code}'}); "
            "go online, or copy a filled cache and name it in DISTROCHECK_CACHE"
        )


async def _follow(process: asyncio.subprocess.Process, on_progress: OnProgress) -> str:
    """Report the progress of the download; returns Maven's first error."""
    assert process.stdout is not None
    problem, jars = "", 0
    async for raw in process.stdout:
        line = raw.decode(errors="replace").strip()
        if "Downloaded from" in line and ".jar " in line:
            jars += 1
            if jars % _JARS_PER_LINE == 0:
                on_progress(f"  {jars} jars downloaded")
        elif line.startswith("[ERROR]") and not problem:
            problem = line.removeprefix("[ERROR]").strip()[:300]
    return problem


def _pom(release: NacosRelease) -> str:
    exclusions = "".join(
        f"<exclusion><groupId>{group}</groupId><artifactId>{artifact}</artifactId></exclusion>"
        for group, artifact in (excluded.split(":") for excluded in release.excluded)
    )
    managed = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version></dependency>"
        for group, artifact, version in (pinned.split(":") for pinned in release.managed)
    )
    return f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>distrocheck</groupId><artifactId>nacos-jars</artifactId><version>1</version>
  <dependencyManagement><dependencies>{managed}</dependencies></dependencyManagement>
  <dependencies><dependency>
    <groupId>{release.group}</groupId><artifactId>{release.artifact}</artifactId><version>{release.version}</version>
    <exclusions>{exclusions}</exclusions>
  </dependency></dependencies>
</project>
"""


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
