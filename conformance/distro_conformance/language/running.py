"""A cluster while a scenario runs on it: one step at a time, with repeated beats and the last answer.

A request that is refused, or reaches no node, does not end a run: the line reports it, and `expect refused` after it
expects it. A step has the same meaning on every driver, since this module runs it on all of them.
"""

from __future__ import annotations

from collections import Counter

from distro_conformance.drivers.cluster import Cluster
from distro_conformance.language.beating import Beat, Beats, Repeat, StopBeats
from distro_conformance.language.expectations import Expect, ExpectAnswer, ExpectModel, listed
from distro_conformance.language.holding import StepResult, hold
from distro_conformance.language.steps import Checkpoint, NodeRelease, Query, Subscribe
from distro_conformance.node.player import ClientAnswer, RefusedError, not_reached
from distro_conformance.verdict import Verdict
from distro_model.actions import (
    Action,
    Advance,
    AnswerAgain,
    Deregister,
    Disconnect,
    FallSilent,
    HttpDeregister,
    HttpRequest,
    Register,
    RegisterBatch,
)

Step = Action | Query | Subscribe | Checkpoint | Repeat | StopBeats | NodeRelease | Expect | ExpectAnswer | ExpectModel
ClientRequest = Register | RegisterBatch | Deregister | HttpRequest
"""Actions that get an answer."""
OfConnected = Register | RegisterBatch | Deregister | Disconnect | FallSilent | AnswerAgain
"""Actions of a client on its connection."""
DONE, HOLDS = StepResult(Verdict.CONFORMS, "done"), StepResult(Verdict.CONFORMS, "holds")


