"""`distrocheck query SQL PATH`: SQL over traces and violations, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from distro_conformance.cli import app
from distro_conformance.cli.console import output
from distro_conformance.cli.options import JsonOption
from distro_conformance.cli.output import print_json
from distro_conformance.cli.paths import readable


@app.command()
def query(
    sql: Annotated[str, typer.Argument(help="SELECT …, over the views events, runs and violations.")],
    path: Annotated[Path, typer.Argument(help="A trace, or a directory of traces (NDJSON or Parquet).")],
    checked: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What 'check --json' printed: the view violations.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Query traces and violations in SQL."""
    from distro_traces.query import query as run_query

    answer = run_query(sql, readable(path, "trace"), checked and readable(checked, "document"))
    if json:
        rows = [[value if _is_json(value) else str(value) for value in row] for row in answer.rows]
        print_json("query", {"columns": list(answer.columns), "rows": rows})
        return
    table = Table(*map(escape, answer.columns), box=None, header_style="bold")
    for row in answer.rows:
        table.add_row(*("" if value is None else escape(str(value)) for value in row))
    output.print(table)


def _is_json(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or isinstance(value, bool | int | float | str)
