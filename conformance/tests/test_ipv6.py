"""A cluster of IPv6 members: nodes, clients, scenarios, audit and logs read their addresses in one way."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from distro_conformance.audit.compare import Audit
from distro_conformance.audit.member import Member
from distro_conformance.cli import app
from distro_conformance.drivers.real_time import AttachCluster
from distro_conformance.drivers.registry import ClusterOptions, resolve_cluster
from distro_conformance.language.replay import replay
from distro_conformance.language.text import parse
from distro_conformance.targets.attached import AttachedTarget
from distro_conformance.verdict import UsageError, Verdict
from distro_conformance.waiting import RealClock, eventually, poll_local
from distro_impl import Cluster, profile_named
from distro_model.actions import Connect, HttpRegister, Register

pytestmark = pytest.mark.wire
LIFE = """
nodes a b c
connect c1 a
register c1 web [2001:db8::1]:80
http register api [2001:db8::2]:80 at b
expect within 5s: query web everywhere shows [2001:db8::1]:80
expect within 5s: query api everywhere shows [2001:db8::2]:80
disconnect c1
expect within 5s: query web everywhere shows nothing
"""


@contextlib.asynccontextmanager
async def cluster_on_ipv6() -> AsyncIterator[Cluster]:
    async with Cluster(3, ip="::1", profile=profile_named("nacos-2.2.4").with_known_members()) as cluster:
        assert await eventually(
            poll_local(lambda: all(node.record.load_ms for node in cluster.nodes)), RealClock(), 60_000
        )
        yield cluster


@pytest.mark.parametrize("target", ["model", "embedded"])
def test_instances_have_ipv6_addresses_in_a_scenario(target: str) -> None:
    assert replay(parse(LIFE), target=target).verdict is Verdict.CONFORMS


async def test_members_on_ipv6_replicate_and_are_attached_to_and_audited() -> None:
    async with cluster_on_ipv6() as nodes:
        assert all(address.startswith("[::1]:") for address in nodes.addresses)
        named = f"[{', '.join(nodes.addresses)}]"
        attached = AttachCluster(AttachedTarget(named, "nacos-2.2.4", allow_disruption=True))
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(attached.stop)
            await attached.start(["a", "b", "c"], "nacos-2.2.4")
            await attached.perform(Connect("c1", "a"))
            await attached.perform(Register("c1", "web", "[2001:db8::1]:80"))
            await attached.perform(HttpRegister("api", "[2001:db8::2]:80", "b"))

            async def everywhere() -> bool:
                shown = [await attached.query(node, service) for node in "abc" for service in ("web", "api")]
                return shown == [[("[2001:db8::1]:80",)], [("[2001:db8::2]:80",)]] * 3

            assert await eventually(everywhere, RealClock(), 30_000)
            assert (await attached.members("a"))[0] == dict.fromkeys("abc", "UP")
            members = [await stack.enter_async_context(Member(address)) for address in nodes.addresses]
            audit = Audit(members, RealClock())
            await audit.compare()
            audited = await audit.compare()
            assert audited.verdict is Verdict.CONFORMS
            assert audited.clients == 2
            assert set(audited.readings[0].peers) == set(nodes.addresses)


def test_a_target_and_a_member_with_an_address_that_is_none_are_refused() -> None:
    with pytest.raises(UsageError, match="an IPv6 address in brackets"):
        resolve_cluster("attach:2001:db8::a:8848,[::1]:8848", ClusterOptions())
    with pytest.raises(UsageError, match="--member"):
        Member("2001:db8::a:8848")


LOG = (
    "2026-11-21 02:5{second}:00,000 INFO [NACOS-DISTRO] healthy server list changed, "
    "old: [{old}], new: [[2001:db8::a]:8848, [2001:DB8:0:0:0:0:0:B]:8848]\n"
)


def test_a_list_of_ipv6_members_in_a_log_names_them(tmp_path: Path) -> None:
    (tmp_path / "n0").mkdir()
    lines = LOG.format(second=0, old="") + LOG.format(second=1, old="[2001:db8::a]:8848")
    (tmp_path / "n0" / "naming-server.log").write_text(
        lines + "2026-11-21 02:52:00,000 INFO Client connection 1_2001:db8:0:0:0:0:0:c_40000 connect\n"
        "2026-11-21 02:53:00,000 INFO Client connection 1_2001:db8:0:0:0:0:0:c_40000 disconnect, remove instances and "
        "subscribers\n"
    )
    (tmp_path / "n0" / "protocol-distro.log").write_text(
        "2026-11-21 02:52:01,000 INFO [DISTRO-START] DistroSyncChangeTask for DistroKey{resourceKey="
        "'1_2001:db8:0:0:0:0:0:c_40000', resourceType='Nacos:Naming:v2:ClientData', targetServer="
        "'[2001:db8:0::b]:8848'}\n"
    )
    out = tmp_path / "out"
    done = CliRunner().invoke(
        app, ["import", "nacos-logs", str(tmp_path), "--out", str(out), "--node", "n0=[2001:DB8::A]:8848", "--json"]
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["skipped"] == {}
    rows = [json.loads(line) for path in out.rglob("*.ndjson") for line in path.read_text().splitlines()]
    (header,) = [row for row in rows if "nodes" in row]
    assert header["nodes"] == ["[2001:db8::a]:8848", "[2001:db8::b]:8848"]
