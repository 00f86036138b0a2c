"""`/v1/core/cluster/report`: how members of the releases up to 2.2.0 report themselves.

Source: docs/protocol #member-report.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from aiohttp import web

from distro_impl.http.body import read_json_body
from distro_impl.http.replies import json_reply
from distro_impl.membership.member import ILLEGAL_NODE, addressed, is_legal, read_member
from distro_impl.membership.members import ServerMemberManager
from distro_impl.profiles import Profile

CLUSTER_REPORT = "/v1/core/cluster/report"


def cluster_routes(members: ServerMemberManager, profile: Profile) -> Iterable[web.RouteDef]:
    async def report(request: web.Request) -> web.Response:
        """The answer says that it was taken in: up to 2.1.2 whether the member is on our list, from 2.2.0 on it has
        our own member, as a text within the JSON."""
        try:
            node = read_member(await read_json_body(request))
        except ValueError:
            node = None
        node = None if node is None else addressed(node, profile)
        if node is None or not is_legal(node):
            return json_reply({"code": 400, "message": ILLEGAL_NODE, "data": None})
        is_member = json.dumps(members.receive_report(node))
        own = json.dumps(members.self_member.to_json()) if profile.http_report_answers_member else is_member
        return json_reply({"code": 200, "message": None, "data": own})

    yield web.post(CLUSTER_REPORT, report)
