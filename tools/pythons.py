"""`make test` on another Python that the package claims to run on, in a virtual environment of its own: a job of
`make nightly`.

    python tools/pythons.py --json 3.13

`python3.13` has to be on PATH. Exit codes as everywhere: 1 a test fails, 3 there is no such Python, 0 neither.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence

import results

_MISSING = 3


def version_of(python: str) -> str | None:
    """What it says when it is asked, `3.13.0`; None when it does not start."""
    asked = subprocess.run(
        [python, "-c", "import platform; print(platform.python_version())"], check=False, capture_output=True, text=True
    )
    return asked.stdout.strip() if asked.returncode == 0 else None


def tested(python: str, version: str) -> tuple[int, str]:
    """Exit code, and what pytest says at its end."""
    command = ["make", "test", f"PYTHON={python}", f"VENV=.venv-{version}"]
    ran = subprocess.run(command, cwd=results.ROOT, check=False, capture_output=True, text=True)
    said = [line for line in ran.stdout.splitlines() if re.search(r"\d (passed|failed|error)", line)]
    failed = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    last = (said or ran.stderr.strip().splitlines() or ["nothing was said"])[-1].strip("= ")
    return int(ran.returncode != 0), "; ".join((last, *failed))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", help="3.13, for instance")
    parser.add_argument("--json", action="store_true", help="one document on stdout")
    options = parser.parse_args(arguments)
    python = shutil.which(f"python{options.version}")
    version = python and version_of(python)
    if not python or not version:
        code, told = _MISSING, f"no python{options.version} on PATH that starts"
    else:
        code, told = tested(python, version)
    headline = f"{version or options.version}: {told}"
    print(json.dumps({"headline": headline}) if options.json else headline)
    return code


if __name__ == "__main__":
    sys.exit(main())
