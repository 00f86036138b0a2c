"""All named things (requirements, invariants, mutants, profiles, rules, targets) as entries of one form.

`list`, `explain` and the reference pages print these entries. Each registry stays in its own package; this module only
reads them, so what is added to a registry is printed everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from distro_conformance.drivers.registry import FORMS
from distro_conformance.findings.symptoms import SYMPTOMS
from distro_conformance.node_mutants import MUTANTS as NODE_MUTANTS
from distro_conformance.release import STRICT, release_of
from distro_conformance.requirements import all_requirements
from distro_conformance.targets.mutants import real_mutants
from distro_impl import PROFILES as NODE_PROFILES
from distro_model.defects import DEFECTS
from distro_model.mutants import MUTANTS as MODEL_MUTANTS
from distro_model.profiles import PROFILES as MODEL_PROFILES
from distro_model.profiles import RELEASES, Profile
from distro_model.properties import PROPERTIES
from distro_model.rules.rule import RULES, Function, Rule, asked_by, is_own, name_of, sentence_of

_CITATION = re.compile(r"(?<!\.md)#([a-z0-9]+(?:-[a-z0-9]+)+)")


@dataclass(frozen=True, slots=True)
class Entry:
    """A named thing. `text`: its sentence; `details`: the other data that its registry has."""

    id: str
    text: str
    details: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, text: str, details: Mapping[str, str | None]) -> Entry:
        """Details without a value are left out."""
        return cls(name, text, {key: value for key, value in details.items() if value})

    def to_json(self) -> dict[str, Any]:
        return {"id": self.id, "text": self.text, **self.details}


def _requirements() -> tuple[Entry, ...]:
    known = {
        name: f"{each.bug}, {each.span}: {each.text} ({each.defect.link})" for each in SYMPTOMS for name in each.about
    }
    return tuple(
        Entry.of(
            each.id,
            each.text,
            {
                "level": each.level.value,
                "releases": str(each.releases),
                "source": each.source,
                "known": known.get(each.id),
            },
        )
        for each in all_requirements()
    )


def _invariants() -> tuple[Entry, ...]:
    """Both kinds under their common name: properties of the model, and invariants over traces."""
    from distro_spark.invariants import INVARIANTS  # noqa: PLC0415  (Polars is an extra; only this list needs it)

    entries = []
    for name in dict.fromkeys([*PROPERTIES, *INVARIANTS]):
        details = {}
        if name in PROPERTIES:
            details["in the model"] = f"{PROPERTIES[name].kind}: {PROPERTIES[name].sentence}"
        if name in INVARIANTS:
            on_traces = INVARIANTS[name]
            details["on traces"] = on_traces.text
            details["judged by"] = f"the rows of each client, from {on_traces.needs}" + (
                ", at checkpoints" if on_traces.needs_checkpoint else ""
            )
        breaks = (
            f"{defect.id} ({each.releases or defect.releases})"
            for defect in DEFECTS.values()
            for each in defect.breaks
            if each.property == name
        )
        details["known to be broken by"] = ", ".join(breaks)
        text = PROPERTIES[name].sentence if name in PROPERTIES else INVARIANTS[name].text
        entries.append(Entry.of(name, text, details))
    return tuple(entries)


def _mutants() -> tuple[Entry, ...]:
    entries = []
    texts = {
        "model": {name: mutant.sentence for name, mutant in MODEL_MUTANTS.items()},
        "node": {name: mutant.text for name, mutant in NODE_MUTANTS.items()},
        "real": {name: mutant.text for name, mutant in real_mutants().items()},
    }
    for name in sorted(set[str]().union(*texts.values())):
        levels = [level for level, known in texts.items() if name in known]
        text = next(texts[level][name] for level in levels)
        details = {"levels": ", ".join(levels)}
        if name in MODEL_MUTANTS:
            details["breaks"] = ", ".join(MODEL_MUTANTS[name].breaks)
            details["within"] = str(MODEL_MUTANTS[name].bounds)
        entries.append(Entry(name, text, details))
    return tuple(entries)


def _profiles() -> tuple[Entry, ...]:
    """Each release of the model as the differences from the one before; `strict` comes last."""
    spans = {release.name: release for release in RELEASES}
    names = sorted((spans.keys() | NODE_PROFILES.keys()) - {STRICT}, key=release_of)  # type: ignore[arg-type]
    entries, before = [], None
    for name in names:
        release = spans.get(name)
        if release is None:
            version = NODE_PROFILES[name].version
            entries.append(Entry(name, f"behaves as {version} (node only: the model sees no difference)"))
            continue
        details = dict(map(_replacement, release.rules))
        for key, value in release.parameters.items():
            was = "" if before is None else f" (was {getattr(before, key)})"
            details[key] = f"{value}{was}"
        model_only = "" if name in NODE_PROFILES else " (model only)"
        history = [
            f"{did} {', '.join(bugs)}" for did, bugs in (("fixed", release.fixed), ("broke", release.broke)) if bugs
        ]
        text = f"behaves as {release.span}{model_only}" + (f": {'; '.join(history)}" if history else "")
        entries.append(Entry(name, text, details))
        before = MODEL_PROFILES[name]
    return (*entries, Entry(STRICT, "every known defect repaired", {} if before is None else _repaired(before)))


def _repaired(last: Profile) -> dict[str, str]:
    """The differences of `strict` from the last release: its own rules, and some parameters."""
    strict = MODEL_PROFILES[STRICT]
    rules = dict(_replacement(RULES[name].function) for name, _ in last.rules)
    parameters = {
        each.name: f"{getattr(strict, each.name)} (was {getattr(last, each.name)})"
        for each in fields(Profile)
        if each.compare
        and each.name not in ("name", "rules")
        and getattr(strict, each.name) != getattr(last, each.name)
    }
    return {**rules, **parameters}


def _replacement(function: Function) -> tuple[str, str]:
    """The name of a rule, and its new sentence."""
    name = name_of(function)
    return name, sentence_of(RULES[name].own if is_own(function) else function)


def _rules() -> tuple[Entry, ...]:
    """The rules of `strict`, the releases that differ, the mutants of each, and the requirements that share a statement
    of docs/protocol with it."""

    def entry_of(rule: Rule) -> Entry:
        mutants = (f"{mutant}: {sentence_of(function)}" for mutant, function in replacements_of(rule).items())
        details = {
            "kind": "guard" if rule.is_guard else "rule",
            "code": rule.place,
            "source": rule.source,
            "asks": ", ".join(each.name for each in asked_by(rule.own)),
            "releases": _history(rule),
            "mutants": " ".join(mutants),
            "tests": ", ".join(each.id for each in all_requirements() if cited_in(each.source) & cited_by(rule)),
        }
        return Entry.of(rule.name, rule.sentence, details)

    import distro_model.step  # noqa: F401, PLC0415 - imports every rule

    return tuple(map(entry_of, sorted(RULES.values(), key=lambda rule: rule.own.__module__)))


def cited_in(text: str) -> frozenset[str]:
    """The statements of docs/protocol that a text cites, known or not: `#anchor` where it mentions docs/protocol."""
    return frozenset(_CITATION.findall(text)) if "docs/protocol" in text else frozenset()


def cited_by(rule: Rule) -> frozenset[str]:
    anchors, _, _ = rule.source.partition(";")
    return frozenset(each.strip() for each in anchors.split(","))


def replacements_of(rule: Rule) -> Mapping[str, Function]:
    """The replacements of this rule in mutants of the model, by mutant."""
    return {
        mutant.id: function
        for mutant in MODEL_MUTANTS.values()
        for function in mutant.rules
        if name_of(function) == rule.name
    }


def _history(rule: Rule) -> str:
    """The replacements of a rule by release: consecutive releases with the same one are grouped."""
    spans: list[tuple[Function, list[str]]] = []
    for release in RELEASES:
        function = MODEL_PROFILES[release.name].replaced.get(rule.name)
        if function is None:
            continue
        if not spans or spans[-1][0] is not function:
            spans.append((function, []))
        spans[-1][1].append(release.span)
    return " ".join(f"{_from_to(names)}: {sentence_of(function)}" for function, names in spans)


def _from_to(spans: Sequence[str]) -> str:
    first, last = spans[0].split(" to ")[0], spans[-1].split(" to ")[-1]
    return first if first == last else f"{first} to {last}"


def _targets() -> tuple[Entry, ...]:
    return tuple(Entry(form, text) for form, text in FORMS.items())


CATALOGUE: Mapping[str, Callable[[], tuple[Entry, ...]]] = {
    "requirements": _requirements,
    "mutants": _mutants,
    "profiles": _profiles,
    "rules": _rules,
    "targets": _targets,
    "invariants": _invariants,
}
"""The entries by the name that `list` takes. Each registry is read only when its entries are needed."""
