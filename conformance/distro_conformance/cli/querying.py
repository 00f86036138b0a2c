"""`distrocheck query SQL PATH`: SQL over traces and violations, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from distro_conformance.cli import app
from distro_conformance.cli.console import PipedConsole, output
from distro_conformance.cli.options import JsonOption, readable
from distro_conformance.cli.output import print_json


@app.command()
def query(
    sql: Annotated[str, typer.Argument(help="SELECT …, over the views events, runs and violations.")],
    path: Annotated[Path, typer.Argument(help="A trace, or a directory of traces (NDJSON or Parquet).")],
    checked: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The output of 'check --json', for the view violations.")
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
    (output if output.is_terminal else _as_wide_as(table)).print(table)


def _as_wide_as(table: Table) -> Console:
    """A console as wide as the table: in a pipe or a file nothing is cut."""
    unbounded = output.options.update(max_width=1_000_000)
    return PipedConsole(highlight=False, width=Measurement.get(output, unbounded, table).maximum)


def _is_json(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or isinstance(value, bool | int | float | str)
