"""The page that relates each statement to its rules, node files, requirements and tests, with reasons for missing ones.

A statement without a rule, or without a place in the node, has its reason here: a test fails where neither is given,
and where a reason is given although the rule or place exists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from distro_conformance.catalogue import cited_in, replacements_of
from distro_conformance.requirements import all_requirements
from pages.markdown import Block, page, table
from pages.statements import TESTS, Statement, citing_files, rules_of, statements, tests_of

_BELOW = "the model has requests and the outcomes of calls, not their form on the wire"
_API = "the model has the requests of clients, not the API that carries them"
_OUTSIDE = "it has no effect on replication"
_TWICE = "covered by the statements that it names"

WITHOUT_RULE: Mapping[str, str] = {
    **dict.fromkeys(("wire-envelope", "wire-limits", "wire-tls", "wire-errors", "wire-checks"), _BELOW),
    **dict.fromkeys(("distro-envelope", "distro-content", "distro-snapshot"), _BELOW),
    **dict.fromkeys(("connection-id", "connection-handshake", "connection-stream", "connection-internal"), _BELOW),
    **dict.fromkeys(("http-v1", "http-admin", "http-auth", "http-refusals", "naming-names", "naming-requests"), _API),
    **dict.fromkeys(("http-udp", "log-lines", "settings-keys", "settings-switches", "client-deregister-sdk"), _OUTSIDE),
    **dict.fromkeys(("defect-d7", "defect-d10", "defect-d12", "defect-d15", "defect-d16", "defect-d18"), _TWICE),
    **dict.fromkeys(("releases-matrix", "releases-connection", "releases-timeline"), "the profiles are the history"),
    "defect-d9": "the model has the contents of lists; exceptions while a list is written as JSON are outside it",
    "defect-d17": "follows from the lease of copies; no rule of its own",
    "distro-query": "no server sends it, so it has no effect",
    "http-beat": "a beat of the model names its service once, in body and parameter alike",
    "load-types": "no client has the other type, and client data waits only for its answers, not for success",
    "connection-limits": "refused clients never connect, clients asked to go disconnect: those of the model do both",
    "member-client": "a link of the model is one connection that exists or not",
    "member-alive": "two tests in rules/owners.py and rules/sync.py, covered with those rules",
    "member-auth": "the only unknown senders of the model are those of `id_collisions`, which send any request",
    "verify-pure-subscriber": "follows from the verify round; no rule of its own",
}

WITHOUT_NODE: Mapping[str, str] = {
    **dict.fromkeys((f"defect-d{number}" for number in range(1, 19)), _TWICE),
    **dict.fromkeys(("releases-connection", "releases-timeline"), "covered by the profile of each release"),
    **dict.fromkeys(
        ("metadata-set", "metadata-expiry"), "it is replicated through Raft, which the node does not implement"
    ),
    "connection-limits": "the default is none, and the node has no setting for one",
    "index-audit": "the node handles events where they are published: none can be lost",
    "sync-torn": "a CHANGE is applied in one step: nothing else runs in between",
    "verify-v1": "Nacos 1.x only",
    "client-deregister-sdk": "follows from the deregistration, which matches nothing",
}


def fidelity_page() -> str:
    blocks: list[Block] = [_HEAD]
    for name, found in groupby(statements().values(), key=lambda each: each.page):
        title = f"## {name.removesuffix('.md').capitalize()}"
        blocks += [title, table("statement | rules | node | requirements | mutants and tests", map(_row, found))]
    for where, reasons in (("a rule", WITHOUT_RULE), ("a place in the node", WITHOUT_NODE)):
        missing = ((anchor, reasons[anchor]) for anchor in statements() if anchor in reasons)
        blocks += [f"## Without {where}", table("statement | reason", missing)]
    return page("Fidelity", *blocks)


def nodes_of(anchor: str) -> tuple[str, ...]:
    """The files of the reference node that cite the statement."""
    return tuple(path for path, cited in citing_files("impl/distro_impl").items() if anchor in cited)


def _row(statement: Statement) -> Sequence[str]:
    rules = rules_of(statement.anchor)
    node = [path.removeprefix("impl/distro_impl/") for path in nodes_of(statement.anchor)]
    requirements = [each.id for each in all_requirements() if statement.anchor in cited_in(each.source)]
    tests = {path for path, cited in citing_files(*TESTS).items() if statement.anchor in cited}
    tests |= {each for rule in rules for each in tests_of(rule)}
    mutants = sorted({mutant for rule in rules for mutant in replacements_of(rule)})
    cells = (
        f"[{statement.anchor}](../protocol/{statement.page}#{statement.anchor})",
        ", ".join(rule.name for rule in rules),
        ", ".join(node),
        ", ".join(requirements),
        ", ".join([*mutants, *sorted(tests)]),
    )
    return [cell or "–" for cell in cells]


_HEAD = (
    "Each statement of the protocol reference, the rules of the model that express it, the files of the node that",
    "implement it, the requirements that check it on other implementations, and its tests: mutants that the",
    "properties kill, and files of tests. A statement with a rule and a place in the node, but without a requirement,",
    "is checked by walks that compare the two.",
)
