"""`/v1/core/cluster` and `/v2/core/cluster`: the members as this node sees them, and how they report themselves.

Members of the releases up to 2.2.0 report themselves over HTTP. A server of 2.0.x also requests the replicated data of
Nacos 1.x from each member while it starts, and treats 404 as a failed load; servers up to 2.1.2 answer with an empty
object. Source: docs/protocol #http-admin, #member-report and #load-types.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from aiohttp import web

from distro_impl.http.parameters import Parameters, answered, read_json_body
from distro_impl.http.replies import ApiError, ErrorCode, json_reply
from distro_impl.membership.member import ILLEGAL_NODE, MemberState, addressed, is_legal, read_member
from distro_impl.membership.members import ServerMemberManager
from distro_impl.profiles import Profile
from distro_protos import Json


def cluster_routes(profile: Profile, members: ServerMemberManager) -> Iterable[web.RouteDef]:
    def nodes(parameters: Parameters) -> Json:
        keyword = parameters.text("keyword")
        return _rest_result([each.to_json() for each in members.all_members() if each.address.startswith(keyword)])

    def simple_nodes(_: Parameters) -> Json:
        return _rest_result([each.address for each in members.all_members()])

    def nodes_v2(parameters: Parameters) -> list[Json]:
        address, state = parameters.text("address"), parameters.text("state").upper()
        if state and state not in MemberState.__members__:
            raise ApiError(ErrorCode.ILLEGAL_STATE, f"Illegal state: {state}")
        found = [each for each in members.all_members() if each.address.startswith(address)]
        return [each.to_json() for each in found if state in ("", each.state)]

    async def report(request: web.Request) -> web.Response:
        """The answer says that it was taken in: up to 2.1.2 whether the member is on our list, from 2.2.0 on it has
        our own member, as a text within the JSON."""
        try:
            node = read_member(await read_json_body(request))
        except ValueError:
            node = None
        node = None if node is None else addressed(node, profile)
        if node is None or not is_legal(node):
            return json_reply(_rest_result(None, 400, ILLEGAL_NODE))
        is_member = members.receive_report(node)
        return json_reply(
            _rest_result(json.dumps(members.self_member.to_json() if profile.http_report_answers_member else is_member))
        )

    async def datums(_: web.Request) -> web.Response:
        return web.Response(body=b"{}", content_type="application/octet-stream", charset="UTF-8")

    path = "/v1/core/cluster"
    yield web.get(f"{path}/nodes", answered(nodes))
    yield web.get(f"{path}/simple/nodes", answered(simple_nodes))
    yield web.get(f"{path}/self", answered(lambda _: _rest_result(members.self_member.to_json())))
    yield web.get(f"{path}/health", answered(lambda _: _rest_result(members.self_member.state.value)))
    yield web.post(f"{path}/report", report)
    if profile.http_v2_api:
        path = "/v2/core/cluster/node"
        yield web.get(f"{path}/list", answered(nodes_v2))
        yield web.get(f"{path}/self", answered(lambda _: members.self_member.to_json()))
        yield web.get(f"{path}/self/health", answered(lambda _: members.self_member.state.value))
    if profile.http_v1_distro:
        yield web.get("/v1/ns/distro/datums", datums)


def _rest_result(data: Any, code: int = 200, message: str | None = None) -> Json:
    """The wrapper of the v1 core API."""
    return {"code": code, "message": message, "data": data}
