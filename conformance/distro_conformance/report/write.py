"""The files of a report, the same findings in each.

Each file is written beside its place and then moved there, so each is whole. The files of an earlier run are removed
when a run begins: one that cannot start its target, or is interrupted, must not leave the report of another.
The page is self-contained and has a size budget: what does not fit is counted, and the JSON has it all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from distro_conformance.findings.finding import headline
from distro_conformance.report.document import Report
from distro_conformance.report.history import remember
from distro_conformance.report.junit import junit_xml
from distro_conformance.report.page import area_of, page_of, sentence, tally
from distro_conformance.report.recorded import Drawn
from distro_conformance.report.sarif import sarif_text

ROWS_ON_A_PAGE_MAX = 200
LINKS_MAX = 12
"""To further findings, on the first screen."""


FILES = ("report.html", "report.json", "junit.xml", "report.sarif", "summary.md")


def remove_report(directory: Path) -> None:
    """Remove the report of an earlier run, but for the history."""
    for name in FILES:
        (directory / name).unlink(missing_ok=True)


def write_report(report: Report, directory: Path, *, schema: str) -> Path:
    """Write the files into `directory` and return the path of the page."""
    directory.mkdir(parents=True, exist_ok=True)
    page = directory / "report.html"
    document = {"schema": schema, **report.to_json(), "tool": dict(report.origin), "report": str(page)}
    summary = render("summary.md.j2", report=report)
    write_whole(directory / "report.json", json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    write_whole(directory / "junit.xml", junit_xml(report))
    write_whole(directory / "report.sarif", sarif_text(report))
    write_whole(directory / "summary.md", summary)
    write_page(report, page)
    if step_summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(step_summary).open("a", encoding="utf-8") as file:
            file.write(summary)
    return page


def write_page(report: Report, page: Path, *, score: float | None = None, drawn: Sequence[Drawn] = ()) -> None:
    """The page. `score`: that of a kill matrix, which later pages beside this one show; `drawn`: runs in lanes."""
    page.parent.mkdir(parents=True, exist_ok=True)
    write_whole(page, render("report.html.j2", page=page_of(report, page.parent, drawn)))
    remember(report, page, score)


def render(template: str, **values: object) -> str:
    environment = templates_of("distro_conformance.report")
    environment.filters.update(cell=_cell, area=area_of, counted=headline, sentence=sentence, tally=tally)
    return environment.get_template(template).render(rows_max=ROWS_ON_A_PAGE_MAX, links_max=LINKS_MAX, **values)


def templates_of(package: str) -> Environment:
    return Environment(
        loader=PackageLoader(package),
        autoescape=select_autoescape(["html.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _cell(value: Any) -> str:
    """A value inside a Markdown table."""
    return str(value).replace("|", "\\|").replace("\n", " ")


def write_whole(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
