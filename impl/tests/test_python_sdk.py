"""The official Python SDK against three nodes in real time: it must not notice that they are not Nacos.

The SDK keeps the last list that was not empty, so whether an instance is gone is asked by a client that has never seen
it (docs/real-servers.md#the-python-sdk).
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from impl_lab import NACOS_2_2_4, STRICT

from distro_impl import Cluster, NodeOptions, Profile
from distro_impl.options import READS_ALL, AuthOptions, User

pytestmark = pytest.mark.wire

SERVICE, PORT = "orders", 8080
WITHIN_S = 30.0


def sdk(module: str = "v2.nacos") -> Any:
    """A module of the SDK. It takes a second to load, which those who only collect the tests need not wait."""
    return importlib.import_module(module)


@pytest.fixture(autouse=True)
def _home_in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("HOME", str(tmp_path))
    yield
    logger = logging.getLogger("naming")  # the SDK adds a file to it with each client and never takes one away
    for handler in tuple(logger.handlers):
        logger.removeHandler(handler)
        handler.close()


class Sdks:
    """SDK clients, each with directories of its own: they would share a cache otherwise."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self._cluster, self._directory, self._numbers = cluster, directory, count()

    @asynccontextmanager
    async def at(self, node: int, user: str = "", password: str = "") -> AsyncIterator[Any]:
        home = self._directory / f"sdk-{next(self._numbers)}"
        config = (
            sdk()
            .ClientConfigBuilder()
            .username(user)
            .password(password)
            .server_address(self._cluster.addresses[node])
            .grpc_config(sdk().GRPCConfig(grpc_timeout=5000))
            .log_dir(str(home / "logs"))
            .cache_dir(str(home / "cache"))
            .build()
        )
        client = await sdk().NacosNamingService.create_naming_service(config)
        try:
            yield client
        finally:
            await client.shutdown()

    async def sees(self, node: int) -> list[int]:
        """The ports that a client which has never asked before sees."""
        async with self.at(node) as client:
            found = await client.list_instances(sdk().ListInstanceParam(service_name=SERVICE, healthy_only=None))
            return [instance.port for instance in found]


async def within(seconds: float, condition: Callable[[], Awaitable[bool]], what: str) -> None:
    deadline = time.monotonic() + seconds
    while not await condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        await asyncio.sleep(0.1)


@pytest.mark.parametrize("profile", [NACOS_2_2_4, STRICT], ids=lambda profile: profile.name)
async def test_registered_at_one_node_found_at_another_pushed_and_gone_after_shutdown(
    tmp_path: Path, profile: Profile
) -> None:
    pushed: list[list[int]] = []

    async def on_push(instances: list[Any]) -> None:
        pushed.append([instance.port for instance in instances])

    async def was_pushed() -> bool:
        return [PORT] in pushed

    in_a_hurry = replace(profile, sync_delay_ms=200, push_delay_ms=100)
    async with Cluster(3, profile=in_a_hurry) as cluster:
        sdks = Sdks(cluster, tmp_path)
        async with sdks.at(1) as subscriber:
            await subscriber.subscribe(sdk().SubscribeServiceParam(service_name=SERVICE, subscribe_callback=on_push))
            async with sdks.at(0) as publisher:
                instance = sdk().RegisterInstanceParam(
                    service_name=SERVICE, ip="10.0.0.9", port=PORT, metadata={"zone": "a"}
                )
                assert await publisher.register_instance(instance)
                await within(WITHIN_S, lambda: _is(sdks.sees(2), [PORT]), "discovered through the third node")
                await within(WITHIN_S, was_pushed, "pushed to a subscriber at the second node")
            for node in range(3):
                await within(WITHIN_S, lambda node=node: _is(sdks.sees(node), []), f"gone at node {node}")  # type: ignore[misc]


async def test_with_authentication_the_sdk_needs_a_user_and_his_rights(tmp_path: Path) -> None:
    users = {"nacos": User("nacos", "nacos"), "reader": User("reader", "secret", READS_ALL)}
    refusal = sdk("v2.nacos.common.nacos_exception").NacosException
    auth = AuthOptions(secret=b"0123456789abcdef0123456789abcdef", users=users)
    instance = sdk().RegisterInstanceParam(service_name=SERVICE, ip="10.0.0.9", port=PORT)
    wanted = sdk().ListInstanceParam(service_name=SERVICE, healthy_only=None)
    async with Cluster(1, options=NodeOptions(auth=auth)) as cluster:
        sdks = Sdks(cluster, tmp_path)
        async with (
            sdks.at(0, "nacos", "nacos") as owner,
            sdks.at(0, "reader", "secret") as reader,
            sdks.at(0) as anonymous,
            sdks.at(0, "nacos", "wrong") as stranger,
        ):
            assert await owner.register_instance(instance)
            assert [found.port for found in await reader.list_instances(wanted)] == [PORT]
            for refused, why in ((reader, "authorization failed"), (anonymous, "user not found")):
                with pytest.raises(refusal, match=why):
                    await refused.register_instance(instance)
            with pytest.raises(refusal, match="get access token failed"):
                await stranger.register_instance(instance)


async def _is(found: Awaitable[list[int]], wanted: list[int]) -> bool:
    return await found == wanted
