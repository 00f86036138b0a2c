"""The bugs of real servers that the kit finds, and the commands that show each today: docs/reference/track-record.md.

From the table of defects, the symptoms that requirements show of them, the scenarios that are named after a bug, the
releases that can be fetched, and what `tools/track_record.py` observed on real servers: each defect with a release in
which a reference node shows it, and the real servers that showed it last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import results

from distro_conformance.findings.symptoms import SYMPTOMS, RequirementSymptom
from distro_conformance.release import Span
from distro_conformance.requirements import all_requirements
from distro_conformance.targets.releases import RELEASES
from distro_conformance.verdict import UsageError
from distro_model.defects import DEFECTS
from distro_model.defects.symptom import of
from distro_model.release import parsed
from pages.markdown import Block, page

ASKED_ALWAYS = "2.2.4"
"""The release whose real servers run all checks in CI (`.ci/run`)."""

PICTURES = {"B02": "lost-change.svg", "B24": "swallowed-delete.svg"}

NAMED_IN_PROTOCOL = {"D6": "B16-unhandled"}
"""The result of a scenario that has the name of the defect in docs/protocol."""

SEEN, NOT_SEEN = "seen", "not seen"


def name_of(by: str, release: str) -> str:
    """The name of a row: the requirement or scenario, and the release."""
    return f"{by} {release}"


def has_bug(by: str, release: str) -> tuple[bool, bool]:
    """Whether the defect is listed for that release with a requirement's or scenario's result, and shows each time."""
    profile = f"nacos-{release}"
    symptoms = of(SYMPTOMS, by, profile)
    made_for = [own for paths in bug_scenarios().values() for path, own in paths if path == by]
    if made_for:
        return True, release in made_for
    return bool(symptoms), not any(each.needs_a_race for each in symptoms)


def track_record_page() -> str:
    blocks: list[Block] = [_HEAD]
    for bug in sorted({*(each.bug for each in SYMPTOMS), *bug_scenarios()}):
        blocks += [f"## {bug}", _bug(bug)]
    return page("Track record", *blocks)


def _bug(bug: str) -> Iterator[str]:
    texts = {requirement.id: requirement.text for requirement in all_requirements()}
    defect, symptoms = DEFECTS[bug], [each for each in SYMPTOMS if each.bug == bug]
    known_to = "" if defect.releases and defect.releases.until else f", known up to {defect.last_seen}"
    yield f"{defect.sentence} ({defect.releases}{known_to}). [Reported or read here]({defect.link})."
    yield ""
    wanted: dict[str, list[tuple[str, RequirementSymptom]]] = {}
    for symptom in symptoms:
        release = _release_for(symptom.span) if symptom.on_reference_node else None
        for name in symptom.about:
            yield f"* {name}{f': {symptom.sentence}' if symptom.sentence else ''}"
            yield f"    * expected: {texts[name]}"
            yield f"    * symptom: {'; '.join(clause.sentence for clause in symptom.clauses)}"
            yield from _tried(name)
            if release is not None:
                wanted.setdefault(release, []).append((name, symptom))
    commands = [line for release, each in wanted.items() for line in _asked(release, each)]
    for path, release in bug_scenarios().get(bug, ()):
        yield f"* `{path}`"
        yield from _tried(path)
        commands += [f"$ distrocheck replay {path}", "...", f"violates {path} on embedded, profile nacos-{release}"]
    if bug in PICTURES:
        yield from ("", f"![the run](../explanation/{PICTURES[bug]})")
    if commands:
        yield from ("", "```console", *commands, "```")


def _asked(release: str, rows: Sequence[tuple[str, RequirementSymptom]]) -> Iterator[str]:
    """The command on a reference node that behaves as that release, and what it prints."""
    options = "".join(f" --requirement {name}" for name, _ in rows)
    yield f"$ distrocheck test node --profile nacos-{release}{options}"
    for name, each in rows:
        yield from ("...", f"known {name} known, {each.bug} ({each.text}): ...")
    yield from ("...", f"conforms embedded: 0 met, {len(rows)} fail as known, 0 not judged; ...")


def in_real_time(path: str) -> bool:
    """Whether a real server can be judged by it: the model can follow step by step only a node with its clock."""
    return "expect model agrees" not in (results.ROOT / path).read_text("utf-8")


def _tried(by: str) -> Iterator[str]:
    """The last runs that looked for it, and their results."""
    kept = results.kept(results.TRACK_RECORD)
    rows = {name.removeprefix(name_of(by, "")): row for name, row in kept.items() if name.startswith(name_of(by, ""))}
    rows = dict(sorted(rows.items(), key=lambda each: parsed(each[0])))
    if not rows:
        return
    answers = dict.fromkeys(row["answer"] for row in rows.values())
    servers = [
        f"{each} on {', '.join(name for name, row in rows.items() if row['answer'] == each)}" for each in answers
    ]
    yield f"    * real servers, last asked {max(row['date'] for row in rows.values())}: {'; '.join(servers)}"


def _release_for(span: Span) -> str | None:
    """The release that is checked on every change, or the newest that can be fetched."""
    fetched = (ASKED_ALWAYS, *reversed(RELEASES))
    return next((release for release in fetched if f"nacos-{release}" in span), None)


def bug_scenarios() -> dict[str, list[tuple[str, str]]]:
    """Bug -> paths of its scenarios, each with the release in its profile line."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path in sorted((results.ROOT / "scenarios").glob("[bd][0-9]*-*.scenario")):
        profile = next(line.split()[1] for line in path.read_text("utf-8").splitlines() if line.startswith("profile "))
        release = profile.removeprefix("nacos-")
        if release not in RELEASES:
            raise UsageError(f"{path}: {profile} cannot be fetched")
        name = path.name.partition("-")[0].upper()
        found.setdefault(NAMED_IN_PROTOCOL.get(name, name), []).append((f"scenarios/{path.name}", release))
    return found


_HEAD = (
    "Bugs of released servers that the requirements and scenarios of this repository reproduce. The commands below run",
    "on a reference node that behaves like the release. For a real server, replace `--profile nacos-2.2.4` by",
    "`--target nacos:2.2.4`, or add that to `replay`; for a release that Maven does not have (2.5.1), name a",
    "[distribution](../how-to/nacos-from-source.md). Each requirement fails with the listed symptom of the bug,",
    f"and is met by releases without it. CI tests a real {ASKED_ALWAYS} against all requirements on every change;",
    "`make nightly` tests the other releases, and the scenarios. A scenario with exact times (`expect model agrees`)",
    "runs on reference nodes only; on a real server the requirement shows the bug.",
    "The names B.. are those of the [mutants](mutants.md).",
)
