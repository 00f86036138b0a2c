"""The time of `check`, beside one shuffle and sort of the same rows in the same session.

    python bench/spark.py --json [--quick] [--data simulated --data giant …] [--events N]

The floor is `repartition(run, client)` with a sort by node and sequence number, without output: the minimum for any
program that needs each client's rows together. Both are run once for the first time (`first_s`: the check), so that
neither is slower because its code was not compiled yet, then in turn; a ratio is of the two medians. The last run of
each also has figures that other processes do not change: processor seconds in the JVM and in Python, the number of
stages that wrote a shuffle, and the bytes of these. `peak_mib` is the memory of this program, the JVM and the Python
workers together. The check in this process (`local`) comes last, of as many events as `distrocheck check` takes there
by default.

Five kinds of data: `simulated` (many runs with every fault), `giant` (the same rows as one run), `states` (every row
carries state, 3,000 clients), `hot` (the same rows, one client) and `lopsided` (one node has nine of ten rows, one
client one of ten, and there are a thousandth as many clients as rows).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, partial
from pathlib import Path
from statistics import median
from threading import Lock, Thread
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from distro_conformance.simulation.run import SimulationOptions, simulate
from distro_model.simulation.faults import FAULTS
from distro_spark.check import check
from distro_spark.local import Local
from distro_spark.on_spark import OnSpark
from distro_spark.result import CheckResult
from distro_spark.session import local_session
from distro_traces.event import Kind
from distro_traces.header import Header
from distro_traces.observed import Observed
from distro_traces.parquet import HEADER_KEY, SCHEMA, part_name, run_directory

SIMULATED_S = 40_000.0
"""Some 600,000 events; more are made by repeating the same runs under other names."""

NODES = ("a", "b", "c")
STATE_CLIENTS = 3000
STATE_LEASE_MS = 90_000
"""Every client changes within this time."""

PART_CHANGES = 50_000
"""This many rows are in memory while they are written."""

FLOOR_PARTITIONS = 8
LOCAL_EVENTS_MAX = 15_000_000
LOOK_S = 0.5
T = TypeVar("T")
Columns = Mapping[str, Sequence[object] | npt.NDArray[Any]]


def renamed(table: pa.Table, **columns: pa.Array) -> pa.Table:
    for name, values in columns.items():
        table = table.set_column(table.schema.get_field_index(name), SCHEMA.field(name), values)
    return table


def runs(directory: Path) -> Iterator[pa.Table]:
    for file in sorted(directory.rglob("*.parquet")):
        with pq.ParquetFile(file) as opened:
            yield opened.read()


def write(out: Path, header: Header, rows: pa.Table) -> None:
    place = run_directory(out, header.run)
    place.mkdir(parents=True, exist_ok=header.segment > 1)
    metadata = {HEADER_KEY: json.dumps(header.to_json())}
    pq.write_table(rows.replace_schema_metadata(metadata), place / part_name(header.segment - 1), compression="zstd")


def simulated(out: Path, events: int) -> None:
    """Runs of a simulation, repeated until there are so many events."""
    with tempfile.TemporaryDirectory() as once:
        seconds = SIMULATED_S * min(1.0, events / 600_000)
        simulate(SimulationOptions(out=Path(once) / "t", duration_s=seconds, seed=1, faults=tuple(FAULTS.values())))
        made = copy = 0
        while made < events:
            for number, table in enumerate(runs(Path(once))):
                run = f"run-{copy:04d}-{number:04d}"
                header = Header(run=run, profile="strict", target="model", clock="virtual", nodes=NODES)
                rows = renamed(table, run=pa.array([run] * table.num_rows))
                write(out, header, rows)
                made += table.num_rows
            copy += 1


def giant(out: Path, events: int) -> None:
    """The runs one after the other on nodes that stop in between; their clocks and sequence numbers go on."""
    header = Header(run="giant", profile="strict", target="model", clock="virtual", nodes=NODES)
    last, end_ms = dict.fromkeys(NODES, 0), 0
    with tempfile.TemporaryDirectory() as several:
        simulated(Path(several), events)
        for number, table in enumerate(runs(Path(several)), start=1):
            node = table["node"].to_numpy(zero_copy_only=False)
            seq = table["seq"].to_numpy() + np.array([last[name] for name in node])
            last.update({name: int(seq[node == name].max()) for name in NODES})
            at_ms = table["at_ms"].to_numpy() + end_ms
            end_ms = int(at_ms.max()) + 1000
            suffix = pa.scalar(f"@{number}")
            marked = {
                name: pc.binary_join_element_wise(table[name], suffix, "", null_handling="emit_null")
                for name in ("client", "message", "detail")
            }
            detail = pc.if_else(pc.equal(table["kind"], Kind.CHECKPOINT.value), marked.pop("detail"), table["detail"])
            run = pa.array(["giant"] * table.num_rows)
            numbers = {"seq": pa.array(seq), "at_ms": pa.array(at_ms)}
            rows = renamed(table, run=run, detail=detail, **numbers, **marked)
            last = {name: seq + 1 for name, seq in last.items()}
            stops = [
                {"run": "giant", "node": name, "seq": last[name], "at_ms": end_ms - 1, "kind": Kind.NODE_STOPPED.value}
                for name in NODES
            ]
            rows = pa.concat_tables([rows.cast(SCHEMA), pa.Table.from_pylist(stops, SCHEMA)])
            write(out, replace(header, segment=number), rows)


def states(out: Path, events: int, clients: int = STATE_CLIENTS, looks: int = 0, hot: int = 0) -> None:
    """A change of each client in turn, and its copies on two nodes 10 and 20 ms later; one checkpoint at the end. Every
    client changes within its lease, and no call was observed, so nothing is wrong with it. `looks`: so often its own
    node is read after each change. `hot`: every so many changes are of one client."""
    changes, every_ms = events // (3 + looks), max(1, STATE_LEASE_MS // clients)
    observed = Observed(sent=(), received=())
    header = Header(run="states", profile="strict", target="model", clock="virtual", nodes=NODES, observed=observed)
    for segment, first in enumerate(range(1, changes + 1, PART_CHANGES), start=1):
        number = np.arange(first, min(first + PART_CHANGES, changes + 1))
        of_hot = number % hot == 0 if hot else np.zeros(len(number), bool)
        others = number - number // hot if hot else number
        in_turn = clients - bool(hot) or 1
        client = np.where(of_hot, clients, others % in_turn)
        revision = np.where(of_hot, number // (hot or 1), others // in_turn + 1)
        digest = np.char.mod("%016x", (number * 2654435761) % (1 << 60))
        tables = []
        for node, kind, delay_ms in (
            ("a", Kind.CLIENT_CHANGED, 0),
            ("b", Kind.REPLICA_APPLIED, 10),
            ("c", Kind.REPLICA_APPLIED, 20),
        ):
            kinds = [kind.value, *[Kind.OBSERVED.value] * (looks if node == "a" else 0)]
            each = partial(np.repeat, repeats=len(kinds))
            last = 1 + changes * len(kinds)
            rows: Columns = {
                "seq": 1 + (first - 1) * len(kinds) + np.arange(1, len(number) * len(kinds) + 1),
                "at_ms": each(number * every_ms + delay_ms),
                "kind": kinds * len(number),
                "client": each(np.char.mod("c%d", client)),
                "owned": [node == "a"] * len(number) * len(kinds),
                "revision": each(revision),
                "digest": each(digest),
            }
            if first == 1:
                began: Columns = {"seq": [1], "at_ms": [0], "kind": [Kind.NODE_STARTED.value], "detail": ["a,b,c"]}
                tables.append(state_rows(node, began))
            tables.append(state_rows(node, rows))
            if number[-1] == changes:
                end_ms = changes * every_ms + 1000
                looked: Columns = {
                    "seq": [last + 1],
                    "at_ms": [end_ms],
                    "kind": [Kind.CHECKPOINT.value],
                    "detail": ["1"],
                }
                tables.append(state_rows(node, looked))
        write(out, replace(header, segment=segment), pa.concat_tables(tables))


def state_rows(node: str, columns: Columns) -> pa.Table:
    length = len(columns["seq"])
    every = {"run": ["states"] * length, "node": [node] * length, **columns}
    return pa.table(
        [pa.array(every[f.name], f.type) if f.name in every else pa.nulls(length, f.type) for f in SCHEMA],
        schema=SCHEMA,
    )


def hot(out: Path, events: int) -> None:
    states(out, events, clients=1)


def lopsided(out: Path, events: int) -> None:
    states(out, events, clients=max(STATE_CLIENTS, events // 1000), looks=17, hot=10)


DATA: dict[str, Callable[[Path, int], None]] = {
    each.__name__: each for each in (simulated, giant, states, hot, lopsided)
}


def checked(session: SparkSession, place: Path | str) -> CheckResult:
    with OnSpark(session, place) as engine:
        return check(engine)


def checked_here(place: Path) -> CheckResult:
    return check(Local(place))


def shuffled_and_sorted(session: SparkSession, place: Path) -> None:
    rows = session.read.option("recursiveFileLookup", "true").parquet(str(place))
    together = rows.repartition(FLOOR_PARTITIONS, "run", "client").sortWithinPartitions("run", "client", "node", "seq")
    together.write.format("noop").mode("overwrite").save()


class Processes:
    """CPU time of the JVM and the Python workers of this program. It is sampled: Spark kills a worker that was idle
    for a minute, and its figures end with it."""

    def __init__(self) -> None:
        self._cpu_s: dict[psutil.Process, float] = {}
        self._lock = Lock()
        self.peak_bytes = 0
        Thread(target=self._keep_looking, daemon=True).start()

    @property
    def python_cpu_s(self) -> float:
        self._look()
        with self._lock:
            return sum(self._cpu_s.values())

    def _keep_looking(self) -> None:
        while True:
            self._look()
            time.sleep(LOOK_S)

    def _look(self) -> None:
        here = psutil.Process()
        resident = here.memory_info().rss
        for each in here.children(recursive=True):
            with suppress(psutil.Error):  # it has ended since
                resident += each.memory_info().rss
                if "python" in each.name():
                    times = each.cpu_times()
                    with self._lock:
                        self._cpu_s[each] = times.user + times.system
        self.peak_bytes = max(self.peak_bytes, resident)


@cache
def processes() -> Processes:
    return Processes()


@dataclass(frozen=True)
class Spent:
    """The resources that a session has used so far."""

    jvm_cpu_s: float
    python_cpu_s: float
    shuffles: int
    shuffle_bytes: int

    def since(self, before: Spent) -> Spent:
        return Spent(*(getattr(self, f.name) - getattr(before, f.name) for f in fields(Spent)))


def spent(session: SparkSession) -> Spent:
    gateway: Any = session.sparkContext._gateway
    context: Any = session._jsc
    nothing = gateway.jvm.java.util.ArrayList()
    stages = context.sc().statusStore().stageList(None, False, False, gateway.new_array(gateway.jvm.double, 0), nothing)
    every = [stages.apply(i) for i in range(stages.size())]
    written = [stage.shuffleWriteBytes() for stage in every]
    return Spent(
        jvm_cpu_s=sum(stage.executorCpuTime() for stage in every) / 1e9,
        python_cpu_s=processes().python_cpu_s,
        shuffles=sum(size > 0 for size in written),
        shuffle_bytes=sum(written),
    )


def timed(work: Callable[[], T]) -> tuple[float, T]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON (they always are)")
    parser.add_argument("--quick", action="store_true", help="end within a minute")
    parser.add_argument("--data", action="append", choices=DATA, help="only this kind; may be given several times")
    parser.add_argument("--events", type=int, help="how many of each kind")
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    events = arguments.events or (100_000 if arguments.quick else 10_000_000)
    figures: dict[str, float] = {}
    ratios: dict[str, float] = {}
    began = time.perf_counter()
    processes()
    session = local_session("local[2]")
    session.range(1000).repartition(2).count()
    started_s = time.perf_counter() - began
    for name in arguments.data or (["simulated", "hot"] if arguments.quick else DATA):
        with tempfile.TemporaryDirectory() as directory:
            out = Path(directory)
            DATA[name](out, events)
            first_s, result = timed(partial(checked, session, out))
            shuffled_and_sorted(session, out)
            floors, checks = [], []
            for _ in range(arguments.rounds):
                before = spent(session)
                floors.append(timed(partial(shuffled_and_sorted, session, out))[0])
                between = spent(session)
                checks.append(timed(partial(checked, session, out))[0])
                of_floor, of_check = between.since(before), spent(session).since(between)
            figures |= {f"{name}_floor_{what}": round(value, 2) for what, value in asdict(of_floor).items()}
            figures |= {f"{name}_check_{what}": round(value, 2) for what, value in asdict(of_check).items()}
            figures |= {
                f"{name}_events": result.events,
                f"{name}_violations": sum(each.violations for each in result.invariants),
                f"{name}_floor_s": round(median(floors), 2),
                f"{name}_check_s": round(median(checks), 2),
                f"{name}_first_s": round(first_s, 2),
            }
            cpu_s = [each.jvm_cpu_s + each.python_cpu_s for each in (of_check, of_floor)]
            ratios[f"{name}_check_per_floor_cpu"] = round(cpu_s[0] / cpu_s[1], 2)
            ratios[f"{name}_check_per_floor"] = round(median(checks) / median(floors), 2)
            if events <= LOCAL_EVENTS_MAX:
                cpu_before_s = time.process_time()
                local_s, _ = timed(partial(checked_here, out))
                local_cpu_s = time.process_time() - cpu_before_s
                figures |= {f"{name}_local_s": round(local_s, 2), f"{name}_local_cpu_s": round(local_cpu_s, 2)}
                ratios[f"{name}_local_per_floor_cpu"] = round(local_cpu_s / cpu_s[1], 2)
    session.stop()
    figures["session_s"] = round(started_s, 2)
    figures["peak_mib"] = round(processes().peak_bytes / 2**20)
    print(json.dumps({"bench": "spark", "figures": figures, "ratios": ratios}, indent=2))


if __name__ == "__main__":
    main()
