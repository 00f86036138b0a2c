"""Pushes over UDP, to clients of the 1.x generation: they hold no connection, and name a port when they ask for a list.

The list of a service goes out as one packet, compressed when it is long; the client answers with the number of the
packet. A packet or its answer may get lost, so silence is met with one more packet, and then the client is left to ask
by itself, as it does every ten seconds. Source: docs/protocol #http-udp, #http-v1; class UdpPushService; what a running
2.2.4 sends, and what the Java client 1.4 and the Node client answer.
"""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import json
import re
import socket
from collections.abc import Mapping

from distro_impl.clocks.clock import Clock, Waiting
from distro_impl.logs import logger
from distro_impl.naming.ip_port_client import responsible_tag
from distro_impl.ports import MAX_PORT
from distro_impl.transport.datagrams import Receiver, sent_to
from distro_protos import Json, read_json
from distro_protos.addresses import is_loopback, split_address, without_brackets

PACKET, ACKNOWLEDGEMENT = "dom", "push-ack"
ACK_TIMEOUT_MS = 10_000
TRIES = 2
COMPRESSED_FROM_BYTES = 1024
MAX_PACKET_BYTES = 65_507
ANY_VERSION: tuple[int, ...] = ()
LISTENING_SINCE: Mapping[str, tuple[int, ...]] = {
    "Nacos-Java-Client": (0, 1, 0),
    "Nacos-Go-Client": (0, 1, 0),
    "Nacos-C-Client": (1, 0, 12),
    "Nacos-CSharp-Client": (0, 9, 0),
    "Nacos-DNS": ANY_VERSION,
}
"""Who listens for pushes, by the name and the version in the user agent, `<name>:v<version>`; other clients only say
that they do."""

VERSION = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){0,9}")

Address = tuple[str, int]

log = logger(__name__)


def can_be_pushed_to(agent: str, ip: str, port: int, caller_ip: str) -> bool:
    """Whether a client that calls itself so, and whose request comes from `caller_ip`, gets pushes there.

    Servers take any text for an address, and look it up; only where an address is one does a push arrive. They also
    push to any address that is named, so a caller can have pushes sent to a third party; here only a program on this
    machine may name another address than the one it calls from.
    """
    try:
        ipaddress.IPv4Address(ip)
    except ValueError:
        return False
    is_own = ip == caller_ip or is_loopback(caller_ip)
    return is_own and 0 < port <= MAX_PORT and _listens(agent)


def _listens(agent: str) -> bool:
    since = next((least for name, least in LISTENING_SINCE.items() if agent.startswith(name)), None)
    if not since:
        return since is not None
    numbers = VERSION.match(agent.partition(":v")[2])
    return numbers is not None and tuple(map(int, numbers[0].split("."))) >= since


class UdpPushService(asyncio.DatagramProtocol):
    """The socket is opened by the first push."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._opening: asyncio.Task[asyncio.DatagramTransport | None] | None = None
        self._acks: dict[tuple[Address, str], Waiting[bool]] = {}
        self._receiver: Receiver | None = None

    async def push(self, client_id: str, service_info: Json) -> bool:
        """Whether the client `ip:port#true` acknowledged. Waiting for that is not work, a packet under way may be."""
        number = str(self._clock.unique_ms())
        packet = _packet(number, service_info)
        transport = await self._transport()
        if transport is None or len(packet) > MAX_PACKET_BYTES:
            return False
        ip, port = split_address(responsible_tag(client_id))
        address = without_brackets(ip), int(port)
        try:
            for _ in range(TRIES):
                ack: Waiting[bool] = Waiting(self._clock)
                self._acks[address, number] = ack
                sent_to(address, self._clock)
                transport.sendto(packet, address)
                self._receiver = self._receiver or _receiver(transport, self._clock)
                if await self._arrives(ack):
                    return True
            return False
        finally:
            del self._acks[address, number]

    async def close(self) -> None:
        transport = await self._opening if self._opening is not None else None
        if transport is not None:
            transport.close()
        if self._receiver is not None:
            self._receiver.close()

    def datagram_received(self, data: bytes, addr: Address) -> None:
        self._receive(data, addr)
        if self._receiver is not None:
            self._receiver.consumed()

    def _receive(self, data: bytes, addr: Address) -> None:
        """The sender is not authenticated, so the content may be anything."""
        try:
            said = read_json(data)
        except ValueError:
            return
        if isinstance(said, dict) and said.get("type") == ACKNOWLEDGEMENT:
            ack = self._acks.get((addr, str(said.get("lastRefTime"))))
            if ack is not None:
                ack.give(True)

    async def _arrives(self, ack: Waiting[bool]) -> bool:
        try:
            return await self._clock.wait_for(ack.taken(), ACK_TIMEOUT_MS)
        except TimeoutError:
            return False

    async def _transport(self) -> asyncio.DatagramTransport | None:
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open())
        return await asyncio.shield(self._opening)

    async def _open(self) -> asyncio.DatagramTransport | None:
        """None when there is no socket to be had now; the next push tries again."""
        loop = asyncio.get_running_loop()
        try:
            transport, _ = await loop.create_datagram_endpoint(lambda: self, family=socket.AF_INET)
        except OSError as error:
            log.warning("no socket for pushes over UDP: %s", error)
            self._opening = None
            return None
        return transport


def _receiver(transport: asyncio.DatagramTransport, clock: Clock) -> Receiver:
    """The socket has a port as soon as it has sent something."""
    bound: socket.socket = transport.get_extra_info("socket")
    return Receiver(("127.0.0.1", bound.getsockname()[1]), clock)


def _packet(number: str, service_info: Json) -> bytes:
    """The list is JSON within JSON."""
    text = _compact({"type": PACKET, "data": _compact(service_info), "lastRefTime": int(number)}).encode()
    return text if len(text) < COMPRESSED_FROM_BYTES else gzip.compress(text)


def _compact(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"))
