"""The speed of the import of server logs, beside `zcat | grep` over the same files in the same run.

    python bench/logs.py --json [--quick] [--mb 1500]

A directory of three nodes is written first: each log rotated and packed as Nacos does it, one record in a hundred about
replication, the others typical records (pushes, connections, requests, access logs, and some stack traces).
Then `import nacos-logs` reads it in a process of its own, whose peak memory is that of the import, with its progress on
standard error. Seconds are of processor time, since an import uses one core.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

NODES = ("10.9.0.1", "10.9.0.2", "10.9.0.3")
BEGAN = datetime(2025, 9, 2, 8, tzinfo=UTC)
ROTATED_BYTES = 20 << 20
RECORDS_PER_FACT = 100
KEY = "DistroKey{{resourceKey='{client}', resourceType='Nacos:Naming:v2:ClientData', targetServer='{target}:8848'}}"
SERVICE = "Service{{namespace='public', group='DEFAULT_GROUP', name='svc-{n}', ephemeral=true, revision={n}}}"
NOISE = {
    "naming-push": f"INFO [PUSH-SUCC] {{n}}ms, all delay time 520ms, SLA 520ms, {SERVICE}, target=10.0.1.{{n}}",
    "remote-digest": "INFO [17000000{n}_10.0.1.{n}_50{n}] push ack received, request id {n}, cost 3 ms, success",
    "nacos-cluster": "DEBUG report the metadata of 10.9.0.1:8848 to all members, round {n}, took 3 ms",
    "naming-server": f"INFO Service index query for {SERVICE} from 10.0.1.{{n}}, cluster DEFAULT, healthy only",
    "protocol-distro": "INFO DistroExecuteTaskExecuteEngine#{n} processed 12 tasks in the last period, queue size 0",
    "nacos": "WARN c.a.n.core.auth.RemoteRequestAuthFilter - no access token in request {n} of 10.0.1.{n}, passed on",
}
FRAME = "\tat com.alibaba.nacos.Some.call(Some.java:17)\n"
STACK = "java.lang.IllegalStateException: request {n} is too late\n" + FRAME * 20
CALL = (
    ("protocol-distro", f"INFO [DISTRO-START] DistroSyncChangeTask for {KEY}"),
    ("protocol-distro", f"INFO [DISTRO-END] {KEY} result: true"),
)


def records(log: str, node: str, size: int, seed: int) -> Iterator[str]:
    """The lines of one log of one node, `size` bytes of them."""
    random_, at, written, number = random.Random(f"{log} {node} {seed}"), BEGAN, 0, 0
    while written < size:
        at += timedelta(milliseconds=random_.randrange(1, 40))
        stamp = f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d} "
        number += 1
        n = number % 200
        lines = [stamp + NOISE[log].format(n=n) + "\n"]
        if log == "nacos" and number % 500 == 0:
            lines.append(STACK.format(n=n))
        if number % RECORDS_PER_FACT == 0:
            client = f"1750000000000_10.0.0.{n}_4{n:04d}"
            target = random_.choice([each for each in NODES if each != node])
            if log == "protocol-distro":
                lines += [stamp + text.format(client=client, target=target) + "\n" for _, text in CALL]
            elif log == "naming-server":
                lines.append(f"{stamp}INFO Client change for service {SERVICE.format(n=n)}, {client}\n")
        text = "".join(lines)
        written += len(text)
        yield text


def write_logs(directory: Path, total_bytes: int) -> int:
    """Write the directory; the bytes of its text."""
    each, written = total_bytes // (len(NODES) * len(NOISE)), 0
    for node in NODES:
        for log in NOISE:
            (directory / node).mkdir(parents=True, exist_ok=True)
            parts, size = [""], 0
            chunk: list[str] = []
            for text in records(log, node, each, 1):
                chunk.append(text)
                size += len(text)
                if size >= ROTATED_BYTES:
                    written += _packed(directory / node / f"{log}.log.2025-09-02.{len(parts) - 1}.gz", "".join(chunk))
                    parts.append("")
                    chunk, size = [], 0
            path = directory / node / f"{log}.log"
            path.write_text("".join(chunk))
            written += size
    return written


def _packed(path: Path, text: str) -> int:
    path.write_bytes(gzip.compress(text.encode(), 4))
    return len(text)


def seconds_of(command: Sequence[str]) -> tuple[float, bytes]:
    """Processor time, which other work on the machine does not change, and the printed output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, printed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON (they always are)")
    parser.add_argument("--quick", action="store_true", help="end within a minute")
    parser.add_argument("--mb", type=int, default=1500, help="of text, in all")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        logs = Path(directory, "logs")
        size = write_logs(logs, (60 if arguments.quick else arguments.mb) << 20)
        grep = f"find {logs} -type f | xargs zcat -f | grep -c DISTRO-START"
        grep_s, _ = seconds_of(["bash", "-c", grep])
        command = [sys.executable, "-m", "distro_conformance", "import", "nacos-logs", str(logs), "--json"]
        command += ["--profile", "nacos-2.2.4", "--out", str(Path(directory, "out"))]
        began = time.perf_counter()
        import_s, printed = seconds_of(command)
        wall_s = time.perf_counter() - began
    figures = {
        "megabytes": round(size / 1e6),
        "events": json.loads(printed)["events"],
        "import_s": round(import_s, 1),
        "import_wall_s": round(wall_s, 1),
        "import_mb_per_s": round(size / import_s / 1e6, 1),
        "zcat_grep_mb_per_s": round(size / grep_s / 1e6, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024,
    }
    ratios = {"import / zcat | grep": round(grep_s / import_s, 3)}
    print(json.dumps({"bench": "logs", "figures": figures, "ratios": ratios}))


if __name__ == "__main__":
    main()
