"""What each `--json` document is made of: one entry a verb, from which `docs/schemas` is written.

A promise to scripts: what stands here stays, under its name and of its type. Fields may be added, so a schema lets
more pass; the tests let nothing more pass, so that no field is printed that is not promised.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from distro_conformance.findings import Judgement, Level
from distro_conformance.verdict import Verdict

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
NUMBER: Final[Schema] = {"type": "number"}
YES_OR_NO: Final[Schema] = {"type": "boolean"}
ANYTHING: Final[Schema] = {}


def one_of(values: type[Verdict | Judgement | Level]) -> Schema:
    return {"enum": [each.value for each in values]}


def maybe(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def many(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def by_name(schema: Schema) -> Schema:
    return {"type": "object", "additionalProperties": schema}


def fields(optional: Mapping[str, Schema] | None = None, /, **required: Schema) -> Schema:
    return {"type": "object", "required": list(required), "properties": {**required, **(optional or {})}}


TOOL = fields(version=TEXT, command=TEXT, date={"type": "string", "format": "date-time"})
VERDICT = one_of(Verdict)
FINDING = fields(
    {
        "source": TEXT,
        "releases": TEXT,
        "kind": TEXT,
        "bounds": TEXT,
        "steps": COUNT,
        "steps_until_found": COUNT,
        **dict.fromkeys(("script", "step", "path"), TEXT),
        **dict.fromkeys(("real", "ours"), ANYTHING),
        **dict.fromkeys(("seen", "of"), COUNT),
        "gone": YES_OR_NO,
    },
    id=TEXT,
    by=TEXT,
    level=one_of(Level),
    verdict=one_of(Judgement),
    text=TEXT,
    message=TEXT,
    expected=TEXT,
    observed=by_name(ANYTHING),
    run=maybe(TEXT),
    node=maybe(TEXT),
    client=maybe(TEXT),
    since=maybe(TEXT),
    until=maybe(TEXT),
    after=maybe(TEXT),
    evidence=many(TEXT),
    known=maybe(TEXT),
    link=maybe(TEXT),
    again=TEXT,
    seconds=NUMBER,
    times=COUNT,
)
FINDINGS = many(FINDING)
JUDGED = {
    "verdict": VERDICT,
    "headline": TEXT,
    "target": TEXT,
    "profile": maybe(TEXT),
    "seconds": NUMBER,
    "findings": FINDINGS,
}
"""What every verb says that makes findings and nothing but them."""
DIFFERENCE = fields(
    script=TEXT, step=TEXT, path=TEXT, real=ANYTHING, ours=ANYTHING, seen=COUNT, of=COUNT, gone=YES_OR_NO
)
ENTRY = {**fields(id=TEXT, text=TEXT), "additionalProperties": TEXT}
ENTRIES = many(ENTRY)
EVENT = fields(node=TEXT, seq=COUNT, at_ms=COUNT, kind=TEXT, message=maybe(TEXT))
FAILURE = fields(
    {
        "message": TEXT,
        "steps_until_found": COUNT,
        "seconds_until_found": NUMBER,
        "pytest": TEXT,
    },
    requirement=TEXT,
    steps=COUNT,
    replay=TEXT,
)
STAGE = fields(name=TEXT, verdict=VERDICT, seconds=NUMBER, summary=TEXT, figures=by_name(ANYTHING))
PROPERTY = fields(
    name=TEXT,
    kind=TEXT,
    holds=maybe(YES_OR_NO),
    steps=maybe(COUNT),
    run=maybe(
        fields(steps=many(fields(transition=TEXT, changes=many(TEXT))), loop_from=maybe(COUNT)),
    ),
    verdict=one_of(Judgement),
    message=TEXT,
    known=maybe(TEXT),
)
TOURS = fields(
    edges=COUNT,
    covered=COUNT,
    walks=COUNT,
    whole=COUNT,
    left_out=COUNT,
    cut_short=by_name(COUNT),
    graphs=many(fields(name=TEXT, bounds=TEXT, states=COUNT, edges=COUNT, covered=COUNT, walks_planned=COUNT)),
)
HELD = fields(
    member=TEXT, held=YES_OR_NO, revision=maybe(COUNT), digest=maybe(TEXT), published=many(ANYTHING), stuck=YES_OR_NO
)
_GATE = fields(
    verdict=VERDICT,
    headline=TEXT,
    scope=TEXT,
    target=TEXT,
    profile=TEXT,
    mutant=maybe(TEXT),
    budget=TEXT,
    seed=COUNT,
    seconds=NUMBER,
    stages=many(STAGE),
    requirements=FINDINGS,
    invariants=many(fields(name=TEXT, by=TEXT, verdict=one_of(Judgement), violations=COUNT, known=COUNT, message=TEXT)),
    findings=FINDINGS,
    failures=many(fields(title=TEXT, scenario=TEXT, replay=TEXT, pytest=TEXT, recording=TEXT, shrunk=TEXT)),
    convergence=by_name(maybe(NUMBER)),
    changes=many(fields(node=TEXT, what=TEXT, ms=maybe(COUNT), last=TEXT)),
    coverage=by_name(by_name(COUNT)),
    traces=TEXT,
    report=TEXT,
)
_CHECK = fields(
    verdict=VERDICT,
    reasons=many(TEXT),
    runs=COUNT,
    runs_with_checkpoint=COUNT,
    events=COUNT,
    quarantined=COUNT,
    quarantine=many(fields(reason=TEXT, rows=COUNT, file=TEXT, line=maybe(COUNT))),
    cuts=many(fields(file=TEXT, line=COUNT)),
    missing=COUNT,
    doubled=COUNT,
    invariants=many(
        fields(
            name=TEXT,
            text=TEXT,
            verdict=one_of(Judgement),
            violations=COUNT,
            known=COUNT,
            seconds=NUMBER,
            clients=COUNT,
            undecided=COUNT,
        )
    ),
    violations=many(
        fields(
            invariant=TEXT,
            run=TEXT,
            profile=TEXT,
            client=TEXT,
            node=TEXT,
            first_event=EVENT,
            last_event=EVENT,
            evidence=by_name(TEXT),
            message=TEXT,
            known=maybe(TEXT),
            expected=TEXT,
            after=maybe(TEXT),
        )
    ),
    violations_left_out=COUNT,
    convergence=maybe(by_name(maybe(NUMBER))),
    changes=many(fields(run=TEXT, client=TEXT, event=EVENT, node=TEXT, ms=maybe(COUNT))),
    changes_left_out=COUNT,
    replay=maybe(
        fields(
            rejected=COUNT,
            undecided=COUNT,
            rejections=many(fields(run=TEXT, client=maybe(TEXT), event=EVENT, guards=many(TEXT))),
            rejections_left_out=COUNT,
        )
    ),
    findings=FINDINGS,
    seconds=NUMBER,
)

DOCUMENTS: Mapping[str, Schema] = {
    "error": fields(error=TEXT, exit_code={"enum": [2, 3, 4, 70, 130]}),
    "gate": _GATE,
    "check": _CHECK,
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
        steps=many(fields(line=COUNT, text=TEXT, at_ms=COUNT, outcome=TEXT)),
        findings=FINDINGS,
    ),
    "simulate": fields(
        events=COUNT,
        seconds=NUMBER,
        path=TEXT,
        runs=COUNT,
        checkpoints=COUNT,
        simulated_s=NUMBER,
        nodes=COUNT,
        clients=COUNT,
        seed=COUNT,
        faults=many(TEXT),
        profile=TEXT,
        mutant=maybe(TEXT),
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
        {"tours": TOURS, "coverage": by_name(by_name(COUNT))},
        verdict=VERDICT,
        target=TEXT,
        profile=TEXT,
        mutant=maybe(TEXT),
        steps=COUNT,
        runs=COUNT,
        seconds=NUMBER,
        seed=COUNT,
        steps_over=by_name(COUNT),
        requirements=FINDINGS,
        findings=FINDINGS,
        failure=maybe(FAILURE),
    ),
    "test-sdks": fields(
        **JUDGED,
        results=many(fields(sdk=TEXT, scenario=TEXT, outcome=TEXT, seconds=NUMBER, reason=TEXT)),
    ),
    "validate": fields(
        accepted=YES_OR_NO,
        events=COUNT,
        undecided=COUNT,
        seconds=NUMBER,
        rejection=maybe(
            fields(
                event=by_name(ANYTHING),
                candidates=many(fields(transition=TEXT, guard=TEXT, expected=ANYTHING, seen=ANYTHING)),
                minimal=many(by_name(ANYTHING)),
            )
        ),
        verdict=VERDICT,
        run=TEXT,
        profile=TEXT,
    ),
    "audit": fields(
        verdict=VERDICT,
        members=many(
            fields(
                member=TEXT,
                source=maybe(TEXT),
                clients=COUNT,
                release=maybe(TEXT),
                peers=by_name(ANYTHING),
                error=maybe(TEXT),
            )
        ),
        clients=COUNT,
        diverged=many(fields(client=TEXT, since=TEXT, seen_for_s=NUMBER, members=many(HELD))),
        rounds=COUNT,
    ),
    "compact": fields(events=COUNT, files=COUNT, seconds=NUMBER, path=TEXT, manifest=TEXT),
    "query": fields(columns=many(TEXT), rows=many(many(ANYTHING))),
    "export": fields(format=TEXT, run=TEXT, events=COUNT, path=TEXT),
    "import-nacos-logs": fields(
        events=COUNT,
        skipped=by_name(COUNT),
        path=TEXT,
        nodes=by_name(TEXT),
        profile=TEXT,
        limits=many(TEXT),
    ),
    "doctor": fields(checks=many(fields(name=TEXT, good=YES_OR_NO, found=TEXT, advice=TEXT))),
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


def closed(schema: Any) -> Any:
    """The same that lets no further field pass."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: closed(value) for key, value in schema.items()}
    if schema.get("type") == "object" and "properties" in schema:
        inner.setdefault("additionalProperties", False)
    return inner
