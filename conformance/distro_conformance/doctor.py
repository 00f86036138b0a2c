"""Checks what distrocheck needs of this machine: one line each, with advice.

Nothing is installed or changed; the only network access is Maven's request for one small file. A check is a function
with an entry in `CHECKS`. A missing part is needed by some verbs only, so it is `lacking` with their names, not an
error.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from distro_conformance.extras import EXTRAS, absent_extras
from distro_conformance.targets.jars import cache_directory
from distro_conformance.targets.ports import family, first_taken
from distro_spark.errors import JavaMissingError
from distro_spark.java import require_java

SERVE_PORT = 8848
PYTHON_MIN = (3, 11)
CORES_MIN, DISK_MIN_GIB = 2, 4
MAVEN_TIMEOUT_S = 60
_GET = "org.apache.maven.plugins:maven-dependency-plugin:2.8:get"
_PROBED = "junit:junit:4.13.2:pom"
"""An artifact of each Maven repository that no plugin needs."""


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    good: bool
    found: str
    advice: str = ""
    """The advice, and the verbs that need it; empty when the check passes."""


def examine() -> Iterator[Check]:
    """Yield every check, as it ends."""
    for name, look in CHECKS.items():
        found, advice = look()
        yield Check(name, not advice, found, advice)


Found = tuple[str, str]
"""What was found, and the advice."""


def _python() -> Found:
    version = ".".join(map(str, sys.version_info[:3]))
    return version, "" if sys.version_info >= PYTHON_MIN else "install Python 3.11 or newer"


def _extras() -> Found:
    absent = sorted(absent_extras())
    there = sorted({*EXTRAS.values()} - {*absent})
    advice = f"pip install 'distrocheck[{','.join(absent)}]' for the verbs that need them" if absent else ""
    return f"{', '.join(there) or 'none'} installed", advice


def _java() -> Found:
    try:
        return f"Java {require_java()}", ""
    except JavaMissingError as error:
        return "none that will do", f"{error} (real servers too)"


def _maven() -> Found:
    maven = shutil.which("mvn")
    if maven is None:
        return "not installed", "install Maven; it fetches the real servers of --target nacos:VERSION"
    if _reaches_a_repository(maven):
        return "Maven, and it reaches a repository", ""
    return "Maven, which reaches no repository", "go online, or name a filled cache in DISTROCHECK_CACHE"


def _reaches_a_repository(maven: str) -> bool:
    """Maven's plugins are kept in the cache, the requested file is not: otherwise the answer would come from disk."""
    repository = cache_directory() / "maven-probe"
    shutil.rmtree(
        repository.joinpath(*_PROBED.split(":", maxsplit=1)[0].split("."), _PROBED.split(":")[1]), ignore_errors=True
    )
    probe = (maven, "-q", "-B", f"-Dmaven.repo.local={repository}", _GET, f"-Dartifact={_PROBED}", "-Dtransitive=false")
    try:
        return subprocess.run(probe, capture_output=True, timeout=MAVEN_TIMEOUT_S, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _servers() -> Found:
    cached = sorted(path.name for path in (cache_directory() / "nacos").glob("[0-9]*")) or ["none"]
    return f"in the cache {cache_directory()}: {', '.join(cached)}", ""


def _ports() -> Found:
    taken = first_taken(SERVE_PORT)
    if taken is None:
        return ", ".join(map(str, sorted(family(SERVE_PORT)))) + " are free", ""
    return (
        f"{taken} is in use",
        "stop what listens there, or give 'serve' another --port",
    )


def _disk() -> Found:
    free_gib = shutil.disk_usage(tempfile.gettempdir()).free / 2**30
    return f"{free_gib:.0f} GiB free", "" if free_gib >= DISK_MIN_GIB else "make room: a real server takes 0.6 GiB"


def usable_cores() -> int:
    """The cores that this process may use, where the system reports them; macOS does not."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cores() -> Found:
    cores = usable_cores()
    return str(cores), "" if cores >= CORES_MIN else "budgets are made for two cores; use 'gate --budget ci'"


CHECKS: Mapping[str, Callable[[], Found]] = {
    "python": _python,
    "extras": _extras,
    "java": _java,
    "maven": _maven,
    "servers": _servers,
    "ports": _ports,
    "disk": _disk,
    "cores": _cores,
}
