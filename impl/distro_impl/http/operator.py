"""`/v1/ns/operator` and `/v2/ns/operator`: reading and switching by an operator, and the health check of an old client.

Source: docs/protocol #http-v1 (status), #settings-switches and #http-admin.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from aiohttp import web

from distro_impl.distro.mapper import DistroMapper
from distro_impl.http.parameters import Parameters, answered
from distro_impl.http.replies import ApiError, ErrorCode
from distro_impl.membership.members import ServerMemberManager
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.ip_port_client import is_ip_port
from distro_impl.naming.service_info import CACHE_MILLIS
from distro_impl.naming.switch_domain import SwitchDomain
from distro_impl.profiles import Profile
from distro_protos import Json

ENTRIES = {
    "distroEnabled": "distro_enabled",
    "distro": "distro_enabled",
    "healthCheckEnabled": "health_check_enabled",
    "check": "health_check_enabled",
    "pushEnabled": "push_enabled",
    "lightBeatEnabled": "light_beat_enabled",
    "clientBeatInterval": "client_beat_interval_ms",
}
"""Entry of the switches API, with the older names, -> field of SwitchDomain."""


FIXED_SWITCHES: Json = {
    "name": "00-00---000-NACOS_SWITCH_DOMAIN-000---00-00",
    "masters": None,
    "adWeightMap": {},
    "defaultCacheMillis": 3_000,
    "distroThreshold": 0.7,
    "autoChangeHealthCheckEnabled": True,
    "enableStandalone": True,
    "checkTimes": 3,
    "httpHealthParams": {"max": 5_000, "min": 500, "factor": 0.85},
    "tcpHealthParams": {"max": 5_000, "min": 1_000, "factor": 0.75},
    "mysqlHealthParams": {"max": 3_000, "min": 2_000, "factor": 0.65},
    "incrementalList": [],
    "serverStatusSynchronizationPeriodMillis": 2_000,
    "serviceStatusSynchronizationPeriodMillis": 5_000,
    "disableAddIP": False,
    "sendBeatOnly": False,
    "limitedUrlMap": {},
    "distroServerExpiredMillis": 10_000,
    "pushGoVersion": "0.1.0",
    "pushJavaVersion": "0.1.0",
    "pushPythonVersion": "0.4.3",
    "pushCVersion": "1.0.12",
    "pushCSharpVersion": "0.9.0",
    "enableAuthentication": False,
    "overriddenServerStatus": None,
    "healthCheckWhiteList": [],
    "checksum": None,
}
"""What a server shows besides: switches of 1.x and of persistent instances, with their initial values."""


class Operator:
    def __init__(
        self,
        clients: ClientManager,
        members: ServerMemberManager,
        mapper: DistroMapper,
        switches: SwitchDomain,
        status: Callable[[], str],
    ) -> None:
        self._clients, self._members, self._mapper = clients, members, mapper
        self._switches, self._status = switches, status

    def metrics(self, parameters: Parameters) -> Json:
        status = {"status": self._status()}
        return status if parameters.flag("onlyStatus", default=True) else {**status, **self._counters(), **_machine()}

    def switches(self, _: Parameters) -> Json:
        return {
            **FIXED_SWITCHES,
            "distroEnabled": self._switches.distro_enabled,
            "healthCheckEnabled": self._switches.health_check_enabled,
            "pushEnabled": self._switches.push_enabled,
            "lightBeatEnabled": self._switches.light_beat_enabled,
            "clientBeatInterval": self._switches.client_beat_interval_ms,
            "defaultPushCacheMillis": CACHE_MILLIS,
            "defaultInstanceEphemeral": True,
        }

    def turn_switch(self, parameters: Parameters) -> None:
        """A switch that this node does not have is refused, where a real server says `ok` to anything."""
        entry = parameters.required("entry")
        parameters.required("value")
        field = ENTRIES.get(entry)
        if field is None:
            known = ", ".join(ENTRIES)
            raise ApiError(ErrorCode.PARAMETER_VALIDATE_ERROR, f"no switch '{entry}' can be turned; known are: {known}")
        if field == "client_beat_interval_ms":
            self._switches.client_beat_interval_ms = max(1, parameters.whole_number("value"))
        else:
            setattr(self._switches, field, parameters.flag("value", default=True))

    def owner(self, parameters: Parameters) -> Json:
        return {"responsibleServer": self._mapper.map_server(f"{parameters.required('ip')}:{parameters.port()}")}

    def servers(self, parameters: Parameters) -> Json:
        only_healthy = parameters.flag("healthy", default=False)
        members = [each for each in self._members.all_members() if each.is_healthy or not only_healthy]
        return {"servers": [each.to_json() for each in members]}

    def _counters(self) -> Json:
        clients = tuple(self._clients)
        responsible = [client for client in clients if client.responsible]
        ip_port = sum(is_ip_port(client.id) for client in clients)
        return {
            "serviceCount": len(self._clients.services()),
            "instanceCount": sum(len(held.instances) for client in clients for held in client.publishers.values()),
            "subscribeCount": sum(len(client.subscribers) for client in clients),
            "responsibleInstanceCount": sum(len(client.publishers) for client in responsible),
            "clientCount": len(clients),
            "connectionBasedClientCount": len(clients) - ip_port,
            "ephemeralIpPortClientCount": ip_port,
            "persistentIpPortClientCount": 0,
            "responsibleClientCount": len(responsible),
        }


def operator_routes(profile: Profile, operator: Operator) -> Iterable[web.RouteDef]:
    for path in ("/v1/ns/operator", "/v1/ns/ops", "/v2/ns/operator", "/v2/ns/ops"):
        is_v1 = path.startswith("/v1")
        if is_v1 or profile.http_v2_api:
            yield web.get(f"{path}/metrics", answered(operator.metrics))
            yield web.get(f"{path}/switches", answered(operator.switches))
            yield web.put(f"{path}/switches", answered(operator.turn_switch))
        if is_v1:
            yield web.get(f"{path}/distro/client", answered(operator.owner))
        if is_v1 and not profile.http_v2_api:  # gone with the switch to 2.2
            yield web.get(f"{path}/servers", answered(operator.servers))


def _machine() -> Json:
    """Use of the machine: `load` is the load average of a minute, `cpu` what it says of each processor, at most 1."""
    load = os.getloadavg()[0]
    free, pages = os.sysconf("SC_AVPHYS_PAGES"), os.sysconf("SC_PHYS_PAGES")
    return {"cpu": min(1.0, load / (os.cpu_count() or 1)), "load": load, "mem": 1 - free / pages}
