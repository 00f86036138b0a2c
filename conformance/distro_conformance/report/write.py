"""The files of a report: `report.json` for scripts, `summary.md` for a pull request, `report.html` for people.

Each file is written beside its place and then moved there, so that an interrupted run leaves the last whole report.
The page is self-contained and has a size budget: what does not fit is counted, and the JSON has it all.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from distro_conformance.report.document import Report

ROWS_ON_A_PAGE_MAX = 200


def write_report(report: Report, directory: Path, *, schema: str) -> Path:
    """Write the three files into `directory` and return the path of the page."""
    directory.mkdir(parents=True, exist_ok=True)
    document = {"schema": schema, **report.to_json(), "report": str(directory / "report.html")}
    _write(directory / "report.json", json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    summary = _render("summary.md.j2", report)
    _write(directory / "summary.md", summary)
    _write(directory / "report.html", _render("report.html.j2", report))
    if step_summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(step_summary).open("a", encoding="utf-8") as file:
            file.write(summary)
    return directory / "report.html"


def _render(template: str, report: Report) -> str:
    environment = Environment(
        loader=PackageLoader("distro_conformance.report"),
        autoescape=select_autoescape(["html.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["cell"] = _cell
    return environment.get_template(template).render(report=report, rows_max=ROWS_ON_A_PAGE_MAX)


def _cell(value: Any) -> str:
    """A value inside a Markdown table."""
    return str(value).replace("|", "\\|").replace("\n", " ")


def _write(path: Path, text: str) -> None:
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
