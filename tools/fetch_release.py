"""Whether Maven can resolve the jars of a Nacos release: exit 0 when they are there, 4 with the reason when not.

The one excuse for a run of CI without its real server, and asked before that run: whatever goes wrong later is red.
"""

from __future__ import annotations

import asyncio
import sys

from distro_conformance.targets.maven import jars_of
from distro_conformance.targets.releases import nacos_release
from distro_conformance.verdict import KitError


def main(version: str) -> int:
    try:
        print(asyncio.run(jars_of(nacos_release(version), print)))
    except KitError as error:
        print(f"fetch_release: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
