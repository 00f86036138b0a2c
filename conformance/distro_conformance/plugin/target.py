"""The node of `--distro-target`, started once for a test run, and an item for each requirement that is tested."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from distro_conformance.findings import Finding, Judgement
from distro_conformance.findings.expected import Expectations
from distro_conformance.node.player import PlayedClient
from distro_conformance.node.run import check_requirements, members_beside
from distro_conformance.plugin.background import do_now
from distro_conformance.requirements import Requirement, all_requirements
from distro_conformance.targets.ports import SDK_OFFSET, with_offset
from distro_conformance.targets.registry import resolve_target


class TargetRun:
    """One node under test, running beside a member that the kit plays. Raises UsageError, TargetError."""

    def __init__(self, spec: str, profile: str | None, expect_failures: Path | None = None) -> None:
        self._target = resolve_target(spec, profile)
        self._expectations = expectations_of(spec, expect_failures)
        self.profile = self._target.profile
        self._found: dict[str, Finding] = {}
        self._stack = contextlib.AsyncExitStack()
        self._peers = do_now(self._stack.enter_async_context(members_beside(self._target, lambda _: None)))

    @property
    def address(self) -> str:
        return self._target.address

    def client(self) -> PlayedClient:
        """A client of the kit's own, connected to the node; it lives on the kit's event loop."""
        return do_now(PlayedClient.connect(with_offset(self.address, SDK_OFFSET)))

    def check(self, requirement: Requirement, beside: Sequence[Requirement] = ()) -> Finding:
        """Runs the other checks at the same time, since they share the waiting, and keeps the findings."""
        if requirement.id not in self._found:
            chosen = [requirement, *(each for each in beside if each is not requirement and each.id not in self._found)]
            findings = do_now(check_requirements(self._target, self._peers, chosen, lambda _: None))
            self._found |= {finding.about: self._expectations.applied_to(finding) for finding in findings}
        return self._found[requirement.id]

    def stop(self) -> None:
        do_now(self._stack.aclose())


def expectations_of(spec: str, path: Path | None) -> Expectations:
    """Raises UsageError."""
    return Expectations.of(spec, path, None, {each.id for each in all_requirements()})


class UnmetError(Exception):
    """The requirement is not met, or could not be judged; the text says what was expected and what was observed."""


class RequirementItem(pytest.Item):
    """A requirement as a test: skipped where it does not apply, xfailed where its failure is a known one."""

    def __init__(self, *, requirement: Requirement, target: Callable[[], TargetRun], **arguments: object) -> None:
        super().__init__(**arguments)  # type: ignore[arg-type]
        self._requirement, self._run_of = requirement, target

    def runtest(self) -> None:
        beside = [item._requirement for item in self.session.items if isinstance(item, RequirementItem)]
        finding = self._run_of().check(self._requirement, beside)
        if finding.judgement is Judgement.NOT_APPLICABLE:
            pytest.skip(finding.message)
        if finding.judgement is Judgement.KNOWN:
            pytest.xfail(finding.message)
        if finding.judgement is not Judgement.CONFORMS:
            raise UnmetError("\n".join((f"{finding.judgement.value}: {finding.message}", *finding.evidence)))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:  # noqa: ARG002
        text = f"{self._requirement.level.value} {self._requirement.text}\n({self._requirement.source})"
        return f"{text}\n{excinfo.value}"

    def reportinfo(self) -> tuple[str, None, str]:
        return "requirements", None, f"{self._requirement.id}: {self._requirement.text}"


def requirement_items(session: pytest.Session, target: Callable[[], TargetRun]) -> list[pytest.Item]:
    return [
        RequirementItem.from_parent(session, name=each.id, requirement=each, target=target)
        for each in all_requirements()
    ]
