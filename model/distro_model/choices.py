"""The action on a clock of each choice of the search, or that it is automatic."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from distro_model import actions
from distro_model.actions import Action
from distro_model.events import HttpAction
from distro_model.messages import subject_of
from distro_model.transitions import (
    AnnounceRuns,
    BeatCheckRuns,
    ChecksConnections,
    EndsConnectionCheck,
    Fails,
    HttpAsks,
    InsideNode,
    Lapses,
    LeaseCheckRuns,
    ListRead,
    LoadRuns,
    OnLink,
    PeriodPasses,
    TaskRuns,
    TimesOut,
    Transition,
    VerifyRuns,
)

BY_A_LEASE = (LeaseCheckRuns, BeatCheckRuns, Lapses, ChecksConnections, EndsConnectionCheck)
"""Automatic choices that come within minutes, the time unit of silences."""

BY_THEMSELVES = (TaskRuns, VerifyRuns, LoadRuns, TimesOut, Fails, AnnounceRuns, PeriodPasses, *BY_A_LEASE)

_HTTP: Mapping[HttpAction, Callable[[str, str, str, bool], actions.HttpRequest]] = {
    HttpAction.REGISTER: actions.HttpRegister,
    HttpAction.DEREGISTER: actions.HttpDeregister,
    HttpAction.BEAT: actions.HttpBeat,
    HttpAction.LIGHT_BEAT: actions.HttpLightBeat,
}


class NoActionError(ValueError):
    """No action of an environment has this effect. The message states why."""


def action_of(choice: Transition) -> Action:
    """The action of a choice that is not automatic. Raises NoActionError."""
    if isinstance(choice, Action):
        return choice
    match choice:
        case ListRead(node, others):
            return actions.ListMembers(node, tuple(sorted((node, *others))))
        case HttpAsks(node, _, asked):
            instance = asked.instance or asked.client.partition("#")[0]
            return _HTTP[asked.action](asked.service, instance, node, asked.by_v2)
        case OnLink(source, target, request, decided_by=kind) if kind is not None:
            about = (str(request.operation), subject_of(request))
            if issubclass(kind, actions.Fault):
                return kind(source, target, *about, held=True)
            return kind(source, target, *about)
        case InsideNode():
            raise NoActionError(f"no action controls events inside a node: {choice}")
    raise NoActionError(f"no action has this effect: {choice}")
