"""The speed of a simulation in events, beside the cost of only writing the same rows in the same run.

    python bench/simulate.py --json [--quick]

The simulation runs as `distrocheck simulate` does: three nodes, ten clients, every fault, to Parquet. Bare writing is
pyarrow with the rows ready in memory as columns: the minimum for any program that writes such a file. Seconds are of
processor time, since a simulation uses one core; those of the wall clock are given too.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq

from distro_conformance.simulation.run import SimulationOptions, simulate
from distro_model.simulation.faults import FAULTS

ROUNDS = 3


def bare_rows_per_s(files: Sequence[Path], directory: Path) -> float:
    """Write the runs once more, from Python lists to Parquet, and nothing else."""
    rows, seconds = 0, 0.0
    for number, file in enumerate(files):
        with pq.ParquetFile(file) as opened:
            table = opened.read()
        columns = [column.to_pylist() for column in table.columns]
        began = time.process_time()
        arrays = [pa.array(values, field.type) for values, field in zip(columns, table.schema, strict=True)]
        again = pa.Table.from_arrays(arrays, schema=table.schema)
        pq.write_table(again, directory / f"{number}.parquet", compression="zstd")
        seconds += time.process_time() - began
        rows += table.num_rows
    return rows / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON (they always are)")
    parser.add_argument("--quick", action="store_true", help="end within a minute")
    arguments = parser.parse_args()
    duration_s = 10_000.0 if arguments.quick else 60_000.0
    made, wall, bare, peak = [], [], [], 0
    for seed in range(ROUNDS):
        with tempfile.TemporaryDirectory() as directory:
            out = Path(directory) / "traces"
            began = time.process_time()
            result = simulate(
                SimulationOptions(out=out, duration_s=duration_s, seed=seed, faults=tuple(FAULTS.values()))
            )
            made.append(result.events / (time.process_time() - began))
            wall.append(result.events / result.seconds)
            # Before the first runs are read back: from then on the peak is the bench's own.
            peak = peak if seed else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            bare.append(bare_rows_per_s(sorted(out.rglob("*.parquet")), Path(directory)))
    figures = {
        "events_per_s": round(median(made)),
        "events_per_s_wall": round(median(wall)),
        "bare_rows_per_s": round(median(bare)),
        "events": result.events,
        "peak_mib": round(peak / (1024 * 1024 if sys.platform == "darwin" else 1024)),
    }
    ratios = {"events_per_bare_row": round(median(m / b for m, b in zip(made, bare, strict=True)), 4)}
    print(json.dumps({"bench": "simulate", "figures": figures, "ratios": ratios}, indent=2))


if __name__ == "__main__":
    main()
