"""A small application: it publishes itself with the official Nacos SDK and finds the others."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from v2.nacos import (
    ClientConfigBuilder,
    DeregisterInstanceParam,
    GRPCConfig,
    ListInstanceParam,
    NacosNamingService,
    RegisterInstanceParam,
)


class Orders:
    """Use as `async with Orders("127.0.0.1:8848", home) as orders:`; the SDK writes its cache and logs into `home`."""

    def __init__(self, servers: str, home: Path) -> None:
        self._config = (
            ClientConfigBuilder()
            .server_address(servers)
            .grpc_config(GRPCConfig(grpc_timeout=5000))
            .cache_dir(str(home / "cache"))
            .log_dir(str(home / "logs"))
            .build()
        )

    async def __aenter__(self) -> Self:
        self._naming = await NacosNamingService.create_naming_service(self._config)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._naming.shutdown()

    async def publish(self, ip: str, port: int) -> None:
        await self._naming.register_instance(RegisterInstanceParam(service_name="orders", ip=ip, port=port))

    async def withdraw(self, ip: str, port: int) -> None:
        await self._naming.deregister_instance(DeregisterInstanceParam(service_name="orders", ip=ip, port=port))

    async def found(self) -> list[str]:
        hosts = await self._naming.list_instances(ListInstanceParam(service_name="orders", healthy_only=None))
        return sorted(f"{host.ip}:{host.port}" for host in hosts)
