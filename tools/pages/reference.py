"""The generated pages of docs/reference: from the registries, so that they stay current.

`tools/generate.py` writes them and CI compares.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

from distro_conformance.catalogue import CATALOGUE, Entry
from distro_conformance.language.expectations import ExpectModel
from distro_conformance.language.verbs import CONDITIONS, HEADER, VERBS, VERSION
from distro_impl.security.callers import REQUESTS, ROUTES, Access, Right
from distro_impl.settings import SETTINGS, Setting
from distro_impl.settings.ignored import IGNORED
from distro_interop.differential.listed import DEVIATIONS, listing, releases
from distro_traces.content import NOTHING_PUBLISHED
from distro_traces.event import COLUMNS, REQUIRED_COLUMNS, SCHEMA_NAME, SCHEMA_VERSION, Kind, Outcome
from distro_traces.observed import Observed
from pages.commands import commands_page
from pages.faults import faults_page
from pages.fidelity import fidelity_page
from pages.markdown import Block, page, table
from pages.track_record import track_record_page

_HEADS = {
    "requirements": "What a node must do. `distrocheck test node` checks each; `--requirement ID` only one.",
    "invariants": "What must hold for a whole cluster: proved in the model by `explore`, checked on traces by `check`.",
    "mutants": "Named changes that the kit must find: `--mutant ID` switches one on.",
    "profiles": "The expected behaviour: each release by its changes, `strict` by its repairs.",
    "rules": "The rules of a node of the model: that of `strict`, and those of releases and mutants in its place.",
    "targets": "What can be tested: the forms of `--target`. Servers other than Nacos: "
    "[their protocols](../how-to/your-own-server.md#what-other-servers-speak).",
}


def pages() -> dict[str, str]:
    """File name to text."""
    written = {f"{name}.md": _entries_page(name, read()) for name, read in CATALOGUE.items()}
    more: dict[str, Callable[[], str]] = {
        "callers": _callers_page,
        "commands": commands_page,
        "deviations": _deviations_page,
        "faults": faults_page,
        "fidelity": fidelity_page,
        "scenarios": _scenarios_page,
        "settings": _settings_page,
        "trace": _trace_page,
        "track-record": track_record_page,
    }
    return {**written, **{f"{name}.md": page() for name, page in more.items()}}


def _entries_page(name: str, entries: tuple[Entry, ...]) -> str:
    blocks: list[Block] = [_HEADS[name]]
    for entry in entries:
        blocks += [f"## {entry.id}", f"{entry.text[:1].upper()}{entry.text[1:].rstrip('.')}."]
        blocks += [[f"* {key}: {value}" for key, value in entry.details.items()]] if entry.details else []
    return page(name.capitalize(), *blocks)


def _trace_page() -> str:
    return page(
        "Trace events",
        f"Schema `{SCHEMA_NAME}` version {SCHEMA_VERSION}: one event per row, the same columns in NDJSON (after a\n"
        "header line) and in Parquet. `distro_traces.event.Kind` lists the fields of each kind of event.",
        table("column | required", ((f"`{name}`", "yes" if name in REQUIRED_COLUMNS else "") for name in COLUMNS)),
        "`digest` is the SHA-256 of what the client publishes, in canonical form (`distro_traces.content`), in\n"
        f"hexadecimal digits; `{NOTHING_PUBLISHED}` where it publishes nothing. Traces that were recorded with 0.1.0\n"
        "or before have the first sixteen digits, and are read as they are. Messages show sixteen digits.",
        "Kinds: " + ", ".join(f"`{kind}`" for kind in Kind) + ".",
        "Outcomes: " + ", ".join(f"`{outcome}`" for outcome in Outcome) + ".",
        "## The header",
        "`run`, `profile`, `target`, `clock` (`virtual` or `wall`), `nodes`, and `observed`: what the recording\n"
        "could show. A version 1 header has no `observed` and stands for all of it. `began`, where it is known: the\n"
        "time at which `at_ms` was 0, with its offset from UTC.",
        _observed(),
        "Nodes and links are patterns: `*` stands for every node, and a link is `source->target`.",
    )


def _observed() -> str:
    """The text of each field of `Observed`, from its docstring: one field a line, continued below its text."""
    first, _, fields = inspect.cleandoc(Observed.__doc__ or "").partition("\n\n")
    rows = re.findall(r"^(\w+) +(.*(?:\n +.*)*)", fields, re.MULTILINE)
    return f"{first}\n\n" + table("field | ", ((f"`{name}`", re.sub(r"\n +", " ", text)) for name, text in rows))


def _scenarios_page() -> str:
    """The language of scenarios, from its registry."""
    conditions = [f"* `expect {usage}`: {_sentence(kind)}" for usage, kind in CONDITIONS.items()]
    return page(
        "Scenarios",
        _SCENARIOS_HEAD,
        "## Header",
        [f"* `{usage}`: {text}" for usage, text in HEADER.items()],
        "## Steps",
        [f"* `{f'{name} {verb.usage}'.rstrip()}`: {_sentence(verb.kind)}" for name, verb in VERBS.items()],
        "## Expectations",
        _EXPECT_HEAD,
        [*conditions, f"* `{ExpectModel()}`: {_sentence(ExpectModel)}"],
    )


def _sentence(kind: type) -> str:
    return " ".join((kind.__doc__ or "").split())


def _settings_page() -> str:
    """Keys of `serve --config` and `--set`."""
    used = ((f"`{each.key}`", str(each.kind), _releases(each), each.text) for each in SETTINGS.values())
    return page(
        "Settings",
        _SETTINGS_HEAD,
        table("key | value | releases | effect", used),
        "## Without effect",
        "Keys of a full server that begin with one of these are listed at start and otherwise ignored.",
        table("key | reason", ((f"`{prefix}`", reason) for prefix, reason in IGNORED.items())),
    )


def _callers_page() -> str:
    """The callers that each request of the reference node accepts."""
    head = "who | a user, where authentication is on"
    routes = ((f"`{' '.join(route)}`", *_access(access), access.in_3x) for route, access in ROUTES.items())
    return page(
        "Callers",
        _CALLERS_HEAD,
        "## gRPC",
        table(f"request | {head}", ((f"`{name}`", *_access(access)) for name, access in REQUESTS.items())),
        "## HTTP",
        "Below `/nacos`. The set of paths depends on the release.",
        table(f"route | {head} | in 3.x", routes),
    )


def _access(access: Access) -> tuple[str, str]:
    rights = {None: "", Right.READ: "may read", Right.WRITE: "may write"}
    where = " in the namespace" if access.has_namespace else " everywhere" if access.right else ""
    since = ", from 2.3.0 on" if access.open_before_2_3 else ""
    caller = f"{access.caller}{', local or with the identity where no user logs in' if access.changes_node else ''}"
    return caller, f"{rights[access.right]}{where}{since}"


def _deviations_page() -> str:
    """Every accepted difference from a real server, by its id."""
    blocks: list[Block] = [_DEVIATIONS_HEAD]
    for deviation, why in sorted(DEVIATIONS.items()):
        rows = {name: [row for row in listing(name).values() if row.deviation == deviation] for name in releases()}
        scripts = sorted({row.difference.script for listed in rows.values() for row in listed})
        counted = ", ".join(f"{name} ({len(listed)})" for name, listed in rows.items() if listed)
        shows = ", ".join(f"`{name}`" for name in scripts)
        blocks += [f"## {deviation}", why, (f"* differences, by release: {counted}", f"* shows in: {shows}")]
    return page("Deviations", *blocks)


def _releases(setting: Setting) -> str:
    return f"from {setting.since}" if setting.until is None else f"{setting.since} to {setting.until}"


_SETTINGS_HEAD = (
    "Nacos' own configuration keys, as `distrocheck serve` reads them from `--config FILE` (the syntax of",
    "`application.properties`, with `${NAME:default}`) and from `--set KEY=VALUE`. A key that the release of",
    "the profile does not read has no effect, which is reported at start; an unknown key is refused.",
)
_CALLERS_HEAD = (
    "The callers that each request of the reference node accepts. Requests that are not in these tables are refused",
    "before a handler is called. A *member* shows the identity of the cluster",
    "(`nacos.core.auth.server.identity.key`). Releases up to 2.5.1 do not check it, 3.x checks it once all members are",
    "3.x; `strict` always checks the identity where one is configured",
    "and otherwise the address of the member; it does not start without an identity when a member is listed by name.",
    "Requests of members are accepted only on the cluster port from 2.4.3 on. An *operator* is a user who may write",
    "everywhere. Where authentication is off every caller may read, as in every release, but a request that changes",
    "the node must come from its own machine (*local*) or carry the identity.",
)
_SCENARIOS_HEAD = (
    f"The language of scenarios, version {VERSION}: one text that is played on every driver,",
    "`distrocheck replay FILE --target …`. A line is one step; a word that begins with `#` begins a comment. "
    "`NODE->NODE` is the directed link",
    "from the first to the second, `INSTANCE` is `10.0.0.1:80 key=value …`, where `cluster=…`,",
    "`weight=2.5` and `enabled=false` are fields of their own.",
    "A driver reports a step that it cannot do in a sentence, and the run is inconclusive. Texts of version 1 are read",
    "unchanged.",
    "",
    "A run ends at the first expectation that is violated. A request that a node refuses, or that reaches none",
    "(`refused: 400`, `refused: unreachable`), is a violation, unless the next line expects it; the run goes on",
    "either way. A step that a client can no longer do, since its node has closed its connection or it has withdrawn",
    "all its instances, is `nothing to do` and no violation. With `expect model agrees`, and among played members,",
    "the model decides which requests are to be refused. The same text has the same outcome in the model and on",
    "nodes.",
    "",
    "Instance metadata, weight and `enabled` as an *operator* sets them (the console, `PUT /ns/instance`) are",
    "replicated by Raft and kept apart from the data of Distro: a scenario cannot set them, and `http update` is",
    "refused with that reason. The metadata that a client publishes itself is written with its instance.",
)
_EXPECT_HEAD = (
    "`expect within 15s: …` becomes true in that time, `expect for 15s: …` is true all the time, `expect …` is true",
    "now. A failed one reports the observed value, the time in which it held before (checked every 100 ms), and the",
    "last event before: a call between nodes about a client, or a change that a reference node reports. `refused`",
    "and `answer` are about the last request of a client: the code in the body where there is one (a light beat of",
    "an unknown instance is answered `20404`, an accepted beat `10200`), else the HTTP status; over gRPC the",
    "error code, else the result code.",
)
_DEVIATIONS_HEAD = (
    "The accepted differences between the reference node and a real server of the same release, with reasons.",
    "`distrocheck test differential --target nacos:2.2.4` plays the same scripts on both and compares the answers;",
    "a difference whose script, step, field and both values are not listed fails it, and so does a listed one that is",
    "gone.",
)
