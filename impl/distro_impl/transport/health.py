"""Whether a node serves, for any caller of the health service of gRPC."""

from __future__ import annotations

from grpc_health.v1 import health, health_pb2

from distro_protos import REQUEST_SERVICE, STREAM_SERVICE

ALL_SERVICES = ""


class Health:
    """What the health services of a node say."""

    def __init__(self) -> None:
        self.servicer = health.aio.HealthServicer()

    async def set_serving(self, is_serving: bool) -> None:
        status = health_pb2.HealthCheckResponse.SERVING if is_serving else health_pb2.HealthCheckResponse.NOT_SERVING
        for service in (ALL_SERVICES, REQUEST_SERVICE, STREAM_SERVICE):
            await self.servicer.set(service, status)
