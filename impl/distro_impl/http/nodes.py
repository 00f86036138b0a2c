"""`/v1/core/cluster` and `/v2/core/cluster`: the members as this node sees them. Source: docs/protocol #http-admin.

What members report to each other under the same path, their reports, has a file of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aiohttp import web

from distro_impl.http.parameters import read_parameters
from distro_impl.http.replies import ApiError, ErrorCode, json_reply, wrapped
from distro_impl.membership.member import MemberState
from distro_impl.membership.members import ServerMemberManager
from distro_impl.profiles import Profile


def node_routes(profile: Profile, members: ServerMemberManager) -> Iterable[web.RouteDef]:
    async def nodes(request: web.Request) -> web.Response:
        keyword = (await read_parameters(request)).text("keyword")
        return _rest_result([each.to_json() for each in members.all_members() if each.address.startswith(keyword)])

    async def simple_nodes(_: web.Request) -> web.Response:
        return _rest_result([each.address for each in members.all_members()])

    async def own(_: web.Request) -> web.Response:
        return _rest_result(members.self_member.to_json())

    async def own_health(_: web.Request) -> web.Response:
        return _rest_result(members.self_member.state.value)

    async def nodes_v2(request: web.Request) -> web.Response:
        parameters = await read_parameters(request)
        address, state = parameters.text("address"), parameters.text("state").upper()
        if state and state not in MemberState.__members__:
            raise ApiError(ErrorCode.ILLEGAL_STATE, f"Illegal state: {state}")
        return wrapped(
            [
                each.to_json()
                for each in members.all_members()
                if each.address.startswith(address) and state in ("", each.state)
            ]
        )

    async def own_v2(_: web.Request) -> web.Response:
        return wrapped(members.self_member.to_json())

    async def own_health_v2(_: web.Request) -> web.Response:
        return wrapped(members.self_member.state.value)

    yield web.get("/v1/core/cluster/nodes", nodes)
    yield web.get("/v1/core/cluster/simple/nodes", simple_nodes)
    yield web.get("/v1/core/cluster/self", own)
    yield web.get("/v1/core/cluster/health", own_health)
    if profile.http_v2_api:
        yield web.get("/v2/core/cluster/node/list", nodes_v2)
        yield web.get("/v2/core/cluster/node/self", own_v2)
        yield web.get("/v2/core/cluster/node/self/health", own_health_v2)


def _rest_result(data: Any) -> web.Response:
    """The wrapper of the v1 core API."""
    return json_reply({"code": 200, "message": None, "data": data})
