"""The transports of the embedded nodes of a run: real gRPC, or memory in an order that a seed chooses.

Memory is fast and reproducible byte for byte, so most runs use it. Every search runs some over gRPC, since only they
show a defect of the transport itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distro_impl import VirtualClock
    from distro_impl.transport.transport import Transport

GRPC_EVERY = 4
"""The first of this many runs, or rounds of runs, goes over gRPC by default."""

FIRST_PORT_IN_MEMORY, PORTS_OF_A_NODE = 8848, 10


class TransportKind(StrEnum):
    GRPC = "grpc"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Wire:
    """`seed` chooses the order in memory; real gRPC has its own."""

    kind: TransportKind = TransportKind.MEMORY
    seed: int = 0

    def transport(self, clock: VirtualClock) -> Transport:
        # The verbs name a transport before it is known whether they will run: nodes are loaded when there are any.
        from distro_impl.transport.grpc_transport import GrpcTransport  # noqa: PLC0415
        from distro_impl.transport.memory import MemoryTransport  # noqa: PLC0415

        return GrpcTransport() if self.kind is TransportKind.GRPC else MemoryTransport(clock, self.seed)

    def main_ports(self, nodes: int) -> list[int]:
        """Ascending. In memory no other process takes ports, so they are always the same there."""
        if self.kind is TransportKind.GRPC:
            from distro_impl import free_main_ports  # noqa: PLC0415

            return sorted(free_main_ports(nodes))
        return [FIRST_PORT_IN_MEMORY + number * PORTS_OF_A_NODE for number in range(nodes)]

    def __str__(self) -> str:
        return "grpc" if self.kind is TransportKind.GRPC else f"memory {self.seed}"


OVER_GRPC, IN_MEMORY = Wire(TransportKind.GRPC), Wire()


def wire_of(chosen: TransportKind | None, number: int, seed: int) -> Wire:
    """The transport of the run, or round, with that number, from 0; `chosen` None mixes both."""
    over_grpc = number % GRPC_EVERY == 0 if chosen is None else chosen is TransportKind.GRPC
    return OVER_GRPC if over_grpc else Wire(TransportKind.MEMORY, seed)


def steps_over(counted: Mapping[str, int]) -> dict[str, int]:
    """The number of steps over each transport, for reports, including zero."""
    return {kind.value: counted.get(kind.value, 0) for kind in TransportKind}


def parse_wire(text: str) -> Wire:
    """Reads `grpc`, `memory` or `memory 17`. Raises ValueError."""
    match text.split():
        case ["grpc"]:
            return OVER_GRPC
        case ["memory"]:
            return IN_MEMORY
        case ["memory", seed] if seed.isdecimal():
            return Wire(TransportKind.MEMORY, int(seed))
    raise ValueError("'wire' takes grpc, memory, or memory with the seed of its order")
