"""Whether a seed reproduces a run: each seed is run in two processes at the same time, as recorded lockstep in memory.

    python bench/repeat.py --json [--quick | --seeds N] [--first SEED]

The two processes differ in the seed of Python's hashes and share the machine with each other and with other
processes. Their recordings must be the same byte for byte; the exit code is 1 when they are not.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SEEDS, QUICK_SEEDS = 1_000, 40
RUNS, STEPS = 2, 20
"""The runs of each seed, and the steps of each run. The first run is always the simplest one, so there are two."""

RECORD = """
import sys
from pathlib import Path
from distro_conformance.walks.random_walks import random_walks
from distro_conformance.walks.result import WalkOptions
from distro_conformance.wire.transports import TransportKind

directory, first, seeds, runs, steps = Path(sys.argv[1]), *map(int, sys.argv[2:])
done = 0
for seed in range(first, first + seeds):
    found = random_walks(
        WalkOptions(
            seed=seed, runs_max=runs, steps_per_run=steps, rare_starts=False, transport=TransportKind.MEMORY,
            record_into=directory,
        )
    )
    assert found.failure is None, found.failure
    done += found.steps
print(done)
"""


def recorded(directory: Path, first: int, seeds: int, hash_seed: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", RECORD, str(directory), str(first), str(seeds), str(RUNS), str(STEPS)]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def files(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON (they always are)")
    parser.add_argument("--quick", action="store_true", help="end within a minute")
    parser.add_argument("--seeds", type=int, help="the number of seeds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    arguments = parser.parse_args()
    seeds = arguments.seeds or (QUICK_SEEDS if arguments.quick else SEEDS)
    with tempfile.TemporaryDirectory() as scratch:
        first, second = Path(scratch, "first"), Path(scratch, "second")
        began = time.monotonic()
        running = [
            recorded(directory, arguments.first, seeds, hashes) for directory, hashes in ((first, "1"), (second, "2"))
        ]
        printed = [process.communicate()[0] for process in running]
        if any(process.returncode for process in running):
            raise SystemExit("a run found a failure, which is printed above; nothing was compared")
        seconds = time.monotonic() - began
        once, again = files(first), files(second)
    different = sorted(name for name in once.keys() | again.keys() if once.get(name) != again.get(name))
    for name in different:
        print(f"different: {name}", file=sys.stderr)
    figures = {
        "first": arguments.first,
        "seeds": seeds,
        "recordings": len(once),
        "steps": int(printed[0]),
        "bytes": sum(map(len, once.values())),
        "different": len(different),
        "seconds": round(seconds, 1),
    }
    print(json.dumps({"bench": "repeat", "figures": figures, "ratios": {}}, indent=2))
    sys.exit(1 if different or not once else 0)


if __name__ == "__main__":
    main()
