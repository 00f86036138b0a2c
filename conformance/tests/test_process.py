"""Any server as a process: its description, and the start of a server that starts in its own way.

A toy in Go, and processes that are killed and paused, are on the page "Test your own server", which is executed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from programs import ROOT, Call

from distro_conformance.cli import options
from distro_conformance.drivers.registry import ClusterOptions, resolve_cluster
from distro_conformance.findings.finding import Finding, Judgement
from distro_conformance.language.replay import replay
from distro_conformance.language.text import parse
from distro_conformance.node.run import run_node_conformance, run_requirements
from distro_conformance.targets.credentials import credentials_of
from distro_conformance.targets.ports import free_base_ports
from distro_conformance.targets.process import ProcessServer, description_of
from distro_conformance.targets.registry import resolve_target
from distro_conformance.targets.server_process import running
from distro_conformance.verdict import TargetError, UnreadableError, UsageError, Verdict
from distro_conformance.waiting import RealClock, eventually
from distro_model.actions import ListMembers

SERVE = ROOT / "docs" / "examples" / "serve.toml"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("command = ['x']", "the command, the environment or a file must contain {port}"),
        ("program = ['x', '{port}']", "there is no key 'program'; keys are command, member, profile"),
        ("command = 'x {port}'", "'command' is a list, not 'x {port}'"),
        (
            "command = ['x', '{port}']\n[ready]\nlines = 'up'",
            "there is no key 'ready.lines'; keys are line, http, seconds",
        ),
        ("command = ['x', '{port}']\nprofile = '2.2.4'", "no profile '2.2.4'"),
        ("command = ['x', '{port}']\nprofile = 'nacos-9'", "no profile 'nacos-9'; known: nacos-2.0.0"),
        ("command = [", "cannot read the description"),
        ("", "there is no 'command' to start the server; it, the environment or a file must contain {port}"),
        ("command = ['x', '{port}', '{membrs}']", "there is no placeholder '{membrs}'; placeholders are {port}, "),
        ("command = ['x', '{port}', '{member}']", "there is no placeholder '{member}'; "),
        ("command = ['x', '{port}']\nmember = ['{membr}']", "there is no placeholder '{membr}'; "),
        ("command = ['x', '{port}']\n[files]\n'a' = '{hom}/b'", "there is no placeholder '{hom}'; "),
        ("command = ['x', '{port}']\n[environment]\nA = '{hom}'", "there is no placeholder '{hom}'; "),
        ("command = ['x', '{port}']\n[ready]\nline = 'at {prt}'", "there is no placeholder '{prt}'; "),
        ("command = ['x', '{port}']\n[ready]\nseconds = 0", "'ready.seconds' is 0; give it a second at least"),
        ("command = ['x', '{port}']\n[files]\n'../../evil' = 'x'", "[files] '../../evil' is no path below {home}"),
        ("command = ['x', '{port}']\n[files]\n'/etc/evil' = 'x'", "[files] '/etc/evil' is no path below {home}"),
        ("command = ['x', '{port}']\n[files]\n'' = 'x'", "[files] '.' is no path below {home}"),
    ],
)
def test_a_description_that_is_none_is_refused(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "server.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as refused:
        description_of(str(path))
    assert problem in str(refused.value)


def test_braces_that_are_no_placeholders_are_left_alone() -> None:
    text = "sh -c 'x {port} ${home_of} {{name}} %X{trace} {a: 1} {A} f{n}'"
    assert description_of(text).command[-1] == "x {port} ${home_of} {{name}} %X{trace} {a: 1} {A} f{n}"


def test_the_text_after_process_is_a_file_or_a_command(tmp_path: Path) -> None:
    assert description_of("./toy {port} 'a b'").command == ("./toy", "{port}", "a b")
    for text, problem in (("", "needs a description"), ("./toy", "must contain {port}"), ("no.toml", "cannot read")):
        with pytest.raises(UsageError, match=problem):
            description_of(text)


@pytest.mark.wire
@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("no-such-program {port}", "there is no program 'no-such-program' to start"),
        ("sh -c 'echo out of order; exit 3' {port}", "ended while it was starting; its output: out of order$"),
        (f"{SERVE} {{port}}", "while it was starting; its output: /.*serve.toml cannot be started: Permission denied$"),
    ],
)
def test_a_server_that_does_not_start_says_why(command: str, problem: str) -> None:
    with pytest.raises(TargetError, match=problem):
        run_node_conformance(resolve_target(f"process:{command}"), ["DISTRO-SYNC-001"])


@pytest.mark.wire
@pytest.mark.parametrize(
    ("ready", "problem"),
    [
        ("line = 'never'", "is not ready after 1 s: it has not written 'never'; its output: on the way$"),
        ("http = '/up'", r"after 1 s: http://127.0.0.1:\d+/up does not answer with status 200; its output: on"),
        ("", r"its SDK port \d+ takes no client, or nothing listens on its cluster port \d+; its output: on the way$"),
    ],
)
def test_a_server_that_is_not_ready_in_time_is_reported_with_the_condition_it_missed(
    ready: str, problem: str, tmp_path: Path
) -> None:
    described = tmp_path / "server.toml"
    sleeps = "command = ['sh', '-c', 'echo on the way; exec sleep 60', '{port}']\nprofile = 'strict'"
    described.write_text(f"{sleeps}\n[ready]\nseconds = 1\n{ready}")
    with pytest.raises(TargetError, match=problem):
        run_node_conformance(resolve_target(f"process:{described}"), ["DISTRO-SYNC-001"])


@pytest.mark.wire
@pytest.mark.usefixtures("_installed")
def test_a_walk_needs_the_snapshot_and_says_so(tmp_path: Path) -> None:
    """A server that answers, but not with that, is reachable."""
    described = _served_with(GIVES_NO_SNAPSHOT, tmp_path)
    needs = r"a does not return its clients, .* SNAPSHOT .*'distrocheck test node' does without"
    with pytest.raises(UnreadableError, match=needs) as ended:
        replay(parse("nodes a b\nexpect within 1s: all agree"), target=f"process:{described}")
    assert ended.value.exit_code == Verdict.INCONCLUSIVE.exit_code


@pytest.mark.slow
@pytest.mark.wire
@pytest.mark.usefixtures("_installed")
def test_a_server_of_a_release_that_is_not_known_here_is_judged_as_the_last_one(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "require_free_machine", lambda: None)  # its result does not matter
    described = tmp_path / "server.toml"
    described.write_text(SERVE.read_text().replace("nacos-2.2.4", "nacos-3.1.7-vendor.2"))
    ran = call("test", "node", "--target", f"process:{described}", "--requirement", "DISTRO-SYNC-001")
    note = (
        "nacos-3.1.7 is judged as nacos-3.1.0, the last release known here; requirements are selected by its own number"
    )
    assert " ".join(ran.stderr.split()).startswith(note)
    assert "profile nacos-3.1.7" in ran.stdout


@pytest.mark.wire
@pytest.mark.usefixtures("_installed")
def test_our_own_node_conforms_as_a_process_too() -> None:
    ids = ["DISTRO-SYNC-001", "DISTRO-SYNC-002"]
    report = run_node_conformance(resolve_target(f"process:{SERVE}"), ids)
    assert report.verdict is Verdict.CONFORMS
    assert report.profile == "nacos-2.2.4"


@pytest.mark.slow
@pytest.mark.wire
@pytest.mark.usefixtures("_installed")
def test_members_of_a_described_server_show_the_identity_of_the_description(tmp_path: Path) -> None:
    """A node of 3.x asks for it once all members have reported themselves, so the last of several checks decides."""
    described = tmp_path / "server.toml"
    described.write_text(f'{_of_3x("secret-value")}\n[identity]\nkey = "cluster"\nvalue = "secret-value"\n')
    report = run_node_conformance(resolve_target(f"process:{described}"), ["DISTRO-MEMBER-001", "DISTRO-MEMBER-002"])
    assert report.verdict is Verdict.CONFORMS, report.findings
    assert "secret-value" not in repr(report)
    assert "secret-value" not in repr(description_of(str(described)).identity)

    of_command_line = credentials_of("cluster=another", None, "")
    target = resolve_target(f"process:{described}", credentials=of_command_line)
    assert target.member_headers == target.client_headers == {"cluster": "another"}


@pytest.mark.slow
@pytest.mark.wire
@pytest.mark.usefixtures("_installed")
async def test_a_kit_that_attaches_to_a_cluster_shows_its_identity(tmp_path: Path) -> None:
    described = tmp_path / "server.toml"
    described.write_text(_of_3x("secret-value"))
    ports = free_base_ports(2)
    members = [f"127.0.0.1:{port}" for port in ports]
    async with running([ProcessServer(description_of(str(described)), port, members) for port in ports]):

        async def judged(identity: str | None) -> Finding:
            shown = credentials_of(identity, None, "")
            target = resolve_target(f"attach:{members[0]}", "nacos-3.0.3", credentials=shown)
            (found,) = await run_requirements(target, ["DISTRO-REGISTER-001"])
            return found

        async def is_refused() -> bool:
            return (await judged(None)).judgement is Judgement.NOT_JUDGED

        assert await eventually(is_refused, RealClock(), 60_000), "it asks once its members have reported themselves"
        found = await judged("cluster=secret-value")
        assert found.judgement is Judgement.CONFORMS, found
        assert "secret-value" not in repr(found)


@pytest.mark.parametrize(
    ("identity", "problem"),
    [
        ('key = "cluster"', "[identity] takes a 'key' and a 'value'"),
        ('key = "cluster"\nvalue = 12345', "'identity.value' is a str, not what stands there"),
        ('key = "cluster"\nval = "12345"', "there is no key 'identity.val'; keys are key, value"),
    ],
)
def test_an_error_about_an_identity_does_not_contain_it(identity: str, problem: str, tmp_path: Path) -> None:
    described = tmp_path / "server.toml"
    described.write_text(f"command = ['x', '{{port}}']\n[identity]\n{identity}\n")
    with pytest.raises(UsageError) as refused:
        description_of(str(described))
    assert problem in str(refused.value)
    assert "12345" not in str(refused.value)
    with pytest.raises(UsageError, match="--identity: write it as KEY=VALUE") as refused:
        credentials_of("12345", None, "")
    assert "12345" not in str(refused.value)


def _of_3x(value: str) -> str:
    """The reference node of a release that asks for an identity."""
    described = SERVE.read_text("utf-8").replace("nacos-2.2.4", "nacos-3.0.3")
    keys = {"key": "cluster", "value": value}
    settings = "".join(f', "--set", "nacos.core.auth.server.identity.{key}={text}"' for key, text in keys.items())
    return described.replace('"nacos-3.0.3"]', f'"nacos-3.0.3"{settings}]')


@pytest.mark.wire
@pytest.mark.usefixtures("_installed")
@pytest.mark.slow
def test_a_client_waits_until_naming_knows_its_connection(tmp_path: Path) -> None:
    """A real server took a registration of one that it did not know yet, and said that it succeeded."""
    described = _served_with(NAMING_CONNECTS_LATE, tmp_path)
    report = run_node_conformance(resolve_target(f"process:{described}"), ["DISTRO-SYNC-001", "DISTRO-SYNC-002"])
    assert [finding.message for finding in report.findings] == ["", ""]
    listed = "expect within 3s: query web everywhere shows 10.0.0.1:80"
    scenario = parse(f"nodes a b\nconnect c1 a\nregister c1 web 10.0.0.1:80\n{listed}")
    played = replay(scenario, target=f"process:{described}")
    assert [step.outcome for step in played.steps if step.verdict is not Verdict.CONFORMS] == []


@pytest.mark.wire
@pytest.mark.usefixtures("_installed")
@pytest.mark.slow
def test_a_check_that_could_not_be_judged_is_run_once_more(tmp_path: Path) -> None:
    target = resolve_target(f"process:{_served_with(FORGETS_THE_FIRST_REGISTRATION, tmp_path)}")
    report = run_node_conformance(target, ["DISTRO-SYNC-002"])
    (finding,) = report.findings
    assert finding.judgement is Judgement.CONFORMS
    (again,) = (line for line in finding.evidence if line.endswith("asked once more"))
    assert again.startswith("not judged: cannot go on without a CHANGE of ")


def test_the_port_may_be_in_the_environment(tmp_path: Path) -> None:
    described = tmp_path / "server.toml"
    described.write_text("command = ['x']\nprofile = 'strict'\n[environment]\nPORT = '{port}'")
    assert resolve_target(f"process:{described}").profile == "strict"


@pytest.mark.wire
@pytest.mark.usefixtures("_installed")
def test_a_server_is_ready_when_members_can_connect_too(tmp_path: Path) -> None:
    described = _served_with(CLUSTER_PORT_LISTENS_LATE, tmp_path)
    report = run_node_conformance(resolve_target(f"process:{described}"), ["DISTRO-REGISTER-001"])
    assert [finding.judgement for finding in report.findings] == [Judgement.CONFORMS]


CLUSTER_PORT_LISTENS_LATE = """
import asyncio
from distro_impl.remote.acceptor import RequestAcceptor
at_once = RequestAcceptor.start
async def start(self):
    if "cluster" not in self._purpose:
        return await at_once(self)
    asyncio.get_running_loop().call_later(2, lambda: asyncio.ensure_future(at_once(self)))
