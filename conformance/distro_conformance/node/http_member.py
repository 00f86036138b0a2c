"""The HTTP port of the played member: requests of the node are recorded, and reports are answered as by a member.

Up to 2.2.0 a node considers only members alive that it can report to over HTTP; every release passes on to this port
requests about instances that this member owns. Source: docs/protocol #member-report and #owner-place.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web

from distro_conformance.verdict import TargetError
from distro_protos import Json

REPORT_PATH = "/nacos/v1/core/cluster/report"
_INSTANCES = ("/nacos/v1/ns/instance", "/nacos/v2/ns/instance")
_RECORDED_HEADERS = ("User-Agent", "Client-Version", "Nacos-Server", "Content-Type")
ANSWER = "ok, said the owner"
REFUSED = 400


@dataclass
class HttpMember:
    """`as_member` is its own record. `requests` are all requests but reports, `reports` the members in them."""

    port: int
    as_member: Callable[[], Json]
    requests: list[Json] = field(default_factory=list)
    reports: list[Json] = field(default_factory=list)
    refuses: set[str] = field(default_factory=set)
    """Instances, by ip, whose requests it answers with `REFUSED`."""
    _runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Raises TargetError when the port is taken."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        except OSError as error:
            raise TargetError(f"the played member cannot listen on 127.0.0.1:{self.port}: {error.strerror}") from error

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def report_to(self, node: str, version: str) -> None:
        """Report this member to the node at host:port. Raises TargetError when the node refuses the report."""
        headers = {"User-Agent": f"Nacos-Server:v{version}", "Nacos-Server": version}
        async with aiohttp.ClientSession(trust_env=False) as session:
            url = f"http://{node}{REPORT_PATH}"
            async with session.post(url, json=self.as_member(), headers=headers) as reply:
                if reply.status != 200:
                    raise TargetError(f"{node} does not take a report: {reply.status} {await reply.text()}")

    async def _answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        if request.path == REPORT_PATH:
            self.reports.append(json.loads(body))
            return web.json_response({"code": 200, "message": None, "data": json.dumps(self.as_member())})
        if not request.path.startswith(_INSTANCES):
            return web.Response(status=404)  # for the parts of 1.x (docs/real-servers.md#a-played-member)
        self.requests.append(
            {
                "method": request.method,
                "path": request.path,
                "query": dict(sorted(request.query.items())),
                "body": body.decode("utf-8", "replace"),
                "headers": {name: request.headers[name] for name in _RECORDED_HEADERS if name in request.headers},
            }
        )
        return web.Response(text=ANSWER, status=REFUSED if request.query.get("ip") in self.refuses else 200)
