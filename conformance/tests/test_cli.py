"""The command as others' scripts use it: one JSON document, the contract's fields and exit codes, one-line errors."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import typer
from programs import COMMAND, ROOT, Call, Document, executed
from promises import hold
from schemas import DOCUMENTS, schema_of
from typer.core import TyperGroup, TyperOption

from distro_conformance.cli import COMMAND as COMMAND_NAME
from distro_conformance.cli import VERBS, console, listing, whole
from distro_conformance.cli.options import known_profile
from distro_conformance.cli.output import ResultLine, progress, summary, time_left
from distro_conformance.cli.serve import PORT_STEP
from distro_conformance.errors import USAGE_ERRORS
from distro_conformance.exploration.explored import BOUND_OPTIONS, SearchOptions, explore_profile
from distro_conformance.release import listed_profile
from distro_conformance.verdict import Verdict
from distro_conformance.version import HIDDEN, command_line
from distro_impl import PROFILES, free_main_ports
from distro_model.bounded.bounds import Bounds
from distro_model.explorer import search_compiled
from distro_model.mutants import UnknownMutantError
from distro_model.search.results import Limits, Search, Watch
from distro_model.search.system import System
from distro_spark import session
from distro_traces.event import Kind
from distro_traces.ndjson import Recorder

B02 = ROOT / "scenarios" / "b02-lost-change-2.0.4.scenario"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("frobnicate",), "No such command 'frobnicate'"),
        (("gate", "--budget", "huge"), "no budget 'huge'; known: quick, ci, nightly"),
        (("gate", "--target", "moon"), "no target 'moon'; known: embedded, nacos:VERSION, nacos:DIRECTORY"),
        (("gate", "--profile", "nacos-9"), "no profile 'nacos-9'"),
        (("gate", "--requirement", "DISTRO-NONE-001"), "no requirement 'DISTRO-NONE-001'; most like it: "),
        (("test", "node", "--target", "nacos:9.9"), "9.9"),
        (("test", "node", "--requirement", "DISTRO-NONE-001"), "no requirement 'DISTRO-NONE-001'"),
        (("test", "cluster", "--mutant", "B99"), "the reference node has no mutant 'B99'; most like it: "),
        (("test", "cluster", "--profile", "nacos-9"), "no profile 'nacos-9'; known: "),
        (("test", "node", "--target", "process:x {port}", "--profile", "nacos-9"), "no profile 'nacos-9'; known: "),
        (("test", "node", "--requirement", "DISTRO-SYN"), "those that begin so: DISTRO-SYNC-001, DISTRO-SYNC-002, "),
        (("test", "node", "--requirement", "NOPE"), "no requirement 'NOPE'; 'distrocheck list requirements' shows all"),
        (("import", "nacos-logs", "/nope", "--profile", "nacos-9"), "no profile 'nacos-9'; known: "),
        (
            ("test", "cluster", "--target", "nacos:2.2.4", "--tours"),
            "--profile, --mutant, --transport, --tours and --http require --target embedded",
        ),
        (("explore", "--mutant", "B99"), "the model has no mutant 'B99'; "),
        (("explore", "--mutant", "B02-sender"), "the reference node and a real server have it (level node and real)"),
        (("explore", "--mutant", "NOPE"), "the model has no mutant 'NOPE'; 'distrocheck list mutants' shows all"),
        (("test", "cluster", "--mutant", "B43"), "the model has it (level model)"),
        (("explore", "--max-seconds", "-1"), "Invalid value for '--max-seconds'"),
        (("explore", "--max-memory-gib", "-1"), "Invalid value for '--max-memory-gib'"),
        (("explore", "--max-memory-gib", "inf"), "'--max-memory-gib': inf is never reached; name 1,000,000,000 at"),
        (("check", str(ROOT), "--follow", "--out", "x", "--idle-s", "0"), "Invalid value for '--idle-s'"),
        (("mutants", "run", "--max-seconds", "-1"), "Invalid value for '--max-seconds'"),
        (("explore", "--nodes", "0"), "bounds: at least one node"),
        (("explore", "--changes", "many"), "Invalid value for '--changes'"),
        (("replay", "/dev/null"), "/dev/null has no step, so there is nothing to replay"),
        (("replay", "missing.scenario"), "cannot read the scenario missing.scenario: No such file or directory\n"),
        (("replay", str(B02), "--target", "moon"), "no cluster 'moon'; known: model, embedded"),
        (("simulate", "--faults", "rain"), "there is no fault 'rain'; faults are drop, swallow"),
        (("simulate", "--nodes", "27"), "a simulation has 1 to 26 nodes, not 27"),
        (("simulate", "--nodes", "1", "--faults", "crash"), "faults need 2 nodes at least"),
        (("simulate", "--clients", "-1"), "a simulation cannot have -1 clients; 100,000 are the most at a time"),
        (("simulate", "--clients", "100000000000000"), "a simulation cannot have 100000000000000 clients"),
        (("simulate", "--duration-s", "0"), "a simulation lasts longer than 0 s"),
        (("simulate", "--duration-s", "nan"), "a simulation lasts longer than 0 s"),
        (("simulate", "--duration-s", "1e300"), "1,000,000,000 s at most, not 1e+300 s"),
        (("simulate", "--mutant", "B99"), "the model has no mutant 'B99'"),
        (("simulate", "--profile", "nacos-9"), "no profile 'nacos-9'"),
        (("simulate", "--out", str(ROOT)), "is not empty, and recordings are never overwritten"),
        (("simulate", "--duration-s", "1", "--out", "/proc/nowhere"), "/proc/nowhere"),
        (("mutants", "run", "--level", "moon"), "no level 'moon'; known: model, node, real, trace"),
        (("mutants", "run", "--level", "real", "--max-seconds", "9"), "the level real has none of them"),
        (("mutants", "run", "--mutant", "B99"), "unknown mutant 'B99' at the level model; known: "),
        (("mutants", "run", "--level", "node", "--mutant", "B43"), "unknown mutant 'B43' at the level node; known: "),
        (("mutants", "run", "--level", "trace", "--mutant", "B43"), "unknown mutant 'B43' at the level trace; known: "),
        (("serve", "--profile", "nacos-9"), "no profile 'nacos-9'"),
        (("serve", "--set", "nacos.core.unknown=1"), "no setting 'nacos.core.unknown'"),
        (("serve", "--port", "64000", "--nodes", "99"), "need ports above 65535"),
        (("gate", "--out", str(ROOT)), "holds something else than recordings"),
        (("gate", "--out", str(B02)), f"--out {B02}: is no directory"),
        (("serve", "--config", "/proc/nowhere"), "/proc/nowhere cannot be used: No such file or directory"),
        (("serve", "--set", "nacos.inetutils.ip-address=192.0.2.1"), "192.0.2.1 is no address of this machine"),
        (("serve", "--set", "nacos.inetutils.ip-address=nowhere"), "nowhere is no address of this machine"),
        (("serve", "--set", "nacos.standalone=true", "--nodes", "2"), "the options make a cluster; drop one"),
        (("serve", "--set", "delay"), "--set takes KEY=VALUE, not 'delay'"),
        (("serve", "--member", "localhost"), "--member: 'localhost' has no usable port; write HOST:PORT"),
        (("serve", "--member", "h:1", "--member", "h:1"), "--member names h:1 twice; name each once"),
        (("replay", str(B02), "--target", "attach:h:1,h:1"), "attach:h:1,h:1 names h:1 twice"),
        (
            ("serve", "--members-file", "/proc/nowhere"),
            "the member list /proc/nowhere cannot be read: No such file or directory\n",
        ),
        (("serve", "--members-file", str(B02)), f"{B02}, line 3: 'profile nacos-2.0.4' is no address"),
        (("serve", "--members-file", str(B02), "--member", "a:1"), "both name members; give one"),
        (("gate", "--out", "/proc/nowhere"), "--out /proc/nowhere: cannot be written to (No such file or directory)"),
        (("test", "cluster", "--out", "/proc/nowhere"), "--out /proc/nowhere: cannot be written to"),
        (("check", "/nope"), "there is no trace at /nope"),
        (("check", str(B02), "--invariant", "INV-NONE"), "no invariant INV-NONE; there are INV-CONV"),
        (
            ("explore", "--nodes", "4", "--clients", "4", "--scenario", "/proc/nowhere"),
            "--scenario /proc/nowhere: cannot",
        ),
        (("explore", "--nodes", "4", "--clients", "4", "--itf", str(ROOT)), f"--itf {ROOT}: is a directory"),
        (("test", "cluster", "--target", "moon"), "no cluster 'moon'; known: model, embedded"),
        (
            ("test", "cluster", "--target", "mixed:2.2.4", "--mutant", "B02"),
            "--mutant, --transport, --tours and --http require",
        ),
        (("test", "differential", "--target", "moon"), "no target 'moon'; known: embedded"),
        (
            ("test", "differential", "--target", "embedded", "--script", "x"),
            "no script 'x'; known: envelope-unregistered",
        ),
        (("list", "dragons"), "no list 'dragons'; known: requirements"),
        (("explain", "INV-NONE"), "nothing is called 'INV-NONE'"),
        (("explain", "distro-sync-001"), "nothing is called 'distro-sync-001'; most like it: DISTRO-SYNC-001"),
        (("explore", "--engine", "spark"), "there is no engine 'spark'; there are local"),
    ],
)
def test_a_users_mistake_is_one_line_and_exit_code_2(
    call: Call, arguments: tuple[str, ...], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "local_session", None)  # Spark takes seconds to start, and this error does not need it
    ran = call(*arguments)
    assert ran.returncode == 2, ran.stderr
    assert problem in ran.stderr
    assert ran.stderr.startswith("distrocheck: ")
    assert ran.stderr.count("\n") == 1, ran.stderr
    assert ran.stdout == ""


class DerivedMutantError(UnknownMutantError):
    """An error that another package derives and raises."""


def test_the_error_and_not_its_module_names_the_missing_mutant(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise DerivedMutantError("B02-sender")

    monkeypatch.setattr("distro_conformance.cli.explore.explore_profile", missing)
    ran = call("explore")
    assert (ran.returncode, ran.stderr[:51]) == (2, "distrocheck: the model has no mutant 'B02-sender'; ")


LOOKED_AT_LATER = {
    ("simulate", "duration_s"),
    ("simulate", "nodes"),
    ("simulate", "clients"),
    *(("explore", bound) for bound in BOUND_OPTIONS),
}
"""By what is made of them: the rows for it are above."""


def numeric_options() -> Iterator[tuple[str, TyperOption]]:
    """Of every verb, with its name."""
    verbs: list[tuple[str, Any]] = [("", whole())]
    for name, verb in verbs:
        if isinstance(verb, TyperGroup):
            within = verb.make_context(verb.name, [], resilient_parsing=True)
            verbs += [(f"{name} {each}".strip(), verb.get_command(within, each)) for each in verb.list_commands(within)]
        for option in verb.params:
            if option.type.name.partition(" ")[0] in ("int", "float"):
                yield name, option


def taken(option: TyperOption) -> list[str]:
    """The numbers without sense that the option accepts."""
    context = typer.Context(whole())
    accepted = []
    for text in ["-1"] if option.type.name.startswith("int") else ["-1", "nan", "inf", "1e300"]:
        with contextlib.suppress(typer.BadParameter):
            option.process_value(context, text)
            accepted.append(text)
    return accepted


def test_a_number_that_makes_no_sense_is_refused() -> None:
    options = [
        each for each in numeric_options() if each[1].name != "seed" and (each[0], each[1].name) not in LOOKED_AT_LATER
    ]
    assert len(options) > 10
    found = {f"{verb} --{option.name}": taken(option) for verb, option in options}
    assert {option: numbers for option, numbers in found.items() if numbers} == {}


def test_a_release_that_is_not_listed_is_taken_and_reported(call: Call) -> None:
    ran = call("explore", "--profile", "nacos-2.2.44", "--max-states", "1", "--json")
    assert (ran.returncode, json.loads(ran.stdout)["profile"]) == (3, "nacos-2.2.44")
    printed = (
        "nacos-2.2.44 is judged as nacos-2.2.4, which behaves the same; requirements are selected by its own number"
    )
    assert printed in " ".join(ran.stderr.split())


def test_a_port_that_is_taken_is_reported(call: Call) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for verb in ("ui", "serve"):
            ran = call(verb, "--port", port)
            assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1), ran.stderr
            assert port in ran.stderr


@pytest.mark.parametrize("arguments", [("frobnicate",), ("check", "/nope"), ("explore", "--mutant", "B99")])
def test_an_error_is_a_document_too(call: Call, document: Document, arguments: tuple[str, ...]) -> None:
    code, found = document(*arguments)
    assert (found["schema"], found["exit_code"]) == ("distrocheck/error/1", code)
    assert (code, arguments[-1] in found["error"]) == (2, True)
    assert call(*arguments).stdout == ""


HELP_THEN_A_WRONG_OPTION = """
import sys
from distro_conformance.cli import app

