"""Options that several verbs share, so that they read and mean the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from distro_conformance.wire.transports import Carrier

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout, nothing else.")]
ProfileOption = Annotated[str, typer.Option(help="Whose behaviour is expected: nacos-2.2.4, for instance, or strict.")]
OptionalProfileOption = Annotated[
    str | None, typer.Option(help="Wins over the scenario's own; strict when neither says.")
]
MutantOption = Annotated[str | None, typer.Option(help="A named change to switch on; see 'list mutants'.")]
SeedOption = Annotated[int, typer.Option(help="Seed and commit reproduce a run on embedded nodes.")]
TransportOption = Annotated[
    Carrier | None, typer.Option(help="What embedded nodes speak over. Default: most runs in memory, some over gRPC.")
]
OutOption = Annotated[Path, typer.Option(help="Directory for what the run writes.")]

DEFAULT_OUT = Path("distrocheck-out")
RequirementOption = Annotated[
    list[str] | None, typer.Option("--requirement", help="Only this one; may be given several times.")
]
