"""The schema of each `--json` document, one entry for each verb: `docs/schemas` is generated from them.

A field that a verb prints unchanged has the schema of its type; this file lists the fields that a verb forms itself.
Scripts rely on docs/schemas: a field keeps its name and its type. Fields may be added, so a schema allows others; the
tests do not, so that each printed field is in a schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from json_schema import (
    ANYTHING,
    COUNT,
    NUMBER,
    TEXT,
    YES_OR_NO,
    Schema,
    both,
    by_name,
    fields,
    many,
    maybe,
    of_fields,
    of_type,
)

from distro_conformance.audit.cluster_view import Disagreement
from distro_conformance.audit.compare import Audited, Diverged, DivergedList
from distro_conformance.audit.member import Reading
from distro_conformance.doctor import Check
from distro_conformance.findings import Finding, Judged, Judgement
from distro_conformance.report.document import Failure, InvariantRow, Report
from distro_conformance.simulation.run import Simulated, SimulationOptions
from distro_conformance.verdict import Verdict
from distro_conformance.walks.result import GraphCoverage
from distro_interop.differential.compare import Difference
from distro_spark.result import CheckResult
from distro_traces.nacos_logs.importer import Imported
from distro_traces.unreached import Unreached
from distro_validation.validate import Validated
from distro_validation.verdict import Rejection

TOOL = fields(version=TEXT, command=TEXT, date={"type": "string", "format": "date-time"})
VERDICT, JUDGEMENT = of_type(Verdict), of_type(Judgement)
_FINDING = of_fields(Finding, "about", "judgement", "details", id=TEXT, verdict=JUDGEMENT)
_DETAILS: dict[str, Schema] = {
    **dict.fromkeys(("source", "releases", "kind", "bounds", "script", "step", "path"), TEXT),
    **dict.fromkeys(("steps", "steps_until_found", "seen", "of", "fired"), COUNT),
    **dict.fromkeys(("real", "ours"), ANYTHING),  # codespell:ignore ours
    "by_source": by_name(many(TEXT)),
    "points_at_the_first": by_name(YES_OR_NO),
    "gone": YES_OR_NO,
}
FINDING = {**_FINDING, "properties": {**_FINDING["properties"], **_DETAILS}}
FINDINGS = many(FINDING)
JUDGED = of_fields(Judged, "figures", verdict=VERDICT, headline=TEXT, findings=FINDINGS)["properties"]
"""The fields of every verb whose result is a list of findings."""
DIFFERENCE = of_fields(Difference, seen=COUNT, of=COUNT, gone=YES_OR_NO)
READING = of_fields(Reading, source=maybe(TEXT), clients=COUNT, peers=by_name(ANYTHING), lists=COUNT)
ENTRY = {**fields(id=TEXT, text=TEXT), "additionalProperties": TEXT}
ENTRIES = many(ENTRY)
FAILURE = fields(
    {
        "message": TEXT,
        "steps_until_found": COUNT,
        "seconds_until_found": NUMBER,
        "pytest": TEXT,
        "logs": maybe(TEXT),
    },
    requirement=TEXT,
    steps=COUNT,
    replay=TEXT,
)
PROPERTY = fields(
    name=TEXT,
    kind=TEXT,
    holds=maybe(YES_OR_NO),
    steps=maybe(COUNT),
    run=maybe(
        fields(steps=many(fields(transition=TEXT, changes=many(TEXT))), loop_from=maybe(COUNT)),
    ),
    verdict=JUDGEMENT,
    message=TEXT,
    known=maybe(TEXT),
)
TOURS = fields(
    **dict.fromkeys(("edges", "covered", "walks", "whole", "left_out"), COUNT),
    cut_short=by_name(COUNT),
    graphs=many(of_fields(GraphCoverage, bounds=TEXT)),
)
HELD = fields(
    member=TEXT, held=YES_OR_NO, revision=maybe(COUNT), digest=maybe(TEXT), published=many(ANYTHING), stuck=YES_OR_NO
)
_GATE = of_fields(
    Report,
    *("charts", "origin"),
    headline=TEXT,
    seed=COUNT,
    failures=many(of_fields(Failure, "diagram")),
    findings=FINDINGS,
    requirements=FINDINGS,
    invariants=many(of_fields(InvariantRow)),
    convergence=by_name(maybe(NUMBER)),
    changes=many(fields(node=TEXT, what=TEXT, ms=maybe(COUNT), last=TEXT)),
    report=TEXT,
)

DOCUMENTS: Mapping[str, Schema] = {
    "error": fields(error=TEXT, exit_code={"enum": [2, 3, 4, 70, 130]}),
    "gate": _GATE,
    "check": of_fields(CheckResult, findings=FINDINGS, unreached=many(of_fields(Unreached))),
    "explore": fields(
        profile=TEXT,
        mutant=maybe(TEXT),
        bounds=TEXT,
        verdict=VERDICT,
        complete=YES_OR_NO,
        stopped=maybe(TEXT),
        vacuous=YES_OR_NO,
        distinct_states=COUNT,
        transitions=COUNT,
        levels=COUNT,
        collision_probability=maybe(NUMBER),
        seconds=NUMBER,
        properties=many(PROPERTY),
        findings=FINDINGS,
        coverage=by_name(COUNT),
        guards=by_name(by_name(COUNT)),
        never_taken=many(TEXT),
        scenarios=by_name(TEXT),
    ),
    "test-node": fields(
        {
            "start_seconds": NUMBER,  # of requirements; the others are those of --machine
            "coverage": by_name(by_name(COUNT)),
            "not_judged": by_name(COUNT),
            "steps_over": by_name(COUNT),
            "runs": COUNT,
            "seed": COUNT,
        },
        **JUDGED,
        mutant=maybe(TEXT),
        requirements=FINDINGS,
        failure=maybe(FAILURE),
        steps=COUNT,
    ),
    "replay": fields(
        verdict=VERDICT,
        reproduced=YES_OR_NO,
        target=TEXT,
        profile=TEXT,
        mutant=maybe(TEXT),
        steps=many(
            fields(
                line=COUNT,
                text=TEXT,
                at_ms=COUNT,
                outcome=TEXT,
                verdict=VERDICT,
                held_from_ms=maybe(COUNT),
                held_to_ms=maybe(COUNT),
                detail=TEXT,
            )
        ),
        findings=FINDINGS,
    ),
    "simulate": both(
        of_fields(Simulated, path=TEXT), of_fields(SimulationOptions, "out", "duration_s", faults=many(TEXT))
    ),
    "mutants": fields(mutants=ENTRIES),
    "mutants-run": fields(
        **JUDGED,
        mutants=many(
            fields(
                id=TEXT,
                level=TEXT,
                killed=YES_OR_NO,
                killed_by=many(TEXT),
                seconds=NUMBER,
                steps=maybe(COUNT),
                fired=maybe(COUNT),
                reason=TEXT,
            )
        ),
        score=NUMBER,
    ),
    "list": fields(dict.fromkeys(("requirements", "invariants", "profiles", "targets"), ENTRIES)),
    "explain": fields(id=TEXT, entries=ENTRIES),
    "test-differential": fields(
        **JUDGED,
        exchanges=COUNT,
        differences=many(DIFFERENCE),
        unrepeated=many(DIFFERENCE),
        played_again=many(TEXT),
        deviations=many(fields(id=TEXT, differences=COUNT)),
        unused=many(TEXT),
    ),
    "test-cluster": fields(
        {"tours": TOURS, "coverage": by_name(by_name(COUNT)), "not_judged": by_name(COUNT)},
        **{**JUDGED, "profile": TEXT},
        mutant=maybe(TEXT),
        steps=COUNT,
        runs=COUNT,
        seed=COUNT,
        steps_over=by_name(COUNT),
        requirements=FINDINGS,
        failure=maybe(FAILURE),
    ),
    "test-sdks": fields(
        **JUDGED,
        results=many(fields(sdk=TEXT, scenario=TEXT, outcome=TEXT, seconds=NUMBER, reason=TEXT)),
    ),
    "validate": of_fields(
        Validated,
        rejection=maybe(of_fields(Rejection, event=by_name(ANYTHING), minimal=many(by_name(ANYTHING)))),
        verdict=VERDICT,
        run=TEXT,
        profile=TEXT,
    ),
    "audit": of_fields(
        Audited,
        *("readings", "once"),
        verdict=VERDICT,
        reasons=many(TEXT),
        members=many(READING),
        diverged=many(of_fields(Diverged, since=TEXT, members=many(HELD))),
        disagreements=many(of_fields(Disagreement, since=TEXT, views=by_name(TEXT), is_violation=YES_OR_NO, text=TEXT)),
        diverged_lists=many(of_fields(DivergedList, since=TEXT, members=by_name(many(TEXT)), text=TEXT)),
    ),
    "audit-change": fields(
        at=TEXT, change=TEXT, what=TEXT, subject=TEXT, since=maybe(TEXT), seen_for_s=maybe(NUMBER), text=TEXT
    ),
    "compact": fields(events=COUNT, files=COUNT, seconds=NUMBER, path=TEXT, manifest=TEXT),
    "query": fields(columns=many(TEXT), rows=many(many(ANYTHING))),
    "export": fields(format=TEXT, run=TEXT, events=COUNT, path=TEXT),
    "import-nacos-logs": of_fields(Imported, path=TEXT),
    "fetch-nacos": fields(version=TEXT, coordinates=TEXT, directory=TEXT),
    "doctor": fields(checks=many(of_fields(Check))),
}
"""By the middle part of the name that the document gives itself: `distrocheck/NAME/1`."""


def schema_of(name: str) -> Schema:
    """The whole schema of one document."""
    body = DOCUMENTS[name]
    common = {"schema": {"const": f"distrocheck/{name}/1"}, "tool": TOOL}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"distrocheck/{name}/1",
        **body,
        "required": ["schema", *body["required"], "tool"],
        "properties": {**common, **body["properties"]},
    }


def files() -> Iterator[tuple[str, str]]:
    """Name and text of each file of docs/schemas."""
    for name in sorted(DOCUMENTS):
        yield f"{name}.json", json.dumps(schema_of(name), indent=2) + "\n"
