"""The speed of lockstep, and for comparison the speed of plain gRPC calls, measured in the same run.

    python bench/lockstep.py --json [--quick]

A step is one action of the Hypothesis machine: done on three nodes under virtual time, in memory or over real gRPC,
read back with a SNAPSHOT from each node that can have changed, and compared with the model. Starting the nodes of each
run and the quiet period at its end are included. `steps_per_cpu_s` is per second of processor time of this process.
`steps_per_s_all` has a process on each core; the start of a process, a second or more, is included.
"""

from __future__ import annotations

# ruff: noqa: I001 - distro_conformance first: it quiets gRPC core, which reads that when it is imported
import argparse
import asyncio
import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import distro_conformance  # noqa: F401
import grpc.aio

from distro_conformance.doctor import usable_cores
from distro_conformance.walks.result import WalkOptions
from distro_conformance.walks.processes import random_walks_on
from distro_conformance.wire.transports import TransportKind
from distro_protos import REQUEST_METHOD, REQUEST_SERVICE, Payload, encode

ROUNDS = 3


async def echo_calls_per_s(seconds: float) -> float:
    """The speed of unary calls, one after the other as in a step, with a payload of the usual size."""
    handler = grpc.unary_unary_rpc_method_handler(
        _echo, request_deserializer=Payload.FromString, response_serializer=Payload.SerializeToString
    )
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(REQUEST_SERVICE, {REQUEST_METHOD: handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary(
            f"/{REQUEST_SERVICE}/{REQUEST_METHOD}",
            request_serializer=Payload.SerializeToString,
            response_deserializer=Payload.FromString,
        )
        payload = encode("DistroDataRequest", {"dataOperation": "CHANGE", "content": "x" * 600})
        calls, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            await call(payload)
            calls += 1
        elapsed = time.perf_counter() - began
    await server.stop(None)
    return calls / elapsed


async def _echo(request: Payload, _: grpc.aio.ServicerContext[Payload, Payload]) -> Payload:
    return request


def lockstep_steps_per_s(options: WalkOptions, processes: int = 1) -> tuple[float, float]:
    """Steps per second, and steps per second of processor time of this process."""
    began_s = time.process_time()
    result = random_walks_on(processes, options)
    if result.failure:
        sys.exit(f"the nodes differ from the model, so nothing was measured: {result.failure.message}")
    return result.steps / result.seconds, result.steps / (time.process_time() - began_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON (they always are)")
    parser.add_argument("--quick", action="store_true", help="end within a minute")
    parser.add_argument("--runs", type=int, help="end each measurement after this number of runs")
    arguments = parser.parse_args()
    seconds = 3.0 if arguments.quick else 12.0
    memory, recorded, over_grpc, echo = [], [], [], []
    all_memory, all_grpc, cores = [], [], usable_cores()
    for seed in range(ROUNDS):
        echo.append(asyncio.run(echo_calls_per_s(seconds / 8)))
        options = WalkOptions(
            seconds=seconds,
            seed=seed,
            runs_max=arguments.runs,
            rare_starts=False,
            transport=TransportKind.MEMORY,
            http=False,
        )
        memory.append(lockstep_steps_per_s(options))
        over_grpc.append(lockstep_steps_per_s(replace(options, transport=TransportKind.GRPC)))
        all_memory.append(lockstep_steps_per_s(options, cores))
        all_grpc.append(lockstep_steps_per_s(replace(options, transport=TransportKind.GRPC), cores))
        with tempfile.TemporaryDirectory() as directory:
            recorded.append(lockstep_steps_per_s(replace(options, record_into=Path(directory))))
    figures = {
        "steps_per_s": round(median(per_s for per_s, _ in memory), 1),
        "steps_per_cpu_s": round(median(per_cpu_s for _, per_cpu_s in memory), 1),
        "steps_per_s_recorded": round(median(per_s for per_s, _ in recorded), 1),
        "steps_per_s_grpc": round(median(per_s for per_s, _ in over_grpc), 1),
        "steps_per_cpu_s_grpc": round(median(per_cpu_s for _, per_cpu_s in over_grpc), 1),
        "cores": cores,
        "steps_per_s_all": round(median(per_s for per_s, _ in all_memory), 1),
        "steps_per_s_grpc_all": round(median(per_s for per_s, _ in all_grpc), 1),
        "echo_calls_per_s": round(median(echo), 1),
    }
    ratios = {
        "steps_per_echo_call": round(median(g / e for (g, _), e in zip(over_grpc, echo, strict=True)), 4),
        "recorded_to_plain": round(median(r / p for (r, _), (p, _) in zip(recorded, memory, strict=True)), 3),
        "memory_to_grpc": round(median(m / g for (m, _), (g, _) in zip(memory, over_grpc, strict=True)), 2),
    }
    print(json.dumps({"bench": "lockstep", "figures": figures, "ratios": ratios}, indent=2))


if __name__ == "__main__":  # each process of the walks imports this file, too
    main()
