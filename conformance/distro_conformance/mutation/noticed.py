"""The mutants of the reference node that each requirement notices, the most specific first: `noticed.txt`.

A line is a requirement and its mutants, from a run of every mutant against every requirement, `distrocheck mutants run
--level node --json`; a new mutant or requirement is added with the result of such a run. A test asserts that each
requirement still notices its first mutant.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_LINES = Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines()

NOTICED: Mapping[str, tuple[str, ...]] = {name: tuple(mutants) for name, *mutants in map(str.split, _LINES)}
