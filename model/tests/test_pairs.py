"""All pairs of budgets, and the nightly search over them that goes on where it was interrupted."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest
import searches as program
from pairs import BUDGETS, pairs

from distro_model.bounded.bounds import Bounds
from distro_model.defects.table import DEFECTS

SIZES = {"nodes", "clients", "ip_clients", "changes", "services", "in_flight", "max_states", "lease_periods"}
UNPAIRED = {
    "suspicions": "how many failures it takes is no event",
    "event_queue": "comes with lost_events too",
}


def test_every_budget_is_in_a_pair_with_every_other():
    names = {each.name for each in fields(Bounds)} - SIZES - UNPAIRED.keys()
    assert names <= set(BUDGETS)
    found = [each.name.partition(",")[0] for each in pairs()]
    assert len(set(found)) == len(BUDGETS) * (len(BUDGETS) - 1) // 2


def test_a_pair_has_both_kinds_of_client_unless_a_budget_is_about_one():
    named = {each.name: each.bounds for each in pairs()}
    assert named["drops + periods, a client of the HTTP API"].ip_clients == 1
    assert named["drops + periods, a client of a connection"].clients == 1
    both = named["id_collisions + lapses, a client of a connection and one of the HTTP API"]
    assert (both.clients, both.ip_clients, both.id_collisions, both.lapses) == (1, 1, 1, 2)


def test_a_pair_that_contradicts_itself_says_why():
    contradictions = {each.name.partition(",")[0]: each.contradiction for each in pairs() if each.bounds is None}
    assert contradictions.keys() == {
        "crashes + operator_changes",
        "stays_down + operator_changes",
    }
    assert "metadata is in no node's memory alone" in contradictions["crashes + operator_changes"]


@pytest.fixture
def searches(tmp_path, capsys):
    """The program: options -> exit code, what it prints, its progress. One table for all calls."""

    def run(*options):
        code = program.main(["--table", str(tmp_path / "searches.json"), *options])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


ONE = ("--only", "drops + lost_replies, a client of the HTTP API")


def test_a_search_that_is_over_is_not_searched_again(searches, tmp_path):
    code, said, on_the_way = searches(*ONE)
    assert (code, said) == (0, "1 searches, 1 whole; 0 broken, 0 not decided, 0 left\n")
    assert "38 states" in on_the_way
    assert searches(*ONE) == (0, said, "")
    table = tmp_path / "searches.json"
    table.write_text(table.read_text().replace('"source": "', '"source": "another'))
    assert "38 states" in searches(*ONE)[2]


def test_searches_cut_short_or_left_are_named(searches):
    code, said, _ = searches(*ONE, "--pair-states", "10", "--json")
    assert code == 3
    document = json.loads(said)
    assert document["headline"] == "1 searches, 0 whole; 0 broken, 1 not decided, 0 left"
    assert "stopped: max-states" in document["named"][0]
    left = searches("--only", "drops + swallows, a client of the HTTP API", "--seconds", "0")
    assert left == (3, "0 searches, 0 whole; 0 broken, 0 not decided, 1 left\n", "")


def test_a_contradiction_is_reported_and_not_searched(searches):
    code, said, on_the_way = searches("--only", "crashes + operator_changes")
    assert (code, said) == (0, "0 searches, 0 whole; 0 broken, 0 not decided, 0 left\n")
    assert "not searched, metadata is in no node's memory alone" in on_the_way


A_RELEASE = ("--releases", "--only", "nacos-3.0.3: a lost and a swallowed request")
DELETE = "INV-DELETE, EVENTUALLY-DELETE"


def test_a_violation_of_a_release_is_known_where_its_listed_defects_explain_it(searches):
    code, printed, progress = searches(*A_RELEASE)
    assert (code, printed) == (0, "1 searches, 1 whole; 0 broken, 0 not decided, 0 left\n")
    assert f"whole; known: {DELETE}" in progress


@pytest.mark.parametrize("missing", [("B24",), ("B24", "B27")], ids=" ".join)
def test_a_violation_of_a_release_is_broken_without_an_entry_for_each_cause(searches, monkeypatch, missing):
    listed = {name: row for name, row in DEFECTS.items() if name not in missing}
    monkeypatch.setattr("distro_model.defects.search.DEFECTS", listed)
    code, printed, _ = searches(*A_RELEASE)
    assert code == 1
    assert f"BROKEN {DELETE}" in printed
