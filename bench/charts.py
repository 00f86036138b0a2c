"""The figures that benches printed, as charts on one page.

python bench/charts.py distrocheck-out/bench/*.json --html distrocheck-out/bench/index.html
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from distro_conformance.report.benches import write_benches


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("documents", nargs="+", type=Path, help="what benches printed with --json, a file each")
    parser.add_argument("--html", required=True, type=Path, help="the page")
    arguments = parser.parse_args()
    write_benches([json.loads(path.read_text(encoding="utf-8")) for path in arguments.documents], arguments.html)
    print(arguments.html)


if __name__ == "__main__":
    main()