app(["--help"], standalone_mode=False)
assert not {"numpy", "grpc", "pyspark", "rich", "hypothesis", "distro_model", "distro_impl"} & {*sys.modules}
try:
    app(["explore", "--changes", "many"], standalone_mode=False)
except Exception as error:
    print(error, {"numpy", "numba", "networkx"} & {*sys.modules})
"""


def test_help_and_version_load_none_of_the_verbs_and_a_wrong_option_no_engine(call: Call) -> None:
    assert call("--version").stdout.startswith("distrocheck ")
    ran = executed(sys.executable, "-c", HELP_THEN_A_WRONG_OPTION)
    assert ran.returncode == 0, ran.stderr
    assert "simulate" in ran.stdout
    assert ran.stdout.endswith("is not a valid int. set()\n")


def test_every_verb_of_the_table_is_there(call: Call) -> None:
    verbs = [(*(() if group == COMMAND_NAME else (group,)), verb) for group, verbs in VERBS.items() for verb in verbs]
    assert [verb for verb in verbs if "Usage: " not in call(*verb, "--help").stdout] == []


def test_every_error_of_the_table_exists() -> None:
    for package, names in USAGE_ERRORS.items():
        source = "".join(file.read_text() for file in Path(str(files(package))).rglob("*.py"))
        assert [name for name in names if f"class {name}(" not in source] == []


def test_a_defect_is_no_verdict(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "show", lambda *_: 1 / 0)
    ran = call("list", "targets", "--json")
    assert ran.returncode == 70
    assert "ZeroDivisionError" in ran.stderr
    assert "please report" in json.loads(ran.stdout)["error"]


def test_a_reader_that_stops_ends_the_command_quietly() -> None:
    command = [*COMMAND, "list", "requirements"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as listing:
        assert listing.stdout is not None
        listing.stdout.close()
        assert listing.wait(120) == 141
        assert listing.stderr is not None
        assert listing.stderr.read() == b""


def test_replay_prints_line_by_line_and_exits_with_the_verdict(document: Document) -> None:
    code, found = document("replay", str(B02))
    assert code == 1
    assert found["schema"] == "distrocheck/replay/1"
    assert (found["verdict"], found["reproduced"]) == ("violates", True)
    assert set(found["steps"][0]) >= {"line", "at_ms", "outcome"}
    code, found = document("replay", str(B02), "--profile", "strict")
    assert (code, found["verdict"], found["reproduced"]) == (0, "conforms", False)


def test_a_test_is_written_of_what_is_violated_and_otherwise_it_is_said_that_none_is(
    call: Call, tmp_path: Path
) -> None:
    test = tmp_path / "test_lost.py"
    passed = call("replay", str(B02), "--profile", "strict", "--target", "model", "--pytest", str(test))
    assert not test.exists()
    assert f"no violation, so {test} is not written" in passed.stderr
    failed = call("replay", str(B02), "--target", "model", "--pytest", str(test))
    assert test.exists()
    assert "not written" not in failed.stderr


def test_a_scenario_may_come_from_standard_input(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(B02.read_text()))
    assert call("replay", "-", "--target", "model").returncode == 1
    monkeypatch.setattr(sys, "stdin", io.StringIO("join c1 a"))
    wrong = call("replay", "-")
    assert (wrong.returncode, wrong.stderr.split(":")[1].strip()) == (2, "standard input line 1")


def test_explore_says_what_holds_and_how_long_a_counterexample_is(
    call: Call, document: Document, tmp_path: Path
) -> None:
    code, found = document("explore", "--profile", "nacos-2.0.4", "--scenario", str(tmp_path / "found.scenario"))
    assert code == 1
    assert found["schema"] == "distrocheck/explore/1"
    assert found["complete"] is True
    assert found["distinct_states"] > 1000 < found["transitions"]
    conv = next(p for p in found["properties"] if p["name"] == "INV-CONV")
    assert (conv["holds"], conv["kind"], conv["steps"]) == (False, "always", 7)
    assert call("replay", str(tmp_path / "found.scenario")).returncode == 1
    code, found = document("explore")
    assert code == 0
    assert all(p["holds"] and p["steps"] is None for p in found["properties"])


def test_a_search_that_breaks_nothing_reports_and_has_no_scenario_to_write(call: Call, tmp_path: Path) -> None:
    paths = [tmp_path / "found.scenario", tmp_path / "found.itf.json"]
    done = call("explore", "--changes", "1", "--drops", "0", "--scenario", str(paths[0]), "--itf", str(paths[1]))
    assert done.returncode == 0
    assert "complete within the bounds" in done.stdout
    assert f"{paths[0].name} is not written" in done.stderr.replace("\n", "")
    assert not any(path.exists() for path in paths)


@pytest.mark.parametrize(
    "command",
    [
        ("test", "node", "--target", "process:no-such-program", "--html"),
        ("explore", "--changes", "1", "--drops", "0", "--scenario"),
    ],
)
def test_a_run_without_a_result_leaves_none_of_an_earlier_run(
    call: Call, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "result").write_text("of an earlier run", encoding="utf-8")
    call(*command, str(tmp_path / "result"))
    assert not (tmp_path / "result").exists()


def test_a_search_in_which_nothing_can_happen_says_so(call: Call, document: Document) -> None:
    nothing = ("explore", "--clients", "0", "--changes", "0", "--drops", "0", "--swallows", "0")
    code, found = document(*nothing, "--bound", "ip_clients=1")
    assert (code, found["verdict"], found["vacuous"]) == (3, "inconclusive", True)
    assert (found["distinct_states"], found["transitions"]) == (1, 0)
    assert not any(each["holds"] for each in found["properties"])
    assert "one state and no transition" in found["properties"][0]["message"]
    assert "nothing can happen within these bounds" in call(*nothing).stdout


@pytest.mark.parametrize(("bounds", "code"), [((), 3), (("--bound", "batches=1"), 1)])
def test_a_search_that_never_reaches_the_rule_of_its_mutant_decides_nothing(
    document: Document, bounds: tuple[str, ...], code: int
) -> None:
    found_code, found = document("explore", "--mutant", "B18", "--drops", "0", "--changes", "1", *bounds)
    messages = [each["message"] for each in found["properties"] if each["verdict"] == "not-judged"]
    assert (found_code, bool(messages)) == (code, code == 3)
    assert all("B18 changes nothing within these bounds; its own are" in each for each in messages)


def test_a_mutant_that_no_whole_search_without_it_can_be_compared_with_decides_nothing() -> None:
    limits_max = iter((Bounds().max_states, 1))

    def cut_at_the_second(system: System, limits: Limits, watch: Watch) -> Search:
        return search_compiled(system, replace(limits, max_states=next(limits_max)), watch)

    options = SearchOptions(cut_at_the_second)
    found = explore_profile("strict", Bounds(drops=0, changes=1), mutant="B18", search=options)
    assert found.exploration.complete
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "B18 was not compared with a whole search without it" in found.findings[0].message


def test_a_search_that_was_cut_short_is_inconclusive_and_names_the_limit(call: Call, document: Document) -> None:
    code, found = document("explore", "--max-states", "50")
    assert (code, found["complete"]) == (3, False)
    for option in ("--max-states", "--max-seconds"):
        summary = " ".join(call("explore", option, "0" if option == "--max-seconds" else "50").stdout.split())
        assert f"stopped before every state was reached: {option} (" in summary


@pytest.mark.wire
def test_test_node_gives_the_verdict_of_each_requirement(document: Document) -> None:
    asked = ("--requirement", "DISTRO-SYNC-001", "--requirement", "DISTRO-REVISION-001")
    code, found = document("test", "node", "--profile", "nacos-2.2.4", *asked)
    assert code == 0
    assert found["schema"] == "distrocheck/test-node/1"
    verdicts = {row["id"]: (row["level"], row["verdict"]) for row in found["requirements"]}
    assert verdicts["DISTRO-SYNC-001"] == ("MUST", "conforms")
    assert verdicts["DISTRO-REVISION-001"] == ("MUST", "known")  # B10
    code, found = document("test", "node", "--mutant", "B07", "--requirement", "DISTRO-OWNER-001")
    assert code == 1
    violated = {row["id"] for row in found["requirements"] if row["verdict"] == "violates"}
    assert "DISTRO-OWNER-001" in violated
    assert found["failure"]["requirement"] in violated


@pytest.mark.wire
@pytest.mark.quality
@pytest.mark.slow  # test_lockstep searches for the same failure; this tests the document
def test_test_cluster_saves_what_it_found(call: Call, document: Document, tmp_path: Path) -> None:
    code, found = document("test", "cluster", "--mutant", "B02", "--seed", "1", "--out", str(tmp_path))
    assert code == 1
    assert found["schema"] == "distrocheck/test-cluster/1"
    assert call("replay", found["failure"]["replay"]).returncode == 1
    assert Path(found["failure"]["pytest"]).exists()


def test_every_document_has_a_schema_and_the_file_is_one() -> None:
    import jsonschema  # noqa: PLC0415 - as in promises.py

    printed = set()
    kit = ROOT / "conformance"
    for module in (*(kit / "distro_conformance" / "cli").glob("*.py"), *(kit / "distro_interop").glob("*/verb.py")):
        text = module.read_text()
        printed |= set(re.findall(r'(?:(?:print_(?:json|judged)|search)\(\s*|verb: str = )"([a-z -]+)"', text))
    of_lines = {"audit-change"}  # a document for each line of `audit --follow --json`
    assert {verb.replace(" ", "-") for verb in printed} | {"list", "mutants"} | of_lines == DOCUMENTS.keys()
    for name in DOCUMENTS:
        written = json.loads((ROOT / "docs" / "schemas" / f"{name}.json").read_text())
        jsonschema.Draft202012Validator.check_schema(written)
        assert written == schema_of(name)


def test_a_schema_lets_a_new_field_pass_and_no_missing_one() -> None:
    import jsonschema  # noqa: PLC0415 - as in promises.py

    found = {"schema": "distrocheck/error/1", "error": "x", "exit_code": 2}
    found |= {"tool": {"version": "1", "command": "c", "date": "d"}, "new": 1}
    jsonschema.validate(found, schema_of("error"))
    with pytest.raises(jsonschema.ValidationError, match="'new' was unexpected"):
        hold(found, "error")
    del found["exit_code"]
    with pytest.raises(jsonschema.ValidationError, match="'exit_code' is a required property"):
        jsonschema.validate(found, schema_of("error"))


def test_validate_says_why_it_is_inconclusive(call: Call, tmp_path: Path) -> None:
    with Recorder(tmp_path, "r", profile="strict", target="test", nodes=["a"]) as recorder:
        recorder.record("a", Kind.NODE_STARTED, at_ms=0, detail="a")
    with recorder.path.open("a", encoding="utf-8") as file:
        file.write('{"run": "r"}\n{"run":')
    result = call("validate", str(recorder.path))
    assert result.returncode == 3
    assert "1 rows do not fit the schema (first: line 3, missing field node)" in result.stdout
    assert "cut in mid-line: line 4; everything before it was read" in result.stdout


@pytest.mark.wire
@pytest.mark.slow
def test_documents_about_traces_hold_to_their_schemas(document: Document, tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    assert document("simulate", "--duration-s", "60", "--clients", "2", "--out", str(traces))[0] == 0
    assert document("query", "SELECT count(*) AS events FROM events", str(traces))[0] == 0
    assert document("validate", str(traces))[1]["accepted"] is True
    assert document("export", str(traces), "--to", "mermaid", "--out", str(tmp_path / "run.mmd"))[0] == 0
    assert document("mutants", "run", "--mutant", "B02")[1]["score"] == 1.0
    assert document("doctor")[1]["checks"]


@pytest.mark.slow
@pytest.mark.wire
def test_a_differential_run_reports_each_difference_in_its_document(document: Document) -> None:
    same = ("test", "differential", "--target", "embedded", "--profile", "nacos-2.2.4", "--script", "distro-sync")
    assert document(*same)[0] == 0
    code, found = document(*same, "--mutant", "B02")
    assert (code, found["verdict"]) == (1, "violates")
    assert {each["script"] for each in found["differences"]} == {"distro-sync"}


@pytest.mark.wire
@pytest.mark.slow  # what an SDK sees is judged in test_sdks; here it is the document
def test_the_table_of_sdks_holds_to_its_schema(document: Document) -> None:
    code, found = document("test", "sdks", "--sdk", "python", "--scenario", "register")
    assert (code, [each["outcome"] for each in found["results"]]) == (0, ["pass"])


@pytest.mark.parametrize(
    ("release", "behaves_as"),
    [
        ("nacos-2.2.2", "nacos-2.2.4"),
        ("nacos-2.2.3.1", "nacos-2.2.4"),
        ("nacos-2.4.1", "nacos-2.4.0"),
        ("nacos-3.0.0", "nacos-3.0.3"),
        ("nacos-3.1.2", "nacos-3.1.0"),
    ],
)
def test_a_release_that_is_not_listed_is_explained_by_what_it_behaves_as(
    call: Call, release: str, behaves_as: str
) -> None:
    printed = call("explain", release).stdout.splitlines()
    assert printed[:2] == [f"{release} is not listed and behaves like {behaves_as}", f"{behaves_as} (profile)"]
    taken = call("explore", "--profile", release, "--max-states", "1").stderr
    assert f"{release} is judged as {behaves_as}, " in " ".join(taken.split())


def test_a_profile_that_is_listed_is_taken_for_itself(call: Call) -> None:
    for name in ("strict", "nacos-3.0.3"):
        assert call("explain", name).stdout.startswith(f"{name} (profile)\n")
    for name in PROFILES:
        assert known_profile(name) == name
        assert known_profile(None if name == "strict" else f"{name}-vendor.2") == (None if name == "strict" else name)
        assert listed_profile(name) == name


@pytest.mark.parametrize("what", ["requirements", "invariants", "mutants", "profiles", "targets"])
def test_everything_that_has_a_name_is_listed_and_explained(call: Call, document: Document, what: str) -> None:
    _, found = document("list", what)
    assert found["schema"] == "distrocheck/list/1" if what != "mutants" else "distrocheck/mutants/1"
    assert found[what]
    assert call("explain", found[what][0]["id"]).returncode == 0


def free_port() -> int:
    """Main port of the first of three nodes, below the ports of outgoing connections."""
    ports = free_main_ports(3)
    while ports != tuple(range(ports[0], ports[0] + 3 * PORT_STEP, PORT_STEP)):
        ports = free_main_ports(3)
    return ports[0]


@contextlib.contextmanager
def served(*options: str, nodes: int = 1) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """`distrocheck serve`, when it has said where its nodes are, with their addresses; it is gone afterwards."""
    command = [*COMMAND, "serve", "--nodes", str(nodes), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server, [json.loads(server.stdout.readline())["address"] for _ in range(nodes)]
        finally:
            server.kill()


def ended(server: subprocess.Popen[str], by: signal.Signals) -> str:
    """The text on stderr when the process has ended."""
    server.send_signal(by)
    _, errors = server.communicate(timeout=120)
    return errors


@pytest.mark.wire
@pytest.mark.slow
def test_a_reader_of_the_logs_of_a_real_server_reads_those_of_a_reference_node(
    document: Document, tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    with served("--port", str(free_port()), "--log-dir", str(logs), nodes=2) as (server, addresses):
        register = f"http://{addresses[0]}/nacos/v1/ns/instance?serviceName=web&ip=10.0.0.9&port=80"
        with urllib.request.urlopen(urllib.request.Request(register, method="POST")) as answer:
            assert answer.read() == b"ok"
        arrived = "[Client-Add] Received distro client sync data 10.0.0.9:80#true"
        assert within(30, lambda: any(arrived in path.read_text() for path in logs.rglob("*.log")))
        members = [word for address in addresses for word in ("--member", address)]
        assert document("audit", *members)[1]["clients"] == 1
        ended(server, signal.SIGINT)
    code, found = document("import", "nacos-logs", str(logs), "--out", str(tmp_path / "out"))
    assert (code, sorted(found["nodes"].values())) == (0, sorted(addresses))
    imported = str(tmp_path / "out")
    assert document("compact", imported, "--out", str(tmp_path / "parquet"))[1]["events"] == found["events"]
    events = [json.loads(line) for line in (tmp_path / "out" / "nacos-logs.ndjson").read_text().splitlines()]
    holders = {event["node"] for event in events if event.get("client") == "10.0.0.9:80#true" and event.get("digest")}
    assert holders == set(addresses)


@pytest.mark.wire
def test_serve_says_where_its_nodes_are_and_ends_when_interrupted(call: Call) -> None:
    port = free_port()
    with served("--port", str(port), nodes=3) as (server, addresses):
        assert addresses == [f"127.0.0.1:{port + 10 * index}" for index in range(3)]
        busy = call("serve", "--port", str(port))
        assert busy.returncode == 2
        assert f"port {port + 1000}" in busy.stderr
        ended(server, signal.SIGINT)
        assert server.returncode == 0


def test_serve_takes_the_file_of_a_real_server_and_ends_cleanly_on_sigterm(tmp_path: Path) -> None:
    port, file = free_port(), tmp_path / "application.properties"
    file.write_text(f"server.port=${{NO_SUCH_VARIABLE:{port}}}\ndb.num=1\ndistrocheck.stop.drain=true\n")
    with served("--config", str(file), "--log-format", "json", "--log-level", "INFO") as (server, addresses):
        assert addresses == [f"127.0.0.1:{port}"]
        notice, *logged = ended(server, signal.SIGTERM).splitlines()
    assert server.returncode == 0
    assert notice == "distrocheck: 'db.num' has no effect: the node keeps everything in memory"
    assert all(json.loads(line)["level"] == "INFO" for line in logged)


@pytest.mark.wire
@pytest.mark.parametrize("options", [(), ("--set", "nacos.standalone=true")])
def test_a_node_alone_has_no_cluster_to_wait_for(options: tuple[str, ...]) -> None:
    port = free_port()
    keys = ("nacos.naming.data.warmup=true", "nacos.core.protocol.distro.data.verify.intervalMs=50")
    with served("--port", str(port), *options, *(word for key in keys for word in ("--set", key))) as (server, _):
        console = f"http://127.0.0.1:{port}/nacos/v1/console"
        with urllib.request.urlopen(f"{console}/health/readiness") as ready:
            assert ready.status == 200
        with urllib.request.urlopen(f"{console}/server/state") as state:
            assert json.load(state)["standalone_mode"] == "standalone"
        time.sleep(0.2)  # some verify rounds, if there were any
        assert ended(server, signal.SIGTERM) == ""


@pytest.mark.parametrize("verb", [("check", ".", "--engine", "spark"), ("check", ".", "--master", "local[1]")])
def test_without_java_one_sentence_says_so(
    call: Call, verb: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "java").write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    (tmp_path / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    old = call(*verb)
    assert (old.returncode, old.stderr.count("\n")) == (2, 1)
    assert "is Java 11, the trace check needs 17 or later" in old.stderr
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    missing = call(*verb)
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)
    assert "no Java found" in missing.stderr


def jvms(session: int) -> list[int]:
    """The process ids of the Spark JVMs in a session of processes."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if b"pyspark-shell" in (entry / "cmdline").read_bytes() and os.getsid(int(entry.name)) == session:
                found.append(int(entry.name))
    return found


