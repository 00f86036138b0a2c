"""Ids of instances that come without one: `InstanceIdGeneratorManager`.

The metadata of an instance names the generator. `simple` joins what distinguishes instances, in the words of the
request: a cluster that the client did not name is written `null`. `snowflake` puts a number that never repeats in the
place of the address. Source: docs/protocol #naming-names.
"""

from __future__ import annotations

import zlib

from distro_impl.clocks.clock import Clock
from distro_impl.naming.client import Service
from distro_impl.remote.errors import SERVER_ERROR, NacosError
from distro_impl.remote.payloads import Instance

GENERATOR = "preserved.instance.id.generator"
SIMPLE, SNOWFLAKE = "simple", "snowflake"
WORKER_BITS, SEQUENCE_BITS = 10, 12


class InstanceIdGenerator:
    def __init__(self, clock: Clock, address: str) -> None:
        """`address` is that of the node: two nodes shall not give out the same numbers."""
        self._clock = clock
        self._worker = zlib.crc32(address.encode()) % (1 << WORKER_BITS)

    def generate(self, instance: Instance, service: Service) -> str:
        """Raises NacosError when the metadata name a generator that does not exist."""
        kind = (instance.metadata or {}).get(GENERATOR) or SIMPLE
        cluster = "null" if instance.cluster_name is None else instance.cluster_name
        rest = f"{cluster}#{instance.service_name or service.grouped_name}"
        if kind == SIMPLE:
            return f"{instance.ip}#{instance.port or 0}#{rest}"
        if kind == SNOWFLAKE:
            return f"{self._number()}#{rest}"
        raise NacosError(SERVER_ERROR, f"The InstanceIdGenerator type is not found: {kind!r}, set as {GENERATOR}")

    def _number(self) -> int:
        return (self._clock.unique_ms() << (WORKER_BITS + SEQUENCE_BITS)) | (self._worker << SEQUENCE_BITS)
