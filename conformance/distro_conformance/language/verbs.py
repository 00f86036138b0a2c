"""The lines of a scenario: one entry for each verb, each condition and each line of the header.

The page of the language is generated from these. The actions are the model's, so model and node get the same actions;
steps that only observe are in `steps.py`, what is expected of them in `expectations.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from distro_conformance.language.beating import Repeat, StopBeats
from distro_conformance.language.expectations import (
    STATES,
    AllAgree,
    AllUp,
    Condition,
    Counts,
    Expect,
    ExpectAnswer,
    ExpectModel,
    LoadsFrom,
    NodeHolds,
    NodeLacks,
    QueryShows,
    SubscriptionShows,
)
from distro_conformance.language.steps import Checkpoint, NodeRelease, Query, ReadStep, Subscribe
from distro_conformance.language.words import Words, duration_ms
from distro_conformance.node.player import UNREACHABLE
from distro_conformance.release import listed_profile
from distro_conformance.verdict import UsageError
from distro_model import actions
from distro_model.actions import MALFORMED, OPERATIONS, RESULTS, WELL_FORMED, Action, Advance

VERSION = 2
"""The version of the language. Version 1 had fewer verbs and conditions; each of its texts is valid in version 2."""

_BEATS: Mapping[str, type[actions.HttpBeat | actions.HttpLightBeat]] = {
    beat.verb: beat for beat in (actions.HttpBeat, actions.HttpLightBeat)
}
_HTTP: Mapping[str, Callable[[str, str, str, bool], actions.HttpRequest]] = {
    **{request.verb: request for request in (actions.HttpRegister, actions.HttpDeregister)},
    **_BEATS,
}
_OF_OPERATORS = ("update", "patch", "metadata", "weight", "enable", "disable")
_BY_RAFT = (
    "weight, enabled and metadata that an operator sets travel by Raft, and a release keeps them apart from the "
    "instance: they are no part of Distro, and a scenario has no verb for them; write what the client itself "
    "publishes with its instance"
)


def _hold(words: Words) -> actions.Hold:
    distro = words.takes("distro")
    return actions.Hold(*words.link(), distro)


def _over_http(words: Words) -> actions.HttpRequest | Repeat | StopBeats:
    verb = words.word("request")
    if verb in _OF_OPERATORS:
        raise ValueError(_BY_RAFT)
    if verb == "stop":
        return StopBeats(words.word("service"), words.instance())
    if verb not in _HTTP:
        raise ValueError(f"'{verb}' is no request of the HTTP API; known are {', '.join((*_HTTP, 'stop'))}")
    service, instance = words.word("service"), words.instance("at")
    nodes = words.nodes_after("at", "by", "every")
    by_v2 = words.takes("by")
    if by_v2:
        words.keyword("v2")
    if words.takes("every"):
        return _repeated(verb, _HTTP[verb](service, instance, nodes[0], by_v2), nodes, words)
    if len(nodes) > 1:
        raise ValueError("only a beat that repeats (every 5s) goes to several nodes, in turn")
    return _HTTP[verb](service, instance, nodes[0], by_v2)


def _repeated(verb: str, request: actions.HttpRequest, nodes: tuple[str, ...], words: Words) -> Repeat:
    if not isinstance(request, actions.HttpBeat | actions.HttpLightBeat):
        raise ValueError(f"'{verb}' does not repeat; {' and '.join(_BEATS)} do")
    every_ms = duration_ms(words.word("duration"))
    if every_ms < 1:
        raise ValueError("a beat repeats every 1ms or more")
    return Repeat(request, nodes, every_ms)


def _deregister(words: Words) -> actions.Deregister:
    client, service = words.word("client"), words.word("service")
    return actions.Deregister(client, service, words.instance() if words.is_more else None)


def _says(words: Words) -> actions.PeerRequest:
    """`say b CHANGE c1 revision 3 web 10.0.0.1:80 and api 10.0.0.1:81, 10.0.0.1:82`"""
    peer, operation = words.node(), words.word("operation")
    if operation not in (*WELL_FORMED, *MALFORMED):
        raise ValueError(f"'{operation}' is no request of a member; known are {', '.join((*WELL_FORMED, *MALFORMED))}")
    client = words.optional()
    revision = int(words.word("revision")) if words.takes("revision") else 0
    content = []
    while (service := words.optional()) is not None:
        content.append((service, words.published()))
        if not words.takes("and"):
            break
    return actions.PeerRequest(peer, operation, client, revision, tuple(sorted(content)))


def _answers(words: Words) -> actions.PeerAnswer:
    peer, operation, result = words.node(), words.word("operation"), words.word("result")
    if operation not in (*OPERATIONS, "REPORT"):
        raise ValueError(f"'{operation}' is no operation; known are {', '.join((*OPERATIONS, 'REPORT'))}")
    if result not in RESULTS:
        raise ValueError(f"'{result}' is no answer; known are {', '.join(RESULTS)}")
    return actions.PeerAnswer(peer, operation, result, words.optional())


def _node_release(words: Words) -> NodeRelease:
    node, release = words.node(), words.word("release")
    try:
        listed_profile(release)
    except UsageError as error:
        raise ValueError(str(error)) from error
    return NodeRelease(node, release)


def _members(words: Words) -> actions.ListMembers:
    node = words.word("node").removesuffix(":")
    return actions.ListMembers(words.known(node), words.nodes())


@dataclass(frozen=True, slots=True)
class Verb:
    """`usage` is what follows the verb; `read` reads it, and the text of a step is the way back."""

    usage: str
    kind: type
    """Its documentation says what the verb means."""
    read: Callable[[Words], Action | ReadStep | Repeat | StopBeats | NodeRelease]


_LINK, _DURATION = "NODE->NODE", "300ms|2.5s|3m"
_REQUEST = f"[{'|'.join(OPERATIONS)} [CLIENT]]"
_PARTS: Mapping[str, Callable[[Words], Sequence[Any]]] = {
    "CLIENT": lambda words: [words.word("client")],
    "SERVICE": lambda words: [words.word("service")],
    "INSTANCE": lambda words: [words.instance()],
    "INSTANCE, INSTANCE, …": lambda words: [words.batch()],
    "NODE": lambda words: [words.node()],
    "SPARE": lambda words: [words.node()],
    "at NODE": lambda words: [words.node_after("at")],
    _LINK: Words.link,
    _DURATION: lambda words: [duration_ms(words.word("duration"))],
    _REQUEST: lambda words: [words.operation(), words.optional()],
}
"""A part of a usage with its reader: one or two arguments of the step."""


def _verb(kind: type[Action | ReadStep], *parts: str) -> Verb:
    """A step whose arguments are these, in order."""
    read = [_PARTS[part] for part in parts]
    return Verb(" ".join(parts), kind, lambda words: kind(*(value for take in read for value in take(words))))


def _of_request(kind: type[actions.RequestAction]) -> Verb:
    if not issubclass(kind, actions.Fault):
        return _verb(kind, _LINK, _REQUEST)

    def read(words: Words) -> Action:
        held = words.takes("held")
        return kind(*words.link(), words.operation(), words.optional(), held=held)

    return Verb(f"[held] {_LINK} {_REQUEST}", kind, read)


VERBS: Mapping[str, Verb] = {
    "connect": _verb(actions.Connect, "CLIENT", "NODE"),
    "register": _verb(actions.Register, "CLIENT", "SERVICE", "INSTANCE"),
    "batch": _verb(actions.RegisterBatch, "CLIENT", "SERVICE", "INSTANCE, INSTANCE, …"),
    "deregister": Verb("CLIENT SERVICE [INSTANCE]", actions.Deregister, _deregister),
    **{kind.verb: _verb(kind, "CLIENT") for kind in (actions.Disconnect, actions.FallSilent, actions.AnswerAgain)},
    "http": Verb(f"{'|'.join(_HTTP)} SERVICE INSTANCE at NODE [by v2]", actions.BaseHttpRequest, _over_http),
    "http beat": Verb(f"SERVICE INSTANCE at NODE NODE … [by v2] every {_DURATION}", Repeat, _over_http),
    "http stop": Verb("SERVICE INSTANCE", StopBeats, _over_http),
    "advance": _verb(Advance, _DURATION),
    **{kind.verb: _verb(kind, _LINK) for kind in (actions.Cut, actions.Heal, actions.Refuse)},
    "hold": Verb(f"[distro] {_LINK}", actions.Hold, _hold),
    **{kind.verb: _verb(kind, _LINK) for kind in (actions.Release, actions.Blackhole)},
    **{kind.verb: _verb(kind, _LINK, _DURATION) for kind in (actions.Delay, actions.Throttle)},
    **{kind.verb: _of_request(kind) for kind in get_args(actions.RequestAction)},
    **{kind.verb: _verb(kind, "NODE") for kind in (actions.Crash, actions.Restart)},
    "move": _verb(actions.Move, "NODE", "SPARE"),
    **{kind.verb: _verb(kind, "NODE") for kind in (actions.Pause, actions.Resume)},
    "node": Verb("NODE RELEASE", NodeRelease, _node_release),
    "members": Verb("NODE: NODE NODE …", actions.ListMembers, _members),
    "say": Verb(
        f"NODE {'|'.join((*WELL_FORMED, *MALFORMED))} [CLIENT] [revision NUMBER] [SERVICE INSTANCE, … and SERVICE …]",
        actions.PeerRequest,
        _says,
    ),
    "answer": Verb(
        f"NODE {'|'.join((*OPERATIONS, 'REPORT'))} {'|'.join(RESULTS)} [CLIENT]", actions.PeerAnswer, _answers
    ),
    "query": _verb(Query, "SERVICE", "at NODE"),
    "subscribe": _verb(Subscribe, "CLIENT", "SERVICE"),
    "checkpoint": _verb(Checkpoint),
}
"""One entry a verb; the page of the language is made from these."""

CONDITIONS: Mapping[str, type] = {
    "all agree [but CLIENT CLIENT …]": AllAgree,
    "all up": AllUp,
    "NODE has CLIENT [SERVICE INSTANCE]": NodeHolds,
    "NODE has no CLIENT": NodeLacks,
    "query SERVICE at NODE|everywhere shows nothing|INSTANCE and INSTANCE …": QueryShows,
    "subscription CLIENT SERVICE shows nothing|INSTANCE and INSTANCE …": SubscriptionShows,
    f"NODE counts NODE {'|'.join(STATES)}": Counts,
    "NODE loads from NODE NODE …": LoadsFrom,
    "refused|answer CODE|answer unreachable": ExpectAnswer,
}
"""What may follow `expect [within DURATION:|for DURATION:]`, and what it means."""

HEADER: Mapping[str, str] = {
    f"language {VERSION}": "The version that the text was written for; a later one than this program knows is refused.",
    "profile NAME": "Whose behaviour it is about; the command line wins.",
    "mutant NAME": "A change of the nodes, or of the model where that is the target.",
    "lease DURATION": "Of synced clients, where a run waits for its end and the release's own is too long.",
    "wire memory SEED|grpc": "What embedded nodes speak over.",
    "nodes NAME NAME …": "In ascending order; `a b c` by default. Time is 0 once they are loaded and quiet.",
    "node NAME RELEASE": "After `nodes`: this reference node starts with another release than the profile's. As a "
    "step: from its next start on. The model has one release for all nodes and refuses the line.",
    "spare NAME …": "Addresses under which nodes may come back (`move`): unlisted and unused at first.",
    "played NAME …": "All nodes but the one that is under test: the kit plays them.",
}


def expectation(text: str, nodes: tuple[str, ...]) -> Expect | ExpectModel | ExpectAnswer:
    if text == "model agrees":
        return ExpectModel()
    if text == "refused":
        return ExpectAnswer()
    if re.match(r"answer\b", text):
        code = text.removeprefix("answer").strip()
        if not code.isdigit() and code != UNREACHABLE:
            raise ValueError(f"'expect answer' takes a code such as 200, 20404 or 400, or '{UNREACHABLE}'")
        return ExpectAnswer(code)
    window = re.match(r"(within|for)\s+(\S+?):\s*", text)
    words = Words("expect", text[window.end() if window else 0 :].split(), nodes)
    condition = _condition(words)
    words.end()
    ms = duration_ms(window[2]) if window else 0
    return Expect(condition, for_ms=ms) if window and window[1] == "for" else Expect(condition, ms)


def _condition(words: Words) -> Condition:
    if words.takes("all"):
        if words.takes("agree"):
            return AllAgree(words.clients() if words.takes("but") else ())
        words.keyword("up")
        return AllUp()
    if words.takes("query"):
        service = words.word("service")
        node = None if words.takes("everywhere") else words.node_after("at")
        words.keyword("shows")
        return QueryShows(service, node, words.instances())
    if words.takes("subscription"):
        client, service = words.word("client"), words.word("service")
        words.keyword("shows")
        return SubscriptionShows(client, service, words.instances())
    node = words.node()
    if words.takes("counts"):
        member, state = words.node(), words.word("state")
        if state not in STATES:
            raise ValueError(f"'{state}' is no state of a member; known are {', '.join(STATES)}")
        return Counts(node, member, state)
    if words.takes("loads"):
        words.keyword("from")
        return LoadsFrom(node, words.nodes())
    return _held(words, node)


def _held(words: Words, node: str) -> Condition:
    if not words.takes("has"):
        raise ValueError(
            "expected 'NODE has CLIENT', 'NODE has no CLIENT', 'NODE counts NODE STATE', 'query …', 'subscription …', "
            "'all agree', 'all up', 'refused', 'answer CODE' or 'model agrees'"
        )
    if words.takes("no"):
        return NodeLacks(node, words.word("client"))
    client, service = words.word("client"), words.optional()
    return NodeHolds(node, client) if service is None else NodeHolds(node, client, service, words.instance())