@pytest.mark.spark
@pytest.mark.skipif(sys.platform != "linux", reason="finds the JVM in /proc")
@pytest.mark.slow
def test_an_interrupt_while_the_jvm_starts_leaves_no_jvm(tmp_path: Path) -> None:
    with Recorder(tmp_path, "run", profile="strict", target="embedded"):
        pass
    # A process that a shell starts in the background ignores interrupts, these tests too.
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    command = [*COMMAND[:-1], heeding + COMMAND[-1], "check", str(tmp_path), "--engine", "spark"]
    with subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL) as checking:
        try:
            assert within(120, lambda: bool(jvms(checking.pid)))
            checking.send_signal(signal.SIGINT)
            assert checking.wait(120) == 130
            assert within(15, lambda: not jvms(checking.pid))
        finally:
            for process in [checking.pid, *jvms(checking.pid)]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    """Whether it came to hold in that time."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.slow
def test_check_finds_nothing_in_a_healthy_recording(document: Document) -> None:
    recording = ROOT / "conformance" / "tests" / "data" / "real-cluster-2.2.4"
    code, found = document("check", str(recording))
    assert code == 0
    assert found["schema"] == "distrocheck/check/1"
    violations = {each["name"]: each["violations"] for each in found["invariants"]}
    assert violations.keys() >= {"INV-CONV", "INV-OWNER", "INV-REV"}
    assert set(violations.values()) == {0}


def test_a_change_that_never_reached_a_member_is_said_without_a_checkpoint(call: Call, tmp_path: Path) -> None:
    with Recorder(tmp_path, "run", profile="strict", target="test", nodes=("a", "b", "c")) as recorder:
        for node in "abc":
            recorder.record(node, Kind.NODE_STARTED, at_ms=0, detail="a,b,c")
        recorder.record("a", Kind.CLIENT_CHANGED, at_ms=1000, client="c1", owned=True, revision=1, digest="X")
        recorder.record("b", Kind.REPLICA_APPLIED, at_ms=2000, client="c1", owned=False, revision=1, digest="X")
        recorder.record("c", Kind.REPLICA_APPLIED, at_ms=9000, client="c2", owned=False, revision=1, digest="X")
    result = call("check", str(tmp_path), "--convergence")
    assert "1 changes had not reached a member that was up when the recording ended:" in result.stdout
    assert "the change of c1 in client_changed of a at 1000 ms (seq 2) had not reached c" in result.stdout


def test_a_damaged_path_is_refused_before_spark_is_started(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "local_session", None)
    recording, hidden = tmp_path / "r.ndjson", tmp_path / "_later" / "r.ndjson"
    hidden.parent.mkdir()
    hidden.write_text("spoiled")
    for text, said in (
        (None, "no *.ndjson and no *.parquet below"),
        ("", "ended before its header"),
        ("spoiled\n", "not a distrocheck trace"),
        ('{"schema":"distrocheck-trace","version":99,"run":"r"}\n', "99"),
    ):
        if text is not None:
            recording.write_text(text)
        ran = call("check", str(tmp_path))
        assert (ran.returncode, ran.stderr.count("\n"), said in ran.stderr) == (2, 1, True), ran.stderr
    assert "neither .ndjson nor .parquet" in call("check", str(B02)).stderr


@pytest.mark.parametrize("shell", ["bash", *(pytest.param(each, marks=pytest.mark.slow) for each in ("zsh", "fish"))])
def test_a_shell_completes_verbs_and_loads_none_of_them(shell: str) -> None:
    """zsh is sent `"VERB":"what it does"` in its own syntax, fish a line with a tab, bash the verb."""

    def completed(words: str) -> list[str]:
        line = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_TYPER_COMPLETE_ARGS": words}
        asked = {"_DISTROCHECK_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args", **line}
        found = re.findall(
            r'^(?:_arguments .*\(\()?"?([a-z]+)(?="|\t|$)',
            executed(*COMMAND, env=os.environ | asked).stdout,
            re.MULTILINE,
        )
        return list(map(str, found))

    words, found = {"bash": ("distrocheck test no", ["node"])}.get(
        shell, ("distrocheck exp", ["explore", "export", "explain"])
    )
    assert completed(words) == found


def on_screen(monkeypatch: pytest.MonkeyPatch, name: str, *, is_terminal: bool) -> io.StringIO:
    """The later output of Rich's console of this name."""
    screen = io.StringIO()
    monkeypatch.setattr(
        console, name, console.PipedConsole(file=screen, force_terminal=is_terminal, width=100, height=25)
    )
    return screen


