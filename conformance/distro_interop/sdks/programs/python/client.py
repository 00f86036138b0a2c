"""The official Python SDK behind the commands of ../README.md."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path

from v2.nacos import (
    BatchRegisterInstanceParam,
    ClientConfigBuilder,
    DeregisterInstanceParam,
    GRPCConfig,
    ListInstanceParam,
    NacosNamingService,
    RegisterInstanceParam,
    SubscribeServiceParam,
)
from v2.nacos.naming.model.instance import Instance

REQUEST_TIMEOUT_MS = 5000


def emit(**line: object) -> None:
    print(json.dumps(line), flush=True)  # noqa: T201 - the contract is lines on stdout


def described(instances: list[Instance]) -> list[dict[str, object]]:
    return [
        {
            "ip": instance.ip,
            "port": instance.port,
            "weight": instance.weight,
            "healthy": instance.healthy,
            "cluster": instance.clusterName,
            "metadata": instance.metadata,
        }
        for instance in instances
    ]


async def push(service: str, instances: list[Instance]) -> None:
    emit(pushed=service, instances=described(instances))


async def execute_command(sdk: NacosNamingService, verb: str, words: list[str]) -> dict[str, object]:
    """Carry out one command; returns the fields of the answer beside its name."""
    match verb, words:
        case "register", [service, ip, port, *pairs]:
            options = dict(pair.split("=", 1) for pair in pairs)
            weight, cluster = float(options.pop("weight", 1.0)), options.pop("cluster", "")
            await sdk.register_instance(
                RegisterInstanceParam(
                    service_name=service,
                    ip=ip,
                    port=int(port),
                    weight=weight,
                    cluster_name=cluster,
                    metadata=options,
                )
            )
        case "batch", [service, addresses]:
            pairs = [address.split(":") for address in addresses.split(",")]
            instances = [RegisterInstanceParam(service_name=service, ip=ip, port=int(port)) for ip, port in pairs]
            await sdk.batch_register_instances(BatchRegisterInstanceParam(service_name=service, instances=instances))
        case "deregister", [service, ip, port]:
            await sdk.deregister_instance(DeregisterInstanceParam(service_name=service, ip=ip, port=int(port)))
        case "subscribe", [service]:
            callback = partial(push, service)
            await sdk.subscribe(SubscribeServiceParam(service_name=service, subscribe_callback=callback))
        case "query", [service]:
            found = await sdk.list_instances(ListInstanceParam(service_name=service, healthy_only=None))
            return {"instances": described(found)}
        case _:
            raise ValueError(f"no command {verb!r} with {len(words)} arguments")
    return {}


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--username", default="")
    parser.add_argument("--password", default="")
    options = parser.parse_args()
    home = Path.home() / "nacos"
    config = (
        ClientConfigBuilder()
        .server_address(options.server)
        .namespace_id("public")  # 2.0.x says "" otherwise, which is another namespace
        .username(options.username)
        .password(options.password)
        .grpc_config(GRPCConfig(grpc_timeout=REQUEST_TIMEOUT_MS))
        .log_dir(str(home / "logs"))
        .cache_dir(str(home / "cache"))
        .build()
    )
    sdk = await NacosNamingService.create_naming_service(config)
    emit(ready=f"nacos-sdk-python {version('nacos-sdk-python')}")
    while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
        verb, *words = line.split()
        if verb == "close":
            break
        try:
            emit(done=verb, **await execute_command(sdk, verb, words))
        except Exception as error:  # noqa: BLE001 - report every error of the SDK
            emit(error=f"{type(error).__name__}: {error}")
    with suppress(TypeError):  # 2.0.x has closed its connection by then, and awaits what is no coroutine
        await sdk.shutdown()
    emit(done="close")


asyncio.run(main())
