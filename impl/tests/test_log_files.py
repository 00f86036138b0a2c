"""The files that a real server writes: the same lines in the same files, so that one reader can read both.

The lines of a real 2.2.4 cluster are those of traces/tests/data; what is compared is their wording, without the values.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from impl_lab import (
    LOST_BUT_ACKNOWLEDGED,
    NACOS_2_0_4,
    NACOS_2_2_4,
    PUSHED_WITHIN_MS,
    STRICT,
    Lab,
    RawClient,
    Run,
)

from distro_impl import Profile
from distro_impl.logs import LOG_FILES, OWN, _Rate, log_to_directory
from distro_impl.naming.client import Service
from distro_impl.naming.instance_operator import BeatInfo
from distro_impl.remote.payloads import Instance

pytestmark = pytest.mark.wire

REAL = Path(__file__).parents[2] / "traces" / "tests" / "data" / "nacos-2.2.4"
WEB = Service("public", "DEFAULT_GROUP", "web")
VALUES = (
    (r"\d{4}-\d\d-\d\d [\d:,.]+ ", ""),
    (r"DistroKey\{[^}]*\}", "KEY"),
    (r"Service\{[^}]*\}", "SERVICE"),
    (r"connection=Connection\{.*\}\}\} $", "connection=CONNECTION"),
    (r"\[Member\{.*", "MEMBERS"),
    (r"\[[\d.:, ]*\]", "ADDRESSES"),
    (r"\d{13}_[\d.]+_\d+", "CLIENT"),
    (r"\d+\.\d+\.\d+\.\d+:\d+#true", "CLIENT"),
    (r"\d+\.\d+\.\d+\.\d+(:\d+)?", "ADDRESS"),
    (r"(ConnectionBasedClient|IpPortBasedClient)", "KIND"),
    (r"ip: \{.*\}$", "ip: JSON"),
    (r"(?<=[ =|])-?\d+", "N"),
)


TOOK = "[DISTRO-INIT] it took N ms to load snapshot Nacos:Naming:v2:ClientData from ADDRESS and snapshot size is N."
REGISTERED = "new connection registered successfully, connectionId = CLIENT,connection=CONNECTION"
JUDGED = "ADDRESS@DEFAULT@web, region: unknown"
DELAYS, SIZES = "all delay time Nms", "originalSize=N, DataSize=N"


@pytest.fixture(autouse=True)
def unlogged() -> Iterator[None]:
    """No test leaves files open or levels turned, and none finds that others have used up the rate of a line."""
    named = [logging.getLogger(name) for name in (*LOG_FILES, OWN)]
    for each in named:
        for rate in (rate for rate in each.filters if isinstance(rate, _Rate)):
            rate._counts.clear()
    before = [(each.handlers[:], each.level) for each in named]
    yield
    for each, (handlers, level) in zip(named, before, strict=True):
        for handler in each.handlers:
            if handler not in handlers:
                handler.close()
        each.handlers[:] = handlers
        each.setLevel(level)


def wordings(directory: Path) -> set[tuple[str, str]]:
    """(file, line without its values) of all files below."""
    found = set()
    for path in directory.rglob("*.log"):
        for line in path.read_text().splitlines():
            if re.match(r"\d{4}-", line):
                for pattern, name in VALUES:
                    line = re.sub(pattern, name, line)  # noqa: PLW2901
                found.add((path.stem, line))
    return found


async def played(lab: Lab, profile: Profile, logs: Path, *, level: str = "INFO") -> Run:
    """Clients of both kinds come, change and go, a verify finds a loss, a member crashes and comes back."""
    run = await lab.cluster(
        profile, before_start=lambda run: log_to_directory(logs, run.cluster.addresses, level=level)
    )
    first = run.cluster.nodes[0]
    client, subscriber = await lab.naming(first), await lab.naming(first)
    await subscriber.subscribe("web")
    await acknowledged(run, subscriber)
    owned = next(port for port in range(1, 99) if first.parts.naming.mapper.responsible(f"10.0.0.9:{port}"))
    await client.register("web", 8080)
    first.parts.naming.instances.register(WEB, Instance(ip="10.0.0.9", port=owned))
    await acknowledged(run, subscriber)
    await run.clock.advance(5_000)
    run.link(0, 1).answers = {"CHANGE": LOST_BUT_ACKNOWLEDGED}
    first.parts.naming.instances.register(WEB, Instance(ip="10.0.0.9", port=owned, weight=2.0))
    late = await lab.naming(first)
    await late.register("web", 8081)
    await run.clock.advance(2_500)
    run.link(0, 1).answers = {}
    await run.clock.advance(17_500)  # and no beat for 15 s
    first.parts.naming.instances.beat(WEB, "10.0.0.9", owned, BeatInfo(WEB, "10.0.0.9", owned))
    await run.cluster.crash(1)
    await run.clock.advance(20_000)
    run.link(1, 0).cut = True
    await run.cluster.restart(1)
    await run.clock.advance(20_000)
    await lab.leave(run, client)
    run.link(0, 1).cut = True
    await run.clock.advance(5_000)
    await subscriber.ask("NobodyKnowsRequest", {})
    await lab.raw(first.config.sdk_target, source="sdk").ask("HealthCheckRequest", {})
    return run


async def acknowledged(run: Run, subscriber: RawClient) -> None:
    """Its next push comes, and is."""
    record = run.cluster.nodes[0].parts.naming.log.pushes
    before = record.total
    await run.clock.advance(PUSHED_WITHIN_MS)
    await subscriber.acknowledge(await subscriber.next_request())
    while record.total == before:  # noqa: ASYNC110 - no event announces it
        await asyncio.sleep(0.001)


async def test_every_line_of_a_real_server_is_written_in_its_words_and_in_its_file(lab: Lab, tmp_path: Path) -> None:
    await played(lab, NACOS_2_2_4, tmp_path, level="DEBUG")
    assert wordings(REAL) - wordings(tmp_path) == set()


LINES = {
    STRICT: {
        ("nacos-cluster", "INFO [serverlist] changed to : MEMBERS"),
        ("nacos-cluster", "WARN report the metadata to the unhealthy node : ADDRESS"),
        ("nacos-cluster", "INFO This node is ready to provide external services"),
        ("naming-server", "INFO [AUTO-DELETE-IP] service: SERVICE, ip: JSON"),
        (
            "naming-event",
            "INFO {POS} {IP-DISABLED} valid: ADDRESS@DEFAULT@web, region: unknown, msg: client last beat: N",
        ),
        ("naming-event", "INFO {POS} {IP-ENABLED} valid: ADDRESS@DEFAULT@web, region: unknown, msg: client beat ok"),
        ("naming-push", f"INFO [PUSH-SUCC] Nms, {DELAYS}, SLA Nms, SERVICE, {SIZES}, target=ADDRESS"),
        ("naming-push", f"INFO [PUSH-SUCC] Nms, {DELAYS} for subscriber ADDRESS, SERVICE, {SIZES}"),
        ("naming-push", "ERROR [PUSH-FAIL] Nms, SERVICE, reason=no acknowledgement, target=ADDRESS"),
        ("naming-push", "INFO [PUSH] Task merge for SERVICE"),
        ("remote-digest", "INFO Connection transportReady,connectionId = CLIENT "),
        ("remote-digest", "INFO Connection transportTerminated,connectionId = CLIENT "),
        ("remote-digest", "WARN [grpc] No handler for request type : NobodyKnowsRequest :"),
        ("remote-digest", "WARN [grpc] Invalid connection Id ,connection [CLIENT] is un registered ,"),
        ("plugin-control-connection", f"INFO {REGISTERED}"),
        ("plugin-control-connection", "INFO [CLIENT]Connection unregistered successfully. "),
        ("naming-distro", "INFO [Client-Add] Received distro client sync data CLIENT, revision=N"),
        ("naming-distro", "WARN [DISTRO] Cancel distro verify caused by target server ADDRESS unhealthy, key: KEY"),
        ("protocol-distro", "WARN [DISTRO] Sync data change failed. key: KEY"),
        ("protocol-distro", f"INFO {TOOK}"),
    },
    NACOS_2_0_4: {
        ("nacos-cluster", "WARN [serverlist] updated to : MEMBERS"),
        ("remote-digest", f"INFO {REGISTERED}"),
        ("remote-digest", "INFO [CLIENT]Connection unregistered successfully. "),
        ("naming-distro", "INFO [Client-Add] Received distro client sync data CLIENT"),
        ("protocol-distro", "WARN [DISTRO] Sync data change failed."),
    },
}


@pytest.mark.parametrize("profile", LINES, ids=lambda profile: profile.name)
async def test_lines_that_operators_look_for(lab: Lab, tmp_path: Path, profile: Profile) -> None:
    await played(lab, profile, tmp_path)
    assert LINES[profile] - wordings(tmp_path) == set()


async def test_2_0_4_does_not_write_what_came_later(lab: Lab, tmp_path: Path) -> None:
    await played(lab, NACOS_2_0_4, tmp_path)
    later = {line for line in LINES[STRICT] if line[0] == "protocol-distro"}
    assert later & wordings(tmp_path) == set()


async def test_the_files_of_each_node_are_its_own(lab: Lab, tmp_path: Path) -> None:
    run = await played(lab, STRICT, tmp_path)
    for address in run.cluster.addresses:
        folder = tmp_path / address.replace(":", "_")
        assert {path.stem for path in folder.iterdir()} == {*LOG_FILES, "nacos"}
        assert len(re.findall("This node is ready", (folder / "nacos-cluster.log").read_text())) in (1, 2)
