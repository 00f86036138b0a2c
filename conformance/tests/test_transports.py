"""Two wires for embedded nodes: memory repeats itself byte for byte, and a defect of gRPC is found over gRPC."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from programs import Document

from distro_conformance.language.text import ScenarioError, parse
from distro_conformance.walks.driver import Lockstep
from distro_conformance.walks.random_walks import random_walks
from distro_conformance.walks.result import WalkOptions
from distro_conformance.wire.transports import IN_MEMORY, OVER_GRPC, TransportKind, Wire
from distro_impl.transport import grpc_transport
from distro_impl.transport.memory import MemoryServer
from distro_model.actions import Action, Advance, Connect, Crash, Cut, Heal, Register, Restart

pytestmark = pytest.mark.wire

RECORD = """
import sys
from pathlib import Path
from distro_conformance.walks.random_walks import random_walks
from distro_conformance.walks.result import WalkOptions
from distro_conformance.wire.transports import TransportKind

for seed in map(int, sys.argv[2:]):
    into, kind = Path(sys.argv[1]), TransportKind.MEMORY
    random_walks(WalkOptions(seed=seed, runs_max=3, rare_starts=False, transport=kind, record_into=into))
"""

ACTIONS: tuple[Action, ...] = (
    Connect("c1", "a"),
    Connect("c2", "b"),
    Register("c1", "web", "10.0.0.1:80"),
    Register("c2", "web", "10.0.0.2:80"),
    Advance(3_000),
    Register("c1", "web", "10.0.0.1:81"),
    Advance(3_000),
    Cut("a", "b"),
    Advance(10_000),
    Heal("a", "b"),
    Crash("c"),
    Advance(5_000),
    Restart("c"),
    Advance(15_000),
)


def recorded(directory: Path, hash_seed: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.Popen([sys.executable, "-c", RECORD, str(directory), "1", "2"], env=environment)


@pytest.mark.quality
@pytest.mark.slow
def test_the_same_seed_is_the_same_run_byte_for_byte_in_another_process_and_on_a_busy_machine(tmp_path: Path) -> None:
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        runs = [recorded(tmp_path / hash_seed, hash_seed) for hash_seed in ("1", "2")]
        assert [run.wait() for run in runs] == [0, 0]
    finally:
        for process in spinning:
            process.kill()
            process.wait()
    first, second = ({path.name: path.read_bytes() for path in (tmp_path / seed).iterdir()} for seed in ("1", "2"))
    assert first == second
    assert len(first) == 6


def test_the_seed_of_the_order_chooses_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the model allows them all."""
    arrived: list[bytes] = []
    unary = MemoryServer.unary

    def note(self: MemoryServer, request: bytes, peer: str) -> bytes | grpc.aio.AioRpcError:
        arrived.append(request)
        return unary(self, request, peer)

    monkeypatch.setattr(MemoryServer, "unary", note)
    orders = []
    for seed in (1, 1, 2):
        arrived.clear()
        done(Wire(TransportKind.MEMORY, seed))
        orders.append(tuple(arrived))
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]


def done(wire: Wire) -> None:
    with Lockstep(("a", "b", "c"), "strict", wire=wire) as lockstep:
        for action in ACTIONS:
            lockstep.perform(action)


@pytest.mark.parametrize("wire", [IN_MEMORY, OVER_GRPC], ids=str)
def test_both_carry_the_same_run(wire: Wire) -> None:
    done(wire)


def loses_pushes(monkeypatch: pytest.MonkeyPatch) -> None:
    send = grpc_transport._ServerStream.send

    def lossy(self: grpc_transport._ServerStream, message: bytes) -> None:
        if b"NotifySubscriber" not in message:
            send(self, message)

    monkeypatch.setattr(grpc_transport._ServerStream, "send", lossy)


def loses_registrations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Acknowledged by the channel itself."""
    call = grpc_transport.GrpcChannel.call
    acknowledged: list[bytes] = []

    async def lossy(self: grpc_transport.GrpcChannel, request: bytes, timeout_s: float | None = None) -> bytes:
        if b"registerInstance" in request and acknowledged:
            return acknowledged.pop()
        reply = await call(self, request, timeout_s)
        if b"registerInstance" in request:
            acknowledged.append(reply)
        return reply

    monkeypatch.setattr(grpc_transport.GrpcChannel, "call", lossy)


def delivers_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    call = grpc_transport.GrpcChannel.call

    async def twice(self: grpc_transport.GrpcChannel, request: bytes, timeout_s: float | None = None) -> bytes:
        if b"registerInstance" in request:
            await call(self, request, timeout_s)
        return await call(self, request, timeout_s)

    monkeypatch.setattr(grpc_transport.GrpcChannel, "call", twice)


@pytest.mark.quality
@pytest.mark.parametrize(
    "plant",
    [delivers_twice, *(pytest.param(each, marks=pytest.mark.slow) for each in (loses_pushes, loses_registrations))],
)
def test_a_defect_of_grpc_is_found_over_grpc_and_nowhere_else(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    options: dict[str, Any] = {"seconds": 60, "shrink_seconds": 0, "rare_starts": False}
    found = random_walks(WalkOptions(**options, runs_max=30, transport=TransportKind.GRPC)).failure
    assert found is not None
    assert found.scenario.wire == OVER_GRPC
    assert random_walks(WalkOptions(**options, runs_max=4, transport=TransportKind.MEMORY)).failure is None


@pytest.mark.parametrize(
    ("chosen", "examples", "expected"),
    [
        pytest.param((), "12", {"grpc", "memory"}, id="mixed", marks=pytest.mark.slow),
        pytest.param(("--transport", "memory"), "2", {"memory"}, id="memory"),
    ],
)
def test_the_report_says_how_many_steps_went_over_which(
    document: Document, chosen: tuple[str, ...], examples: str, expected: set[str], tmp_path: Path
) -> None:
    short = ("--seconds", "60", "--examples", examples, "--steps", "10", "--seed", "1", "--jobs", "1")
    _, found = document("test", "cluster", *short, *chosen, "--out", str(tmp_path))
    over = found["steps_over"]
    assert over.keys() == {"grpc", "memory"}
    assert {kind for kind, steps in over.items() if steps} == expected
    assert sum(over.values()) == found["steps"]


def test_a_scenario_names_its_wire() -> None:
    scenario = parse("wire memory 17\nnodes a b\nconnect c1 a\n")
    assert scenario.wire == Wire(TransportKind.MEMORY, 17)
    assert parse(scenario.render()).wire == scenario.wire
    assert parse("wire grpc\nconnect c1 a\n").wire == OVER_GRPC
    assert "wire" not in parse("connect c1 a\n").render()
    with pytest.raises(ScenarioError, match="'wire' takes grpc, memory, or memory with the seed of its order"):
        parse("wire pigeons\nconnect c1 a\n")
