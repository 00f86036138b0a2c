"""The gate in a loop, each round with a fresh seed: do its verdicts hold, and does a round leave anything behind?

    python bench/soak.py --json [--quick] [--minutes 120] [--rounds N] [--busy 2] [--target nacos:2.2.4]

After each round the resources of the process are measured: memory, descriptors, threads, child processes, and temporary
files, those of its JVMs too. They are flat when the last third of the rounds holds no more than the rounds before it,
except for the effect of garbage collection (`ROOM`); the first round loads what stays. `--busy N` keeps N processes
busy meanwhile: delays of the tester on a busy machine must not become a verdict on the target. Exit code 1 when a
resource grows or a round does not conform.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median_low

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from busy import others

ROOM: Mapping[str, float] = {"rss_mb": 32.0, "descriptors": 8, "threads": 4, "children": 1, "temporary_files": 1}
"""Tolerated growth of the last third. The numbers of threads of gRPC and of Spark's gateway and workers vary."""
Sample = Mapping[str, float]


def held() -> Sample:
    gc.collect()
    own = psutil.Process()
    return {
        "rss_mb": round(own.memory_info().rss / 2**20, 1),
        "descriptors": own.num_fds(),
        "threads": own.num_threads(),
        "children": len(own.children(recursive=True)),
        "temporary_files": len(os.listdir(tempfile.gettempdir())),
    }


def growing(samples: Sequence[Sample]) -> Mapping[str, float]:
    """The growth of the last third of the rounds over the others, beyond ROOM. Fewer than four rounds are not judged.

    Medians, the lower ones: one large round is no growth, and a little in each round adds up to one.
    """
    rounds = samples[1:]
    if len(rounds) < 3:
        return {}
    since = len(rounds) - max(1, len(rounds) // 3)
    more = {}
    for name in ROOM:
        before, last = (median_low(each[name] for each in part) for part in (rounds[:since], rounds[since:]))
        more[name] = round(last - before, 1)
    return {name: grown for name, grown in more.items() if grown > ROOM[name]}


def one_round(target: str, seed: int) -> tuple[str, float, list[str]]:
    """Verdict, seconds, and the violations or unjudged parts."""
    # Heavy, and not needed to compare samples.
    from distro_conformance.doctor import usable_cores  # noqa: PLC0415
    from distro_conformance.gate.options import BUDGETS, GateOptions  # noqa: PLC0415
    from distro_conformance.gate.run import Gate  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="soak-") as out:
        quick, jobs = BUDGETS["quick"], usable_cores()
        options = GateOptions(target=target, budget=quick, seed=seed, out=Path(out), jobs=jobs)
        report = Gate(options).run()
    news = [f"{each.about}: {each.message}" for each in (*report.violating, *report.not_judged)]
    return report.verdict.value, report.seconds, news


def soak(target: str, seconds: float, rounds_max: int | None) -> tuple[list[dict[str, object]], list[Sample]]:
    rows: list[dict[str, object]] = []
    samples: list[Sample] = []
    began = time.monotonic()
    while not rows or (time.monotonic() - began < seconds and (rounds_max is None or len(rows) < rounds_max)):
        seed = secrets.randbelow(1_000_000)
        verdict, took, news = one_round(target, seed)
        samples.append(held())
        rows.append({"seed": seed, "verdict": verdict, "seconds": round(took, 1), **samples[-1], "news": news})
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return rows, samples


def _keep_temporary_files(place: Path) -> None:
    """Keep the temporary files of this process and of its children in a directory of their own."""
    os.environ["TMPDIR"] = tempfile.tempdir = str(place)
    os.environ["JAVA_TOOL_OPTIONS"] = f"-Djava.io.tmpdir={place}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="one document on stdout")
    parser.add_argument("--quick", action="store_true", help="one round")
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--busy", type=int, default=0, help="so many busy processes beside it")
    parser.add_argument("--target", default="embedded")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as place, others(options.busy):
        _keep_temporary_files(Path(place))
        rows, samples = soak(options.target, options.minutes * 60, 1 if options.quick else options.rounds)
    grown = growing(samples)
    conform = sum(row["verdict"] == "conforms" for row in rows)
    figures = {"rounds": len(rows), "conform": conform, "grows": grown, "busy": options.busy, "each": rows}
    if options.json:
        print(json.dumps({"bench": "soak", "figures": figures, "ratios": {"conform": conform / len(rows)}}, indent=2))
    else:
        print(f"{conform} of {len(rows)} rounds conform; growing: {grown or 'nothing'}")
    sys.exit(int(bool(grown) or conform < len(rows)))


if __name__ == "__main__":
    main()