RequestAcceptor.start = start
from distro_conformance.cli import main
main()
"""

FORGETS_THE_FIRST_REGISTRATION = """
from distro_impl.naming.client_manager import ClientManager
register, forgotten = ClientManager.register, []
def forgetful(*given, **how):
    if forgotten:
        register(*given, **how)
    forgotten.append(given)
ClientManager.register = forgetful
from distro_conformance.cli import main
main()
"""

GIVES_NO_SNAPSHOT = """
from distro_impl.distro import distro_handler
distro_handler.encode_content = lambda _: ""
from distro_conformance.cli import main
main()
"""

NAMING_CONNECTS_LATE = """
import asyncio, sys
from distro_impl.naming.client_manager import ClientManager
at_once = ClientManager.client_connected
ClientManager.client_connected = lambda *given: asyncio.get_running_loop().call_later(0.3, at_once, *given)
from distro_conformance.cli import main
main()
"""


def _served_with(program: str, tmp_path: Path) -> Path:
    """Our own node as a process, of a program that changes it first."""
    changed, described = tmp_path / "changed.py", tmp_path / "changed.toml"
    changed.write_text(program)
    command = f'command = ["{sys.executable}", "{changed}", "serve"'
    described.write_text(SERVE.read_text().replace('command = ["distrocheck", "serve"', command))
    return described


@pytest.mark.wire
@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize(
    ("text", "profile"),
    [
        ("".join(line for line in SERVE.read_text().splitlines(True) if "profile =" not in line), "nacos-2.2.4"),
        ("command = ['sh', '-c', 'echo up {port}; exec sleep 60']\n[ready]\nline = 'up'", "strict"),
    ],
    ids=["it says", "it does not"],
)
def test_a_server_of_which_nothing_is_said_is_asked_what_it_is(text: str, profile: str, tmp_path: Path) -> None:
    described = tmp_path / "server.toml"
    described.write_text(text)
    assert resolve_target(f"process:{described}").profile == profile
    described.write_text("command = ['false', '{port}']")
    assert resolve_cluster(f"process:{described}", ClusterOptions()).profile == profile, "it was asked once, for all"
    assert resolve_target(f"process:{described}", "nacos-2.0.4").profile == "nacos-2.0.4"


@pytest.mark.slow
@pytest.mark.wire
@pytest.mark.usefixtures("_installed")
def test_without_an_offset_no_fault_can_be_put_on_a_link() -> None:
    played = replay(parse("nodes a b\ncut a->b"), target=f"process:{SERVE}")
    assert played.verdict is Verdict.INCONCLUSIVE
    assert "the kit has no link from a to b on process:" in played.steps[0].outcome


def test_a_node_with_members_on_the_command_line_never_learns_of_others() -> None:
    given = resolve_cluster(
        "process:distrocheck serve --port {port} --member {members}", ClusterOptions(profile="strict")
    )
    assert "names no file of members" in (given.cluster.cannot(ListMembers("a", ("a", "b"))) or "")
    described = resolve_cluster(f"process:{SERVE}", ClusterOptions()).cluster
    assert described.cannot(ListMembers("a", ("a", "b"))) is None
