"""Pushes over UDP: what a client of the 1.x generation receives on the port that it names when it asks for a list."""

from __future__ import annotations

import asyncio
import errno
import gzip
import json
import random
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from http_lab import Web
from impl_lab import NACOS_2_2_4, PUSHED_WITHIN_MS, REAL_TIMEOUT_S, Lab, Run

from distro_impl import NotSettledError, VirtualClock, free_main_ports
from distro_impl.naming.naming_log import PushRecord
from distro_impl.naming.udp_push import ACK_TIMEOUT_MS, UdpPushService, can_be_pushed_to
from distro_impl.transport.datagrams import Receiver, sent_to
from distro_protos import Json

pytestmark = pytest.mark.wire

INSTANCE, LIST = "/v1/ns/instance", "/v1/ns/instance/list"
JAVA = {"User-Agent": "Nacos-Java-Client:v1.4.8"}


class Listener:
    """A client's UDP socket."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]

    async def received(self) -> tuple[bytes, tuple[str, int]]:
        """The next packet, and who sent it."""
        async with asyncio.timeout(REAL_TIMEOUT_S):
            found: tuple[bytes, tuple[str, int]] = await asyncio.get_running_loop().sock_recvfrom(self._socket, 65_535)
            return found

    async def say(self, node: tuple[str, int], said: bytes | Json) -> None:
        data = said if isinstance(said, bytes) else json.dumps(said).encode()
        await asyncio.get_running_loop().sock_sendto(self._socket, data, node)

    @property
    def is_quiet(self) -> bool:
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        return False

    def close(self) -> None:
        self._socket.close()


class SlowListener(asyncio.DatagramProtocol):
    """A client that takes its real time over each answer, and says when it has given it."""

    def __init__(self) -> None:
        self.packets = 0
        self._transport: asyncio.DatagramTransport
        self._answers: set[asyncio.Task[None]] = set()

    async def open(self) -> int:
        """The port."""
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 0))
        port: int = self._transport.get_extra_info("sockname")[1]
        self._receiver = Receiver(("127.0.0.1", port))
        return port

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.packets += 1
        self._answers.add(asyncio.create_task(self._answer(data, addr)))

    async def _answer(self, data: bytes, addr: tuple[str, int]) -> None:
        await asyncio.sleep(0.1)
        packet = json.loads(data if data.startswith(b"{") else gzip.decompress(data))
        sent_to(addr)
        said = {"type": "push-ack", "lastRefTime": str(packet["lastRefTime"]), "data": ""}
        self._transport.sendto(json.dumps(said).encode(), addr)
        self._receiver.consumed()

    def close(self) -> None:
        self._receiver.close()
        self._transport.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    found = Listener()
    yield found
    found.close()


async def ask_for_list(web: Web, run: Run, listener: Listener, agent: dict[str, str] = JAVA, **further: Any) -> None:
    query = {"serviceName": "web", "clusters": "DEFAULT", "udpPort": listener.port, "clientIP": "127.0.0.1", **further}
    assert (await web.ask("GET", run.cluster.nodes[0], LIST, query, headers=agent)).status == 200


def pushes(run: Run) -> PushRecord:
    return run.cluster.nodes[0].parts.naming.log.pushes


async def until_pushed(run: Run, total: int) -> None:
    """Until the answers of clients, which live in real time, have arrived."""
    for _ in range(2_000):
        if pushes(run).total >= total:
            return
        await asyncio.sleep(0.005)
    raise AssertionError(f"{pushes(run)}, and not {total} pushes")


async def test_a_client_that_asks_for_a_list_is_sent_its_changes(lab: Lab, listener: Listener) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=1)
    async with Web() as web:
        await ask_for_list(web, run, listener)
        for number, port in ((1, None), (2, 80)):  # what it asked for is the first push
            if port:
                await web.post(run.cluster.nodes[0], INSTANCE, serviceName="web", ip="10.0.0.7", port=port)
            await run.clock.advance(PUSHED_WITHIN_MS)
            packet, node = await listener.received()
            push = json.loads(packet)
            info = json.loads(push["data"])
            assert push["type"] == "dom"
            assert (info["name"], info["clusters"]) == ("DEFAULT_GROUP@@web", "DEFAULT")
            assert "groupName" not in info
            assert [host["port"] for host in info["hosts"]] == ([port] if port else [])
            await listener.say(node, {"type": "push-ack", "lastRefTime": str(push["lastRefTime"]), "data": ""})
            await until_pushed(run, number)
    assert pushes(run) == PushRecord(total=2, failed=0)


async def test_a_long_list_is_compressed(lab: Lab, listener: Listener) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=1)
    async with Web() as web:
        for port in range(1, 6):
            await web.post(run.cluster.nodes[0], INSTANCE, serviceName="web", ip="10.0.0.7", port=port)
        await ask_for_list(web, run, listener)
    await run.clock.advance(PUSHED_WITHIN_MS)
    info = json.loads(json.loads(gzip.decompress((await listener.received())[0]))["data"])
    assert len(info["hosts"]) == 5


async def test_a_packet_without_an_answer_is_sent_once_more(lab: Lab, listener: Listener) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=1)
    async with Web() as web:
        await ask_for_list(web, run, listener)
    await run.clock.advance(PUSHED_WITHIN_MS)
    first, node = await listener.received()
    number = json.loads(first)["lastRefTime"]
    for nonsense in (b"\xff", b"[" * 10_000, b"7", {"type": "push-ack"}, {"type": "dump-ack", "lastRefTime": number}):
        await listener.say(node, nonsense)
    await run.clock.advance(ACK_TIMEOUT_MS)
    assert (await listener.received())[0] == first
    await run.clock.advance(ACK_TIMEOUT_MS)
    assert pushes(run) == PushRecord(total=1, failed=1)
    await run.clock.advance(3 * ACK_TIMEOUT_MS)
    assert listener.is_quiet


@pytest.mark.parametrize(
    ("agent", "query"),
    [
        ({"User-Agent": "python-requests/2.31"}, {}),
        ({"User-Agent": "Nacos-Java-Client"}, {}),
        ({"User-Agent": "Nacos-Java-Client:v0.0.9"}, {}),
        ({"User-Agent": "Nacos-C-Client:v1.0.11"}, {}),
        ({"User-Agent": "nacos-java-client:v1.4.8"}, {}),
        (JAVA, {"clientIP": "localhost"}),
        (JAVA, {"clientIP": ""}),
        (JAVA, {"udpPort": 0}),
        (JAVA, {"udpPort": 70_000}),
    ],
)
async def test_a_client_that_does_not_listen_is_no_subscriber(
    lab: Lab, listener: Listener, agent: dict[str, str], query: Json
) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=1)
    async with Web() as web:
        await ask_for_list(web, run, listener, agent, **query)
        assert (await web.get(run.cluster.nodes[0], "/v2/ns/client/list")).json["data"] == []
        await web.put(run.cluster.nodes[0], "/v1/ns/operator/switches", entry="pushEnabled", value="false")
        await ask_for_list(web, run, listener)
        assert (await web.get(run.cluster.nodes[0], "/v2/ns/client/list")).json["data"] == []


@pytest.mark.parametrize(
    ("ip", "caller_ip", "is_pushed_to"),
    [
        ("10.0.0.9", "10.0.0.9", True),
        ("10.0.0.9", "10.0.0.8", False),  # a third party would get the pushes
        ("10.0.0.9", "127.0.0.1", True),  # a client on this machine that names its own address in the network
        ("10.0.0.9", "", False),
    ],
)
def test_only_a_caller_on_this_machine_names_another_address(ip: str, caller_ip: str, is_pushed_to: bool) -> None:
    assert can_be_pushed_to(JAVA["User-Agent"], ip, 9_999, caller_ip) is is_pushed_to


@pytest.mark.parametrize("agent", ["Nacos-C-Client:v1.0.12", "Nacos-Go-Client:v1.0", "Nacos-DNS"])
async def test_listeners_are_listed_by_name_and_version(lab: Lab, listener: Listener, agent: str) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=1)
    async with Web() as web:
        await ask_for_list(web, run, listener, {"User-Agent": agent})
    await run.clock.advance(PUSHED_WITHIN_MS)
    await listener.received()


async def test_version_2_has_other_names_for_where_a_client_listens(lab: Lab, listener: Listener) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=1)
    node, path = run.cluster.nodes[0], "/v2/ns/instance/list"
    async with Web() as web:
        for names, known in ((("clientIP", "udpPort"), []), (("ip", "port"), [f"127.0.0.1:{listener.port}#true"])):
            query = dict(zip(names, ("127.0.0.1", listener.port), strict=True))
            assert (await web.ask("GET", node, path, {"serviceName": "web", **query}, headers=JAVA)).status == 200
            assert (await web.get(node, "/v2/ns/client/list")).json["data"] == known


async def test_an_operator_sees_which_program_listens_and_where(lab: Lab, listener: Listener) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=1)
    async with Web() as web:
        await ask_for_list(web, run, listener, app="shop")
        client = f"127.0.0.1:{listener.port}"
        path = "/v2/ns/client/subscribe/list"
        (found,) = (await web.get(run.cluster.nodes[0], path, clientId=f"{client}#true")).json["data"]
    assert found["subscriberInfo"] == {"app": "shop", "agent": JAVA["User-Agent"], "addr": client}


async def test_a_subscriber_lives_as_long_as_it_asks(lab: Lab, listener: Listener) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=1)
    async with Web() as web:
        for _ in range(6):
            await ask_for_list(web, run, listener)
            await run.clock.advance(10_000)
            known = (await web.get(run.cluster.nodes[0], "/v2/ns/client/list")).json["data"]
            assert known == [f"127.0.0.1:{listener.port}#true"]
        await run.clock.advance(40_000)
        assert (await web.get(run.cluster.nodes[0], "/v2/ns/client/list")).json["data"] == []


async def test_without_a_socket_a_push_fails_and_the_next_one_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = VirtualClock()
    pushes = UdpPushService(clock)

    async def has_none(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as exhausted:
        exhausted.setattr(asyncio.get_running_loop(), "create_datagram_endpoint", has_none)
        assert not await pushes.push("127.0.0.1:9#true", {"hosts": []})
    pushed = clock.spawn(pushes.push("127.0.0.1:9#true", {"hosts": []}), "push")
    await clock.advance(2 * ACK_TIMEOUT_MS)
    assert pushed.result() is False
    assert pushes._acks == {}
    await pushes.close()


async def test_a_list_that_no_packet_holds_is_not_pushed() -> None:
    pushes = UdpPushService(VirtualClock())
    incompressible = random.Random(1).randbytes(100_000).hex()
    assert not await pushes.push("127.0.0.1:9#true", {"name": incompressible})
    await pushes.close()


async def test_a_client_that_acknowledges_is_notified_once_however_slow_it_is() -> None:
    """Packets are work until they are consumed: virtual time does not run away while one is under way."""
    clock, slow = VirtualClock(), SlowListener()
    pushes = UdpPushService(clock)
    acknowledged = clock.spawn(pushes.push(f"127.0.0.1:{await slow.open()}#true", {"name": "web"}), "push")
    await clock.advance(60_000)
    assert (await acknowledged, slow.packets) == (True, 1)
    await pushes.close()
    slow.close()


async def test_a_silent_client_does_not_hold_up_time() -> None:
    clock, address = VirtualClock(), ("127.0.0.1", free_main_ports(1)[0])
    mute = Receiver(address)
    pushes = UdpPushService(clock)
    acknowledged = clock.spawn(pushes.push(f"127.0.0.1:{address[1]}#true", {"name": "web"}), "push")
    with pytest.raises(NotSettledError, match=r"datagrams to 127\.0\.0\.1"):
        await clock.settle(0.2)
    mute.stop_reading()
    await clock.advance(60_000)
    assert not await acknowledged
    await pushes.close()
    mute.close()
