"""A client of the HTTP API that shares no code with the node: the request, and the bare answer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import aiohttp

from distro_impl import Node

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True)
class Answer:
    status: int
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Web:
    """`async with Web() as web: await web.get(node, "/v1/ns/instance/list", serviceName="web")`."""

    def __init__(self) -> None:
        self._session = aiohttp.ClientSession()

    async def ask(
        self,
        method: str,
        node: Node | str,
        path: str,
        parameters: dict[str, Any] | None = None,
        *,
        headers: dict[str, str] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        address = node if isinstance(node, str) else node.address
        query = {name: str(value) for name, value in (parameters or {}).items()}
        async with self._session.request(
            method, f"http://{address}/nacos{path}", params=query, headers=headers, data=body
        ) as reply:
            return Answer(reply.status, await reply.text())

    async def get(self, node: Node | str, path: str, **parameters: Any) -> Answer:
        return await self.ask("GET", node, path, parameters)

    async def post(self, node: Node | str, path: str, **parameters: Any) -> Answer:
        return await self.ask("POST", node, path, parameters)

    async def put(self, node: Node | str, path: str, **parameters: Any) -> Answer:
        return await self.ask("PUT", node, path, parameters)

    async def delete(self, node: Node | str, path: str, **parameters: Any) -> Answer:
        return await self.ask("DELETE", node, path, parameters)

    async def ports(self, node: Node | str, service: str) -> list[int]:
        """The ports of the instances that a node lists."""
        hosts = (await self.get(node, "/v1/ns/instance/list", serviceName=service)).json["hosts"]
        return sorted(host["port"] for host in hosts)

    async def __aenter__(self) -> Web:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._session.close()
