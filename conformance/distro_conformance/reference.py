"""The generated pages of docs/reference: from the registries, so that they cannot go stale.

`tools/generate.py` writes them and CI compares.
"""

from __future__ import annotations

import inspect

from distro_conformance.catalogue import CATALOGUE, Entry
from distro_conformance.differential.deviations import DEVIATIONS
from distro_impl.settings import SETTINGS, Setting
from distro_impl.settings.ignored import IGNORED
from distro_traces.event import COLUMNS, REQUIRED_COLUMNS, SCHEMA_NAME, SCHEMA_VERSION, Kind, Outcome
from distro_traces.observed import Observed

_HEADS = {
    "requirements": "What a node must do. `distrocheck test node` checks each; `--requirement ID` only one.",
    "invariants": "What must hold for a whole cluster: proved in the model by `explore`, checked on traces by `check`.",
    "mutants": "Named changes that the kit must find: `--mutant ID` switches one on.",
    "profiles": "Whose behaviour is expected: each release as what it changed, `strict` as what it repaired.",
    "targets": "What can be held against the specification: `--target FORM`.",
}


def pages() -> dict[str, str]:
    """File name to text."""
    written = {f"{name}.md": _page(name, read()) for name, read in CATALOGUE.items()}
    return {**written, "deviations.md": _deviations_page(), "settings.md": _settings_page(), "trace.md": _trace_page()}


def _page(name: str, entries: tuple[Entry, ...]) -> str:
    lines = [f"# {name.capitalize()}", "", _NOTE, "", _HEADS[name]]
    for entry in entries:
        lines += ["", f"## {entry.id}", "", f"{entry.text[:1].upper()}{entry.text[1:].rstrip('.')}."]
        if entry.details:
            lines += ["", *(f"* {key}: {value}" for key, value in entry.details.items())]
    return "\n".join(lines) + "\n"


def _trace_page() -> str:
    rows = [f"| `{name}` | {'yes' if name in REQUIRED_COLUMNS else ''} |" for name in COLUMNS]
    return "\n".join(
        [
            "# Trace events",
            "",
            _NOTE,
            "",
            f"Schema `{SCHEMA_NAME}` version {SCHEMA_VERSION}: one event per row, the same columns in NDJSON (after a",
            "header line) and in Parquet. What a kind of event carries is said in `distro_traces.event.Kind`.",
            "",
            "| column | required |",
            "|---|---|",
            *rows,
            "",
            "Kinds: " + ", ".join(f"`{kind}`" for kind in Kind) + ".",
            "",
            "Outcomes: " + ", ".join(f"`{outcome}`" for outcome in Outcome) + ".",
            "",
            "## The header",
            "",
            "`run`, `profile`, `target`, `clock` (`virtual` or `wall`), `nodes`, and `observed`: what the recording",
            "could show. A version 1 header has no `observed` and stands for all of it.",
            "",
            "```",
            inspect.cleandoc(Observed.__doc__ or ""),
            "```",
            "",
            "Nodes and links are patterns: `*` stands for every node, and a link is `source->target`.",
            "",
        ]
    )


def _settings_page() -> str:
    """Keys of `serve --config` and `--set`."""
    used = [
        f"| `{setting.key}` | {setting.kind} | {_releases(setting)} | {setting.text} |" for setting in SETTINGS.values()
    ]
    ignored = [f"| `{prefix}` | {reason} |" for prefix, reason in IGNORED.items()]
    return "\n".join(
        [
            "# Settings",
            "",
            _NOTE,
            "",
            "Nacos' own configuration keys, as `distrocheck serve` reads them from `--config FILE` (the syntax of",
            "`application.properties`, with `${NAME:default}`) and from `--set KEY=VALUE`. A key that the release of",
            "the profile does not read has no effect, which is told at start; an unknown key is refused.",
            "",
            "| key | value | releases | what it sets |",
            "|---|---|---|---|",
            *used,
            "",
            "## Without effect",
            "",
            "Keys of a full server that begin with one of these are told at start and otherwise left alone.",
            "",
            "| key | why |",
            "|---|---|",
            *ignored,
            "",
        ]
    )


def _deviations_page() -> str:
    """Every difference from a real server that stays, by its id."""
    lines = ["# Deviations", "", _NOTE, "", *_DEVIATIONS_HEAD]
    for deviation in sorted(DEVIATIONS, key=lambda each: each.id):
        scripts = ", ".join(f"`{name}`" for name in sorted({place.script for place in deviation.places}))
        lines += ["", f"## {deviation.id}", "", deviation.why, ""]
        lines += [f"* releases: {deviation.releases}", f"* shows in: {scripts}"]
    return "\n".join(lines) + "\n"


def _releases(setting: Setting) -> str:
    return f"from {setting.since}" if setting.until is None else f"{setting.since} to {setting.until}"


_DEVIATIONS_HEAD = (
    "Where the reference node does not do what a real server of the same release does, and why it stays so.",
    "`distrocheck test differential --target nacos:2.2.4` plays the same scripts on both and compares what comes back;",
    "a difference that is not listed here fails it, and so does an entry that explains nothing any more.",
)
_NOTE = "*Generated from the registry by `make docs`; edit there.*"
