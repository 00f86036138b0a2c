"""One Spark session for all tests, since its start takes longer than most of them; and random runs for some tests.

Test modules are imported without their directory (import mode `importlib`): it is added for shared modules.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from distro_spark.session import local_session
from distro_traces.content import digest
from distro_traces.event import Kind
from distro_traces.ndjson import Recorder

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "traces" / "tests")]  # the latter has `partly`

EMPTY = digest(())


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = local_session("local[2]", small=True)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def simulate() -> Callable[[Recorder, Random], None]:
    """Records a run of a small cluster in which replication sometimes loses, repeats, mislabels or forgets."""
    return simulated


def simulated(recorder: Recorder, random: Random) -> None:
    """Clients of one owner each change; every replica follows with a delay, unless something goes wrong."""
    nodes = ["a", "b", "c"]
    wrong = random.choice([0.0, 0.05, 0.3])  # a third of the runs is healthy
    owner = {f"c{number}": random.choice(nodes) for number in range(random.randint(1, 3))}
    held: dict[tuple[str, str], tuple[int, str]] = {}
    at_ms = 0
    step_ms = random.choice((50, 60_000, 60_000))  # within a lease, or so long that leases expire

    def row(node: str, kind: Kind, **fields: object) -> None:
        nonlocal at_ms
        at_ms += random.randint(1, step_ms)
        recorder.record(node, kind, at_ms=at_ms, **fields)  # type: ignore[arg-type]

    def state(node: str, kind: Kind, client: str, revision: int, content: str, owned: bool) -> None:
        held[node, client] = (revision, content)
        row(node, kind, client=client, owned=owned, revision=revision, digest=content)

    def remove(node: str, kind: Kind, client: str) -> None:
        if held.pop((node, client), None):
            row(node, kind, client=client)

    def replicate(client: str) -> None:
        for node in nodes:
            if node != owner[client] and random.random() >= wrong:
                if (owner[client], client) not in held:
                    remove(node, Kind.REPLICA_REMOVED, client)
                    continue
                revision, content = held[owner[client], client]
                if random.random() < wrong / 4:
                    revision = max(0, revision - 1)
                state(node, Kind.REPLICA_APPLIED, client, revision, content, random.random() < wrong / 10)

    for node in nodes:
        row(node, Kind.NODE_STARTED)
    for client, node in owner.items():
        state(node, Kind.CLIENT_CONNECTED, client, 0, EMPTY, True)
    for number in range(random.randint(1, 3)):
        for _ in range(random.randint(0, 6)):
            client = random.choice(list(owner))
            if (owner[client], client) in held:
                if random.random() < 0.1:
                    remove(owner[client], Kind.CLIENT_DISCONNECTED, client)
                else:
                    revision = held[owner[client], client][0] + 1
                    state(owner[client], Kind.CLIENT_CHANGED, client, revision, random.choice(["X", "Y", EMPTY]), True)
                replicate(client)
            if random.random() < wrong / 2:
                crashed = random.choice(nodes)
                row(crashed, Kind.NODE_STOPPED)
                row(crashed, Kind.NODE_STARTED)
                held = {place: what for place, what in held.items() if place[0] != crashed}
            if random.random() < wrong:
                old = random.choice(nodes)
                if (old, client) in held and old != owner[client]:
                    state(old, Kind.REPLICA_APPLIED, client, 1, "X", False)
        for node in nodes:
            row(node, Kind.CHECKPOINT, detail=str(number))
