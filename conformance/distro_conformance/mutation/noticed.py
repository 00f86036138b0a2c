"""Which mutants of the reference node each requirement notices, those that break least besides first: `noticed.txt`.

A line is a requirement and its mutants, from a run of every mutant against every requirement, `distrocheck mutants run
--level node --json`; a new mutant or requirement is added with what such a run says of it. That each still notices its
first is a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_LINES = Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines()

NOTICED: Mapping[str, tuple[str, ...]] = {name: tuple(mutants) for name, *mutants in map(str.split, _LINES)}
