"""The Java that Spark runs on, looked at before Spark starts it: a missing or too old one shows as a stack trace.

Apart from `session`, so that a command can look without loading Spark.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from distro_spark.errors import JavaMissingError

JAVA_MIN = 17
_JAVA_TIMEOUT_S = 20


def require_java() -> int:
    """The major version of the Java that Spark will start. Raises JavaMissingError unless it is 17 or later."""
    java = _java()
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, check=True, timeout=_JAVA_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError) as error:
        raise JavaMissingError(f"{java} does not run ({error}); install Java {JAVA_MIN} or later") from error
    version = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    if version is None:
        raise JavaMissingError(f"{java} does not say its version; install Java {JAVA_MIN} or later")
    major = int(version[1])
    if major < JAVA_MIN:
        raise JavaMissingError(
            f"{java} is Java {major}, the trace check needs {JAVA_MIN} or later; install one and point JAVA_HOME to it"
        )
    return major


def _java() -> str:
    """The same choice as Spark's launcher: JAVA_HOME first, then PATH."""
    home = os.environ.get("JAVA_HOME")
    if home:
        return str(Path(home) / "bin" / "java")
    java = shutil.which("java")
    if java is None:
        raise JavaMissingError(
            f"no Java found, the trace check needs {JAVA_MIN} or later; install one, or point JAVA_HOME to it"
        )
    return java
