"""Live members compared: a copy behind a cut link is named, a change on its way is not, over gRPC and over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer
from blocks import block
from rich.console import Console
from rich.table import Table

from distro_conformance.audit import member as member_module
from distro_conformance.audit.cluster_view import Matter
from distro_conformance.audit.compare import Audit, Audited, Diverged, Held
from distro_conformance.audit.following import METRICS, changes, exit_code_of, metrics, write_metrics
from distro_conformance.audit.member import Member, Reading
from distro_conformance.cli import auditing
from distro_conformance.drivers.embedded import EmbeddedCluster
from distro_conformance.verdict import TargetError, UsageError, Verdict
from distro_conformance.waiting import RealClock, eventually, poll_local
from distro_conformance.wire.transports import OVER_GRPC
from distro_impl.naming.service_storage import ServiceStorage
from distro_model.actions import (
    Advance,
    Connect,
    Crash,
    Cut,
    Disconnect,
    Heal,
    HttpRegister,
    ListMembers,
    Register,
    Restart,
)

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
        await self.audit.compare()
        await self.do(Advance(apart_ms))
        return await self.audit.compare()

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
        (still,) = (await lab.audit.compare()).diverged
        assert (still.seen_for_s, client.client) == (24, still.client)

        await lab.do(Heal("a", "b"), Advance(20_000))
        assert (await lab.audit.compare()).verdict is Verdict.CONFORMS


async def test_members_that_hold_nothing_have_no_findings(
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
    assert "0 clients on 3 members: no member holds a client, so nothing was compared" in capsys.readouterr().out


async def test_a_client_whose_end_one_member_never_received_is_named() -> None:
    async with audited_cluster() as lab:
        await lab.do(Cut("a", "b"), Disconnect("c1"), Advance(5_000))
        (client,) = (await lab.twice()).diverged
        assert [held.member for held in client.members if held.holding] == [lab.address("b")]


async def test_a_client_that_changes_all_the_time_is_busy_and_not_diverged() -> None:
    async with audited_cluster() as lab:
        await lab.audit.compare()
        for port in range(81, 91):
            await lab.do(Advance(1_700), Register("c1", "web", f"10.0.0.1:{port}"))
            assert (await lab.audit.compare()).diverged == ()


async def test_a_change_just_before_the_reading_is_on_its_way() -> None:
    async with audited_cluster() as lab:
        await lab.audit.compare()
        await lab.do(Advance(VERIFIED_MS), Connect("c2", "b"), Register("c2", "web", "10.0.0.9:80"))
        assert (await lab.audit.compare()).verdict is Verdict.CONFORMS
        await lab.do(Advance(VERIFIED_MS))
        assert (await lab.audit.compare()).verdict is Verdict.CONFORMS


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
            await lab.audit.compare()


async def test_a_member_that_is_read_once_is_not_compared_twice() -> None:
    """What it holds may have been wrong for hours, or for a second: one reading cannot say."""
    async with audited_cluster() as lab:
        await lab.do(Cut("a", "c"), Register("c1", "web", "10.0.0.2:80"), Advance(1_500))
        read = lab.audit._members[2].read

        async def silent() -> Reading:
            return Reading(lab.address("c"), error="not reached")

        lab.audit._members[2].read = silent  # type: ignore[method-assign]
        await lab.audit.compare()
        lab.audit._members[2].read = read  # type: ignore[method-assign]
        once = await lab.audit.compare()
        assert (once.verdict, once.diverged) == (Verdict.INCONCLUSIVE, ())
        assert once.reasons == (
            f"{lab.address('c')} could not be read the time before, so a difference may be a change on its way",
        )
        assert (await lab.audit.compare()).verdict is Verdict.VIOLATES


async def test_a_member_that_shows_no_list_leaves_the_verdict_open() -> None:
    async with audited_cluster() as lab:
        assert (await lab.twice()).lists == 1

        async def refused(*_: object) -> None:
            return None

        lab.audit._members[1]._hosts = refused  # type: ignore[method-assign, assignment]
        audited = await lab.twice()
        assert (audited.verdict, audited.services, audited.lists) == (Verdict.INCONCLUSIVE, 1, 0)
        assert audited.reasons == (f"{lab.address('b')} shows no list of 1 of 1 services that another member shows",)


async def test_members_of_clients_that_publish_nothing_agree_about_nothing() -> None:
    async with audited_cluster() as lab:
        await lab.do(Disconnect("c1"), Connect("c2", "b"), Advance(VERIFIED_MS))
        audited = await lab.twice()
        assert (audited.verdict, audited.clients) == (Verdict.INCONCLUSIVE, 1)
        assert audited.reasons == ("no client publishes an instance, so nothing was compared",)


async def test_asking_changes_nothing() -> None:
    async with audited_cluster() as lab:
        before = await lab.cluster.observe()
        await lab.twice(apart_ms=0)
        assert await lab.cluster.observe() == before


def test_an_address_without_a_port_is_refused() -> None:
    with pytest.raises(UsageError, match="--member localhost: 'localhost' has no usable port; write HOST:PORT"):
        Member("localhost")


@pytest.mark.parametrize("again", ["127.0.0.1:08848", "localhost:8848", "127.0.0.1:8848"])
def test_a_member_is_not_compared_with_itself_under_another_name(again: str) -> None:
    with pytest.raises(UsageError, match="name at least two members"):
        auditing.audit(member=["127.0.0.1:8848", again])
    others = ["127.0.0.1:8858", "not-known.invalid:8848", "nonsense"]
    assert auditing._different(["127.0.0.1:8848", *others, again]) == ("127.0.0.1:8848", *others)


async def test_following_ends_with_the_last_observation_when_it_is_interrupted() -> None:
    async with audited_cluster() as lab:
        following = asyncio.create_task(
            auditing._follow(lab.audit, auditing.AuditOptions(interval_s=0.01, follow=True))
        )
        assert await eventually(poll_local(lambda: lab.audit.rounds >= 3), RealClock(), within_ms=5_000)
        following.cancel()
        assert (await following).rounds >= 3


def test_the_live_table_fits_its_screen_with_the_oldest_differences_first() -> None:
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
        compared = lab.audit.compare
        calls = 0

        async def compare() -> Audited:
            nonlocal calls
            calls += 1
            if calls == 2:
                raise TargetError("fewer than two members can be read")
            return await compared()

        def table(audited: Audited, next_: str, height: int) -> Table:
            printed.append(next_)
            return table_of(audited, next_, height)

        printed: list[str] = []
        table_of = auditing._table
        monkeypatch.setattr(lab.audit, "compare", compare)
        monkeypatch.setattr(auditing, "_table", table)
        following = asyncio.create_task(
            auditing._follow(lab.audit, auditing.AuditOptions(interval_s=0.01, follow=True))
        )
        assert await eventually(poll_local(lambda: calls >= 4), RealClock(), within_ms=5_000)
        following.cancel()
        assert (await following).rounds >= 2
        assert "fewer than two members can be read" in printed


async def test_a_list_that_lacks_a_member_is_named_first_although_the_clients_agree() -> None:
    async with audited_cluster() as lab:
        await lab.do(ListMembers("b", ("a", "b")), Advance(VERIFIED_MS))
        audited = await lab.twice()
        assert audited.verdict is Verdict.VIOLATES
        assert audited.diverged == ()
        (lacking,) = [each for each in audited.disagreements if each.matter is Matter.LIST]
        assert lacking.about == lab.address("c")
        assert f"it is not in the list of {lab.address('b')}; it is in the list of" in lacking.sentence()
        assert audited.violations[0] is lacking
        await lab.do(ListMembers("b", ("a", "b", "c")), Advance(VERIFIED_MS))
        assert (await lab.audit.compare()).verdict is Verdict.CONFORMS


async def test_a_member_that_one_other_takes_for_down_is_named_before_the_client_that_suffers() -> None:
    async with audited_cluster() as lab:
        await lab.do(Cut("b", "a"), Cut("a", "b"), Advance(30_000), Register("c1", "web", "10.0.0.2:80"))
        audited = await lab.twice()
        states = [each for each in audited.disagreements if each.matter is Matter.STATE]
        assert {each.about for each in states} == {lab.address("a"), lab.address("b")}
        (of_a,) = [each for each in states if each.about == lab.address("a")]
        assert of_a.views[lab.address("b")] == "DOWN"
        assert of_a.views[lab.address("c")] == "UP"
        assert "DOWN to" in of_a.sentence()
        assert [type(each).__name__ for each in audited.violations] == [
            *["Disagreement"] * len(states),
            "DivergedList",
            "Diverged",
        ]


async def test_members_of_two_releases_are_a_note_and_no_violation() -> None:
    async with audited_cluster() as lab:
        lab.cluster.set_release("c", "nacos-2.3.2")
        await lab.do(Crash("c"), Restart("c"), Advance(60_000))
        audited = await lab.twice()
        (releases,) = audited.disagreements
        assert (releases.matter, releases.is_violation) == (Matter.RELEASE, False)
        assert f"2.3.2 is {lab.address('c')}" in releases.sentence()
        assert audited.verdict is Verdict.CONFORMS


@pytest.mark.parametrize("over_http", [False, True])
async def test_a_list_that_differs_is_named_although_every_member_holds_the_same(
    over_http: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Metadata is part of a list, as health is. Here one node no longer updates its lists."""
    if over_http:

        async def refused(*_: object, **__: object) -> None:
            return None

        monkeypatch.setattr(Member, "_queried", refused)
    stale = _stale_storages(monkeypatch)
    async with audited_cluster() as lab:
        await lab.twice()
        stale.add(1)
        await lab.do(Register("c1", "web", "10.0.0.1:80 zone=x"), Advance(VERIFIED_MS))
        audited = await lab.twice()
        (found,) = audited.diverged_lists
        assert (audited.diverged, found.service, audited.verdict) == ((), "web", Verdict.VIOLATES)
        assert found.members[lab.address("b")] == ("10.0.0.1:80",)
        assert found.members[lab.address("a")] == ('10.0.0.1:80 {"zone": "x"}',)
        assert "list of web since" in found.sentence()