@pytest.mark.parametrize(
    ("parts", "seconds", "left"), [(1, 30.0, "about 90 s left"), (2, 600.0, "about 10 min left"), (0, 30.0, "")]
)
def test_progress_says_what_is_done_and_how_long_the_rest_takes(
    monkeypatch: pytest.MonkeyPatch, parts: int, seconds: float, left: str
) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: now)
    now = 0.0
    screen = on_screen(monkeypatch, "errors", is_terminal=True)
    with progress() as on_progress:
        on_progress("mutants: B02 [killed]")
        now = seconds
        on_progress.done(parts, of=4)
    assert "mutants: B02 [killed]" in screen.getvalue()
    assert ("left" in screen.getvalue()) == bool(left)
    assert left in screen.getvalue()


def test_progress_states_that_a_task_takes_longer_than_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 10.0)
    assert time_left(9.0) == "longer than expected"
    assert time_left(None) == ""


def test_progress_is_silent_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_screen(monkeypatch, "errors", is_terminal=False)
    with progress() as on_progress:
        on_progress.expect(4)
        on_progress("working")
        on_progress.done(1, of=4)
    assert screen.getvalue() == ""


def test_the_last_screen_begins_with_what_fails_and_ends_with_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_screen(monkeypatch, "output", is_terminal=False)
    printed = [ResultLine("not-judged", f"open {number}") for number in range(30)]
    printed += [
        ResultLine("conforms", "good"),
        ResultLine("known", "B10"),
        *(ResultLine("violates", f"bad {n}", ["why"]) for n in range(5)),
    ]
    summary(printed, "violates", "embedded: 1 met")
    above, last = screen.getvalue().split("\n\n")
    assert [line.split()[-1] for line in above.splitlines()[:4]] == ["good", "B10", "0", "why"]
    assert above.count("why") == 5
    lines = last.splitlines()
    assert [line.split()[-1] for line in lines[:6]] == ["0", "1", "2", "3", "4", "0"]
    assert len(lines) < 24
    assert "16 more, above" in lines[-2]
    assert lines[-1].split() == ["violates", "embedded:", "1", "met"]


def test_findings_that_fit_on_the_last_screen_are_shown_there_with_their_reasons(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen = on_screen(monkeypatch, "output", is_terminal=False)
    summary([ResultLine("not-judged", "open"), ResultLine("violates", "bad", ["why"])], "violates", "embedded: 1 met")
    assert [line.split()[-1] for line in screen.getvalue().strip().splitlines()] == ["bad", "why", "open", "met"]


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        (["audit", "--identity", "k=v", "--json"], f"distrocheck audit --identity '{HIDDEN}' --json"),
        (["audit", "--identity=k=v"], f"distrocheck audit '--identity={HIDDEN}'"),
        (["gate", "--password", "v", "--out=v"], f"distrocheck gate --password '{HIDDEN}' --out=v"),
    ],
)
def test_a_report_names_its_command_without_secrets(
    typed: list[str], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/bin/distrocheck", *typed])
    assert command_line() == named
