"""`distrocheck doctor`: which requirements of distrocheck this machine meets."""

from __future__ import annotations

from distro_conformance.cli import app
from distro_conformance.cli.options import JsonOption
from distro_conformance.cli.output import print_json, row
from distro_conformance.doctor import examine
from distro_conformance.plain import plain


@app.command()
def doctor(json: JsonOption = False) -> None:
    """Check whether this machine has what distrocheck needs: Python, extras, Java, Maven, ports, disk, cores."""
    checks = []
    for check in examine():
        checks.append(plain(check))
        if not json:
            advice = f": {check.advice}" if check.advice else ""
            row("good" if check.good else "lacking", f"{check.name:<8}{check.found}{advice}")
    if json:
        print_json("doctor", {"checks": checks})
