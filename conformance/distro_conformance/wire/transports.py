"""What the embedded nodes of a run speak over: real gRPC, or memory in an order that a seed chooses.

Memory is fast and repeats itself byte for byte, so most runs go there. Some go over gRPC in every search, since a
defect of the transport itself shows nowhere else.
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
"""Of so many runs, or rounds of runs, the first goes over gRPC where nothing else is asked for."""

FIRST_PORT_IN_MEMORY, PORTS_OF_A_NODE = 8848, 10


class Carrier(StrEnum):
    GRPC = "grpc"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Wire:
    """`seed` chooses the order in memory; real gRPC has its own."""

    carrier: Carrier = Carrier.MEMORY
    seed: int = 0

    def transport(self, clock: VirtualClock) -> Transport:
        # The verbs name a carrier before it is known whether they will run: nodes are loaded when there are any.
        from distro_impl.transport.grpc_transport import GrpcTransport  # noqa: PLC0415
        from distro_impl.transport.memory import MemoryTransport  # noqa: PLC0415

        return GrpcTransport() if self.carrier is Carrier.GRPC else MemoryTransport(clock, self.seed)

    def main_ports(self, nodes: int) -> list[int]:
        """Ascending. In memory no other process takes ports, so they are always the same there."""
        if self.carrier is Carrier.GRPC:
            from distro_impl import free_main_ports  # noqa: PLC0415

            return sorted(free_main_ports(nodes))
        return [FIRST_PORT_IN_MEMORY + number * PORTS_OF_A_NODE for number in range(nodes)]

    def __str__(self) -> str:
        return "grpc" if self.carrier is Carrier.GRPC else f"memory {self.seed}"


OVER_GRPC, IN_MEMORY = Wire(Carrier.GRPC), Wire()


def wire_of(chosen: Carrier | None, number: int, seed: int) -> Wire:
    """Of the run, or round, with that number, from 0; `chosen` None mixes."""
    over_grpc = number % GRPC_EVERY == 0 if chosen is None else chosen is Carrier.GRPC
    return OVER_GRPC if over_grpc else Wire(Carrier.MEMORY, seed)


def steps_over(counted: Mapping[str, int]) -> dict[str, int]:
    """As reports have it: how many steps went over which, also where there were none."""
    return {carrier.value: counted.get(carrier.value, 0) for carrier in Carrier}


def parse_wire(text: str) -> Wire:
    """Of `grpc`, `memory`, `memory 17`. Raises ValueError."""
    match text.split():
        case ["grpc"]:
            return OVER_GRPC
        case ["memory"]:
            return IN_MEMORY
        case ["memory", seed] if seed.isdecimal():
            return Wire(Carrier.MEMORY, int(seed))
    raise ValueError("'wire' takes grpc, memory, or memory with the seed of its order")
