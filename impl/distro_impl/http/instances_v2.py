"""`/v2/ns/instance` and `/v3/client/ns/instance`: the same operations, their results in a wrapper.

In every release these paths are outside of the DistroFilter: what is registered at a node that does not own the client
stays there, unknown to the others, until it expires (D7). `strict` forwards them. The beat of v2 has no wrapper.
Source: docs/protocol #http-v2; InstanceControllerV2 (2.2.4, 2.5.1), InstanceOpenApiController (3.x).
"""

from __future__ import annotations

from collections.abc import Iterable

from aiohttp import web

from distro_impl.http.distro_filter import DistroFilter
from distro_impl.http.instances import InstanceOperations, instance_detail, user_agent
from distro_impl.http.parameters import read_parameters
from distro_impl.http.replies import ErrorCode, json_reply, wrapped
from distro_impl.http.service_names import service_of
from distro_impl.naming.instance_operator import BeatCode
from distro_impl.profiles import Profile


def instance_routes_v2(
    profile: Profile, operations: InstanceOperations, distro_filter: DistroFilter
) -> Iterable[web.RouteDef]:
    async def register(request: web.Request) -> web.Response:
        """Other than v1 and v3 it gives the instance no id (seen on 2.2.4 and 2.3.2)."""
        operations.register(await read_parameters(request), has_id=False)
        return wrapped("ok")

    async def deregister(request: web.Request) -> web.Response:
        operations.deregister(await read_parameters(request))
        return wrapped("ok")

    async def update(request: web.Request) -> web.Response:
        operations.update(await read_parameters(request))
        return wrapped("ok")

    async def beat(request: web.Request) -> web.Response:
        return json_reply(operations.beat(await read_parameters(request)))

    async def register_or_beat(request: web.Request) -> web.Response:
        """v3: `heartBeat=true` makes a light beat of it."""
        parameters = await read_parameters(request)
        if not parameters.flag("heartBeat", default=False):
            operations.register(parameters)
        elif operations.beat(parameters)["code"] != BeatCode.OK:
            return wrapped(None, ErrorCode.INSTANCE_NOT_FOUND)
        return wrapped("ok")

    async def instances(request: web.Request) -> web.Response:
        parameters = await read_parameters(request)
        clusters, agent = parameters.text("clusterName"), user_agent(request)
        found = operations.instances(
            parameters, clusters, agent, caller_ip=request.remote or "", listens_at=("ip", "port")
        )
        return wrapped(found)

    async def hosts(request: web.Request) -> web.Response:
        parameters = await read_parameters(request)
        return wrapped(operations.instances(parameters, parameters.text("clusterName"))["hosts"])

    async def instance(request: web.Request) -> web.Response:
        parameters = await read_parameters(request)
        return wrapped(
            {"serviceName": service_of(parameters).grouped_name, **instance_detail(operations.instance(parameters))}
        )

    forwarding = distro_filter.forwarding if profile.every_write_forwarded else lambda handler: handler
    if profile.http_v2_api:
        path = "/v2/ns/instance"
        yield web.post(path, forwarding(register))
        yield web.delete(path, forwarding(deregister))
        yield web.put(path, forwarding(update))
        yield web.put(f"{path}/beat", forwarding(beat))
        yield web.get(f"{path}/list", instances)
        yield web.get(path, instance)
    if profile.http_v3_api:
        path = "/v3/client/ns/instance"
        yield web.post(path, forwarding(register_or_beat))
        yield web.delete(path, forwarding(deregister))
        yield web.get(f"{path}/list", hosts)