class Running:
    """`watched`: the model judges every answer, so a refusal is not judged here."""

    def __init__(self, cluster: Cluster, *, watched: bool = False) -> None:
        self.cluster, self._watched = cluster, watched
        self.answers: tuple[ClientAnswer, ...] = ()
        self.beats = Beats()
        self._refused_beats: Counter[str] = Counter()
        self._published: set[tuple[str, str]] = set()
        self._taken_back: set[tuple[str, str]] = set()
        self._left: set[str] = set()

    async def run(self, step: Step, *, refusal_expected: bool = False) -> StepResult:
        """Raises DivergedError, TargetError; CannotError for what the driver cannot do now."""
        held = await self._run(step, refusal_expected=refusal_expected)
        refused, self._refused_beats = self._refused_beats, Counter()
        more = "".join(f"; {count} of its beats refused: {answer}" for answer, count in refused.items())
        return held.with_outcome(held.outcome + more)

    def mistake(self, action: Action, guard: str | None) -> str | None:
        """Why the line cannot be meant as written, or None. `guard`: the guard of the model that forbids it. An action
        that a client can no longer do because of earlier events of the run is no mistake."""
        if isinstance(action, OfConnected) and action.client in self._left:
            return f"{action.client} is no longer connected"
        is_idle = self.cluster.unreached(action) is not None or self._takes_back_nothing(action) is not None
        return None if is_idle else guard

    async def _run(self, step: Step, *, refusal_expected: bool) -> StepResult:
        match step:
            case ExpectModel():
                open_ones = self.cluster.unjudged()
                return StepResult(Verdict.INCONCLUSIVE, f"not judged: {open_ones}") if open_ones else HOLDS
            case ExpectAnswer():
                return self._answered(step)
            case Expect():
                return await hold(self.cluster, step, self.pass_ms)
            case Query(service, node):
                seen = {listed(found) for found in await self.cluster.query(node, service)}
                return DONE.with_outcome("shows " + " or ".join(sorted(seen)))
            case Subscribe(client, service):
                await self.cluster.subscribe(client, service)
            case Checkpoint():
                await self.cluster.checkpoint()
            case Repeat():
                self.beats.start(step, self.cluster.clock.now_ms())
                await self.pass_ms(0)
            case StopBeats(service, instance):
                if not self.beats.is_beating(service, instance):
                    return DONE.with_outcome(f"nothing to do: no beat of {instance} for {service} repeats")
                self.beats.stop(service, instance)
            case NodeRelease(node, release):
                self.cluster.set_release(node, release)
            case Advance(ms) if self.beats:
                await self.pass_ms(ms)
            case action:
                return await self._perform(action, refusal_expected=refusal_expected)
        return DONE

    def _answered(self, expect: ExpectAnswer) -> StepResult:
        wrong = [why for answer in self.answers if (why := expect.unmet_by(answer)) is not None]
        if not self.answers:
            return StepResult(Verdict.VIOLATES, "no client has asked for anything yet")
        if not wrong:
            return HOLDS
        verdict = Verdict.VIOLATES if len(wrong) == len(self.answers) else Verdict.INCONCLUSIVE
        return StepResult(verdict, " or ".join(wrong), detail=self.answers[0].detail)

    async def _perform(self, action: Action, *, refusal_expected: bool) -> StepResult:
        unreached = self.cluster.unreached(action)
        if unreached is not None and isinstance(action, Disconnect | FallSilent | AnswerAgain):
            return DONE.with_outcome(f"nothing to do: {unreached}")
        if not isinstance(action, ClientRequest):
            await self.cluster.perform(action)
            self._note(action)
            return DONE
        if unreached is not None:
            self.answers = (not_reached(unreached),)
        elif (why := self._takes_back_nothing(action)) is not None:
            return DONE.with_outcome(f"nothing to do: {why}")
        else:
            await self._ask(action)
            self._note(action)
        return self._outcome(refusal_expected=refusal_expected)

    async def _ask(self, action: ClientRequest) -> None:
        try:
            await self.cluster.perform(action)
        except RefusedError as error:
            if error.answer is None:
                raise
        self.answers = tuple(self.cluster.answers)

    def _outcome(self, *, refusal_expected: bool) -> StepResult:
        """The result of a request. A refusal without `expect refused` after it is a violation, and the run goes on."""
        texts = sorted({_text(answer) for answer in self.answers}) or ["done"]
        refused = [each for each in self.answers if each.is_refused and not each.asks_to_register]
        outcome, detail = " or ".join(texts), next((each.detail for each in refused), "")
        if not refused or refusal_expected or self._watched:
            return StepResult(Verdict.CONFORMS, outcome, detail=detail)
        if len(refused) < len(self.answers):
            return StepResult(Verdict.INCONCLUSIVE, f"{outcome}, depending on the order of timers", detail=detail)
        return StepResult(Verdict.VIOLATES, outcome, detail=detail)

    def _note(self, action: Action) -> None:
        match action:
            case Register(client, service) | RegisterBatch(client, service):
                self._published.add((client, service))
            case Deregister(client, service):
                self._published.discard((client, service))
                self._taken_back.add((client, service))
            case Disconnect(client):
                self._left.add(client)
            case HttpDeregister(service, instance):
                self.beats.stop(service, instance)

    def _takes_back_nothing(self, action: Action) -> str | None:
        """Why a deregistration removes nothing, or None: an earlier one has ended all instances of the batch."""
        if not isinstance(action, Deregister):
            return None
        what = (action.client, action.service)
        is_gone = what in self._taken_back and what not in self._published
        return f"{action.client} publishes nothing under {action.service} any more" if is_gone else None

    async def pass_ms(self, ms: int) -> None:
        """Lets time pass, and sends the beats that are due meanwhile."""
        clock = self.cluster.clock
        until_ms = clock.now_ms() + ms
        while (due := self.beats.next_until(until_ms)) is not None:
            at_ms, beat = due
            if at_ms > clock.now_ms():
                await clock.pass_ms(at_ms - clock.now_ms())
            await self._send(beat)
        if until_ms > clock.now_ms():
            await clock.pass_ms(until_ms - clock.now_ms())

    async def _send(self, beat: Beat) -> None:
        """Sends a repeated beat; refusals are counted."""
        why = self.cluster.unreached(beat)
        if why is not None:
            self._refused_beats[f"unreachable, {why}"] += 1
            return
        try:
            await self.cluster.perform(beat)
        except RefusedError as error:
            if error.answer is None:
                raise
        for answer in self.cluster.answers:
            if answer.is_refused:
                self._refused_beats[str(answer)] += 1


def unable(cluster: Cluster, step: Step) -> str | None:
    """Why the driver can never perform the step, or None."""
    match step:
        case ExpectModel():
            return cluster.incomparable
        case Repeat(beat):
            return cluster.cannot(beat)
        case NodeRelease():
            return cluster.one_release
        case Expect() | ExpectAnswer() | Query() | Subscribe() | Checkpoint() | StopBeats():
            return None
        case action:
            return cluster.cannot(action)


def _text(answer: ClientAnswer) -> str:
    if answer.asks_to_register:
        return f"answered {answer}: the instance is not registered there"
    return f"refused: {answer}" if answer.is_refused else "done"
