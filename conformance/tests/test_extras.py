"""The base install is light: a verb names a missing package with the extra that brings it."""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import requires

import pytest
from programs import Ran, executed

from distro_conformance.cli import COMMAND, VERBS
from distro_conformance.extras import EXTRAS

BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
sys.argv = ["distrocheck", *{arguments}]
from distro_conformance.cli import main
"""

ONE_AFTER_THE_OTHER = """
import contextlib, io, json
for verb in {verbs}:
    sys.argv[1:], code = verb.split(), None
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
    print(json.dumps([verb, [code, errors.getvalue()]]))
"""
"""What is blocked stays so: a verb loads nothing for the next one that it could not load itself."""

FOR_EACH = """
import os
for verb in {verbs}:
    os.environ["COMP_WORDS"] = f"distrocheck {{verb}} --h"
    if os.fork() == 0:
        main()
    os.wait()
    os.write(1, b";")
"""
"""Loaded once: forks the process that has loaded the command."""


def run_without_extras(*arguments: str, calls: str = "main()") -> Ran:
    """The command line where none of the extras is installed."""
    program = BLOCKED.format(blocked=set(EXTRAS), arguments=list(arguments)) + calls
    return executed(sys.executable, "-c", program)


def test_the_table_says_what_the_package_metadata_says() -> None:
    declared = set()
    for requirement in requires("distrocheck") or []:
        found = re.match(r"([\w-]+)[^;]*;.*extra == ['\"](explore|report|traces|spark|tls)['\"]", requirement)
        if found and found[1] != "distrocheck":
            declared.add((found[1], found[2]))
    assert {module for module, _ in declared} == EXTRAS.keys()
    assert set(EXTRAS.items()) <= declared


WORKS = ("--version", "list requirements", "explain B24", "replay --help", "test node --requirement DISTRO-SYNC-001")
LACKS = {
    "explore --nodes 2": "explore",
    "simulate --out somewhere --duration-s 10": "traces",
    "check .": "traces",
    "gate": "explore,report,traces",
    "mutants run --mutant B02": "explore,traces",
}


@pytest.mark.slow
def test_a_verb_works_without_any_extra_or_says_which_one_it_lacks() -> None:
    done = run_without_extras(calls=ONE_AFTER_THE_OTHER.format(verbs=[*WORKS, *LACKS]))
    ended = dict(json.loads(line) for line in done.stdout.splitlines())
    assert {verb: ended[verb] for verb in WORKS if ended[verb][0] != 0} == {}
    for verb, extra in LACKS.items():
        code, errors = ended[verb]
        assert code == 2, errors
        assert "Traceback" not in errors
        assert re.search(rf"pip install 'distrocheck\[({extra}|traces)\]'", errors), errors


@pytest.mark.slow
def test_a_shell_completes_every_verb_without_any_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each in a process of its own, as a shell asks; nothing but the answer is printed."""
    verbs = [verb for verb, (module, _) in VERBS[COMMAND].items() if module]
    monkeypatch.setenv("_DISTROCHECK_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_CWORD", "2")
    done = run_without_extras(calls=FOR_EACH.format(verbs=verbs))
    assert (done.returncode, done.stderr) == (0, "")
    assert [each.split()[-1:] for each in done.stdout.split(";")] == [["--help"]] * len(verbs) + [[]]
