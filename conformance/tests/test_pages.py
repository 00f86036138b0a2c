"""The pages of this repository name only files that exist."""

from __future__ import annotations

import re

from programs import ROOT

ROOMS = ("bench", "conformance", "docs", "impl", "model", "protos", "scenarios", "spark", "tools", "traces")
PATH = re.compile(rf"(?<![\w./-])(?:{'|'.join(ROOMS)})/[\w./*-]*[\w/*]")
MADE = {"docs/reference/requirements.md"}
"""Pages whose paths are those of another project's sources."""

PAGES = sorted(
    page
    for page in (*ROOT.glob("*.md"), *(each for room in ROOMS for each in (ROOT / room).rglob("*.md")))
    if page.relative_to(ROOT).as_posix() not in MADE and "node_modules" not in page.parts
)


def missing(text: str) -> list[str]:
    named = {match.group().rstrip(".") for match in PATH.finditer(text)}
    return sorted(path for path in named if not any(True for _ in ROOT.glob(path.rstrip("/"))))


def test_pages_name_only_files_that_exist() -> None:
    named = {page.relative_to(ROOT).as_posix(): missing(page.read_text()) for page in PAGES}
    assert {page: paths for page, paths in named.items() if paths} == {}


def test_a_path_that_is_gone_is_noticed() -> None:
    assert missing("see `model/distro_model/gone.py`, and model/distro_model/__init__.py") == [
        "model/distro_model/gone.py"
    ]
