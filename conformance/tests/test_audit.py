"""Live members compared: a copy behind a cut link is named, what is on its way is not, over gRPC and over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
import typer
from rich.console import Console
from rich.table import Table

from distro_conformance.audit import member as member_module
from distro_conformance.audit.compare import Audit, Audited, Diverged, Held
from distro_conformance.audit.member import Credentials, Member, Reading
from distro_conformance.cli import auditing
from distro_conformance.drivers.embedded import EmbeddedCluster
from distro_conformance.verdict import TargetError, UsageError, Verdict
from distro_conformance.waiting import RealClock, eventually, known
from distro_conformance.wire.transports import OVER_GRPC
from distro_model.actions import Advance, Connect, Crash, Cut, Disconnect, Heal, Register

THEN = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
VERIFIED_MS = 12_000


class Audited3:
    """Three nodes, two clients, and an audit of them in virtual time."""

    def __init__(self, cluster: EmbeddedCluster, audit: Audit) -> None:
        self.cluster, self.audit = cluster, audit

    async def do(self, *actions: Any) -> None:
        for action in actions:
            await self.cluster.perform(action)

    async def twice(self, apart_ms: int = VERIFIED_MS) -> Audited:
        await self.audit.look()
        await self.do(Advance(apart_ms))
        return await self.audit.look()

    def address(self, name: str) -> str:
        return self.cluster.servers[name].address


@contextlib.asynccontextmanager
async def audited_cluster() -> AsyncIterator[Audited3]:
    cluster = EmbeddedCluster(serves_http=True, wire=OVER_GRPC)
    async with contextlib.AsyncExitStack() as stack:
        try:
            await cluster.start(["a", "b", "c"], "nacos-2.2.4")
            members = [await stack.enter_async_context(Member(server.address)) for server in cluster.servers.values()]
            lab = Audited3(cluster, Audit(members, cluster.clock, lambda: THEN))
            await lab.do(Connect("c1", "a"), Register("c1", "web", "10.0.0.1:80"), Advance(VERIFIED_MS))
            yield lab
        finally:
            await stack.aclose()
            await cluster.stop()


async def test_members_that_agree_conform() -> None:
    async with audited_cluster() as lab:
        audited = await lab.twice()
        assert (audited.verdict, audited.clients, audited.diverged) == (Verdict.CONFORMS, 1, ())
        assert [reading.source for reading in audited.readings] == ["snapshot"] * 3
        assert {reading.release for reading in audited.readings} == {"2.2.4"}
        assert set(audited.readings[0].peers.values()) == {"UP"}


async def test_a_copy_behind_a_cut_link_is_named_with_what_each_member_holds_and_since_when() -> None:
    async with audited_cluster() as lab:
        await lab.do(Cut("a", "b"), Register("c1", "web", "10.0.0.2:80"), Advance(5_000))
        audited = await lab.twice()
        assert audited.verdict is Verdict.VIOLATES
        (client,) = audited.diverged
        shown = {held.member: held.holding.published for held in client.members if held.holding}
        assert shown[lab.address("a")] == shown[lab.address("c")] == ("DEFAULT_GROUP@@web 10.0.0.2:80",)
        assert shown[lab.address("b")] == ("DEFAULT_GROUP@@web 10.0.0.1:80",)
        assert [held.holding.revision for held in client.members if held.holding] == [2, 1, 1]  # c: B10
        assert client.seen_for_s == 12
        assert client.since.isoformat() == "2026-11-22T11:59:48+00:00"
        assert "10.0.0.1:80 (revision 1)" in client.sentence()

        await lab.do(Advance(VERIFIED_MS))
        (still,) = (await lab.audit.look()).diverged
        assert (still.seen_for_s, client.client) == (24, still.client)

        await lab.do(Heal("a", "b"), Advance(20_000))
        assert (await lab.audit.look()).verdict is Verdict.CONFORMS


async def test_of_members_that_hold_nothing_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with audited_cluster() as lab:
        await lab.do(Disconnect("c1"), Advance(VERIFIED_MS))
        audited = await lab.twice()
        assert (audited.verdict, audited.clients, audited.diverged) == (Verdict.INCONCLUSIVE, 0, ())

    async def done(*_: object) -> Audited:
        return audited

    monkeypatch.setattr(auditing, "_audit", done)
    with pytest.raises(typer.Exit) as ended:
        await asyncio.to_thread(auditing.audit, member=["a:1", "b:2"])
    assert ended.value.exit_code == 3
    assert "0 clients on 3 members: none holds anything, so nothing was compared" in capsys.readouterr().out


async def test_a_client_that_one_member_never_heard_to_end_is_named() -> None:
    async with audited_cluster() as lab:
        await lab.do(Cut("a", "b"), Disconnect("c1"), Advance(5_000))
        (client,) = (await lab.twice()).diverged
        assert [held.member for held in client.members if held.holding] == [lab.address("b")]


async def test_a_client_that_changes_all_the_time_is_busy_and_not_diverged() -> None:
    async with audited_cluster() as lab:
        await lab.audit.look()
        for port in range(81, 91):
            await lab.do(Advance(1_700), Register("c1", "web", f"10.0.0.1:{port}"))
            assert (await lab.audit.look()).diverged == ()


async def test_a_change_just_before_the_reading_is_on_its_way() -> None:
    async with audited_cluster() as lab:
        await lab.audit.look()
        await lab.do(Advance(VERIFIED_MS), Connect("c2", "b"), Register("c2", "web", "10.0.0.9:80"))
        assert (await lab.audit.look()).verdict is Verdict.CONFORMS
        await lab.do(Advance(VERIFIED_MS))
        assert (await lab.audit.look()).verdict is Verdict.CONFORMS


async def test_where_a_snapshot_is_refused_the_client_list_shows_the_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: object, **__: object) -> None:
        raise TargetError("no snapshot for you")

    monkeypatch.setattr(member_module, "read_state", refused)

    async with audited_cluster() as lab:
        assert (await lab.twice()).verdict is Verdict.CONFORMS
        await lab.do(Cut("a", "b"), Register("c1", "web", "10.0.0.2:80"), Advance(5_000))
        audited = await lab.twice()
        (client,) = audited.diverged
        assert [reading.source for reading in audited.readings] == ["http"] * 3
        assert [held.holding.revision for held in client.members if held.holding] == [None] * 3


async def test_a_member_that_does_not_answer_leaves_the_verdict_open_and_two_end_it() -> None:
    async with audited_cluster() as lab:
        await lab.do(Crash("c"))
        audited = await lab.twice()
        assert audited.verdict is Verdict.INCONCLUSIVE
        (silent,) = [reading for reading in audited.readings if reading.error]
        assert silent.member == lab.address("c")
        await lab.do(Crash("b"))
        with pytest.raises(TargetError, match="fewer than two members can be read"):
            await lab.audit.look()


async def test_asking_changes_nothing() -> None:
    async with audited_cluster() as lab:
        before = await lab.cluster.observe()
        await lab.twice(apart_ms=0)
        assert await lab.cluster.observe() == before


def test_an_address_without_a_port_is_refused() -> None:
    with pytest.raises(UsageError, match="--member localhost: 'localhost' has no usable port; write HOST:PORT"):
        Member("localhost", Credentials())


async def test_following_ends_with_what_was_seen_last_when_it_is_interrupted() -> None:
    async with audited_cluster() as lab:
        following = asyncio.create_task(auditing._follow(lab.audit, interval_s=0.01))
        assert await eventually(known(lambda: lab.audit.rounds >= 3), RealClock(), within_ms=5_000)
        following.cancel()
        assert (await following).rounds >= 3


def test_the_live_table_fits_its_screen_with_what_differs_longest_first() -> None:
    def held(member: str) -> Held:
        return Held(member, None, is_stuck=True)

    members = ("127.0.0.1:8848", "127.0.0.1:8858")
    readings = tuple(Reading(member, "snapshot", {}) for member in members)
    diverged = tuple(Diverged(f"c{age}", THEN, age, (held(members[0]), held(members[1]))) for age in range(40))
    console = Console(width=80, height=24, record=True, file=io.StringIO())
    console.print(auditing._table(Audited(readings, 40, diverged, 2), "every 12 s", 24))
    lines = console.export_text().splitlines()
    assert len(lines) < 24
    assert lines[0].startswith("reading 2: 40 clients, members differ about 40")
    assert [line.split()[0] for line in lines if re.match(r" *c\d", line)][:2] == ["c39", "c38"]
    assert any(line.strip().startswith("… ") and "more" in line for line in lines)


async def test_a_reading_that_fails_does_not_end_the_following(monkeypatch: pytest.MonkeyPatch) -> None:
    async with audited_cluster() as lab:
        looked = lab.audit.look
        calls = 0

        async def look() -> Audited:
            nonlocal calls
            calls += 1
            if calls == 2:
                raise TargetError("fewer than two members can be read")
            return await looked()

        def table(audited: Audited, next_: str, height: int) -> Table:
            told.append(next_)
            return table_of(audited, next_, height)

        told: list[str] = []
        table_of = auditing._table
        monkeypatch.setattr(lab.audit, "look", look)
        monkeypatch.setattr(auditing, "_table", table)
        following = asyncio.create_task(auditing._follow(lab.audit, interval_s=0.01))
        assert await eventually(known(lambda: calls >= 4), RealClock(), within_ms=5_000)
        following.cancel()
        assert (await following).rounds >= 2
        assert "fewer than two members can be read" in told
