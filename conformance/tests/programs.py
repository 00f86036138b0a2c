"""Programs that tests start, among them the command, which they may also call (conftest.py)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-c", "from distro_conformance.cli import main; main()")
Ran = subprocess.CompletedProcess[str]
Call = Callable[..., Ran]
Document = Callable[..., tuple[int, dict[str, Any]]]


def executed(*command: str | Path, **options: Any) -> Ran:
    """What the program said, and with which code it ended. What hangs is ended; a busy machine may take its time."""
    usual = {"capture_output": True, "text": True, "timeout": 900}
    return subprocess.run(command, check=options.pop("check", False), **{**usual, **options})