def _stale_storages(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The numbers of the nodes, in the order of their start, whose lists stay as they are."""
    made: list[ServiceStorage] = []
    stale: set[int] = set()
    init, drop, refresh = ServiceStorage.__init__, ServiceStorage._drop_view, ServiceStorage.refresh

    def is_stale(storage: ServiceStorage) -> bool:
        return any(storage is made[number] for number in stale)

    def make(self: ServiceStorage, *arguments: Any, **options: Any) -> None:
        init(self, *arguments, **options)
        made.append(self)

    monkeypatch.setattr(ServiceStorage, "__init__", make)
    monkeypatch.setattr(ServiceStorage, "_drop_view", lambda self, event: is_stale(self) or drop(self, event))
    monkeypatch.setattr(ServiceStorage, "refresh", lambda self, service: is_stale(self) or refresh(self, service))
    return stale


async def test_all_lists_are_compared_with_those_of_clients_of_the_http_api() -> None:
    async with audited_cluster() as lab:
        await lab.do(HttpRegister("api", "10.0.0.7:80 zone=x", "a"), Advance(VERIFIED_MS))
        audited = await lab.twice()
        assert (audited.services, audited.lists, audited.verdict) == (2, 2, Verdict.CONFORMS)
        shown = {str(name): lines for name, lines in audited.readings[0].lists.items()}
        assert shown["api"] == ('10.0.0.7:80 unhealthy {"zone": "x"}',), "it has sent no beat"


async def test_each_change_is_a_line_with_its_time_and_ends_when_it_is_over(tmp_path: Path) -> None:
    async with audited_cluster() as lab:
        fine = await lab.twice()
        assert [line["text"] for line in changes(None, fine)] == ["conforms"]
        await lab.do(Cut("a", "b"), Register("c1", "web", "10.0.0.2:80"), Advance(5_000))
        await lab.audit.compare()
        await lab.do(Advance(VERIFIED_MS))
        broken = await lab.audit.compare()
        began = list(changes(fine, broken))
        kinds = [(line["change"], line["what"]) for line in began]
        assert kinds[-2:] == [("began", "client"), ("changed", "verdict")]
        assert ("began", "service list") in kinds
        await lab.do(Advance(VERIFIED_MS))
        still = await lab.audit.compare()
        assert not [line for line in changes(broken, still) if line["what"] == "client"], "the time alone is no change"
        await lab.do(Heal("a", "b"), Advance(30_000))
        await lab.audit.compare()
        healed = await lab.audit.compare()
        assert ("ended", "client") in [(line["change"], line["what"]) for line in changes(still, healed)]
        text = metrics(still, exit_code_of(still), THEN)
        rows = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        assert rows["distrocheck_diverged_clients"] == "1"
        assert float(rows["distrocheck_diverged_clients_since_seconds"]) >= 24
        assert rows["distrocheck_audit_exit_code"] == "1"
        assert rows[f'distrocheck_member_up{{member="{lab.address("a")}"}}'] == "1"
        write_metrics(tmp_path / "audit.prom", text)
        assert os.listdir(tmp_path) == ["audit.prom"], "no half-written file is left"
        assert (tmp_path / "audit.prom").read_text() == text


def test_before_the_second_look_no_count_is_written() -> None:
    """An alert must not take an unknown count for zero."""
    once = Audited((Reading("a:1", "snapshot", {}), Reading("b:1", "snapshot", {})), 0, (), 1)
    names = {line.split("{")[0].split(" ")[0] for line in metrics(once, 3, THEN).splitlines() if line[0] != "#"}
    assert not any("diverged" in name or "disagreement" in name for name in names)
    assert names <= METRICS.keys()
    assert "distrocheck_member_up" not in metrics(None, 4, THEN)
    assert "distrocheck_audit_exit_code 4" in metrics(None, 4, THEN)


async def test_following_ends_with_a_failure_if_the_last_reading_is_one() -> None:
    """The reading before it, in which all agreed, is no verdict."""
    async with audited_cluster() as lab:
        following = asyncio.create_task(
            auditing._follow(lab.audit, auditing.AuditOptions(interval_s=0.01, follow=True, for_s=1.0))
        )
        assert await eventually(poll_local(lambda: lab.audit.rounds >= 2), RealClock(), within_ms=5_000)
        await lab.do(Crash("b"), Crash("c"))
        with pytest.raises(TargetError, match="fewer than two members can be read"):
            await following


async def test_following_in_lines_writes_metrics_and_ends_with_the_last_observation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with audited_cluster() as lab:
        await lab.do(Cut("a", "b"), Disconnect("c1"), Advance(5_000))
        options = auditing.AuditOptions(0.01, follow=True, lines=True, for_s=0.5, metrics=tmp_path / "audit.prom")
        assert (await auditing._follow_in_lines(lab.audit, options)).verdict is Verdict.VIOLATES
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert {line["schema"] for line in lines} == {"distrocheck/audit-change/1"}
        assert (lines[0]["change"], lines[0]["what"], lines[0]["subject"]) != ("began", "client", "c1")
        assert [line["what"] for line in lines].count("client") == 1
        assert "distrocheck_diverged_clients 1" in (tmp_path / "audit.prom").read_text()
        await lab.do(Crash("b"), Crash("c"))
        with pytest.raises(typer.Exit) as ended:
            await auditing._follow_in_lines(lab.audit, options)
        assert ended.value.exit_code == 4
        (line,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert (line["change"], line["what"]) == ("began", "audit")
        assert "fewer than two members can be read" in line["text"]
        assert "distrocheck_audit_exit_code 4" in (tmp_path / "audit.prom").read_text()


def test_the_alerts_of_the_page_stand_on_metrics_that_are_written() -> None:
    named = set(re.findall(r"distrocheck_\w+", block("docs/how-to/audit.md", "- alert: NacosDiverged")))
    assert {"distrocheck_diverged_clients_since_seconds", "distrocheck_audit_exit_code"} <= named <= METRICS.keys()
