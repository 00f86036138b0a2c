"""The kinds of target there are: from the text of `--target` to an object, nothing started yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from distro_conformance.targets.attached import AttachedTarget
from distro_conformance.targets.embedded import EmbeddedTarget
from distro_conformance.targets.nacos_target import NacosTarget
from distro_conformance.targets.process import ProcessTarget
from distro_conformance.targets.target import Target
from distro_conformance.verdict import UsageError

FORMS: Mapping[str, str] = {
    "embedded": "a reference node in this process, under virtual time",
    "nacos:VERSION": "a real server, fetched with Maven on first use: nacos:2.2.4",
    "nacos:DIRECTORY": "a real server: a directory of jars that Maven resolved, or a distribution",
    "process:FILE.toml": "any server that takes a member list, started as the file says",
    "process:COMMAND": "the same by a command that holds {port} and {members}",
    "attach:HOST:PORT,…": "what runs already, in a namespace of our own; nothing of it is stopped or cut",
}
"""What can be written, and what it is."""


def resolve_target(
    spec: str, profile: str | None = None, mutant: str | None = None, *, allow_disruption: bool = False
) -> Target:
    """The target that a `--target` text names. Nothing is started yet, but for a process that is asked what it is.

    `profile` None means the target's own: `strict` for `embedded`, for a real server the release that it says it is.
    Raises UsageError when the text, the profile or the mutant is unknown, or does not go with the target.
    """
    kind, _, rest = spec.partition(":")
    make = _KINDS.get(kind)
    if make is None:
        raise UsageError(f"no target {spec!r}; known: {', '.join(FORMS)}")
    return make(rest, profile, mutant, allow_disruption)


def require_own(target: Target) -> Target:
    """One that can be started with members of the kit. Raises UsageError."""
    if not target.limits.counts_members:
        raise UsageError(f"{target.spec} runs for somebody else; what is wanted takes a node that the kit starts")
    return target


def _embedded(rest: str, profile: str | None, mutant: str | None, _: bool) -> Target:
    if rest:
        raise UsageError(f"the target embedded takes no argument, got {rest!r}")
    return EmbeddedTarget(profile or "strict", mutant)


def _nacos(rest: str, profile: str | None, mutant: str | None, _: bool) -> Target:
    return NacosTarget(rest, profile, mutant)


def _process(rest: str, profile: str | None, mutant: str | None, _: bool) -> Target:
    if mutant is not None:
        raise UsageError(f"the target process:{rest} has no mutants; they are built into the embedded node only")
    return ProcessTarget(rest, profile)


def _attach(rest: str, profile: str | None, mutant: str | None, allow_disruption: bool) -> Target:
    if mutant is not None:
        raise UsageError(f"the target attach:{rest} has no mutants; they are built into the embedded node only")
    return AttachedTarget(rest, profile, allow_disruption=allow_disruption)


_KINDS: dict[str, Callable[[str, str | None, str | None, bool], Target]] = {
    "embedded": _embedded,
    "nacos": _nacos,
    "process": _process,
    "attach": _attach,
}
