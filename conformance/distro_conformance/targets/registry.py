"""The kinds of target: from the text of `--target` to an object; no node is started."""

from __future__ import annotations

from collections.abc import Mapping

from distro_conformance.release import STRICT, listed_profile
from distro_conformance.targets.attached import AttachedTarget, addresses_in
from distro_conformance.targets.credentials import NO_CREDENTIALS, Credentials
from distro_conformance.targets.embedded import EmbeddedTarget
from distro_conformance.targets.nacos import NacosTarget
from distro_conformance.targets.process import ProcessTarget
from distro_conformance.targets.target import Target
from distro_conformance.verdict import UsageError

FORMS: Mapping[str, str] = {
    "embedded": "a reference node in this process, under virtual time",
    "nacos:VERSION": "a real server, fetched with Maven on first use: nacos:2.2.4",
    "nacos:DIRECTORY": "a real server: a directory of jars that Maven resolved, or a distribution",
    "process:FILE.toml": "any server that takes a member list, started as the file says",
    "process:COMMAND": "the same by a command that contains {port} and {members}",
    "attach:HOST:PORT,…": "running servers, tested in a separate namespace; no server is stopped and no link is cut",
}
"""The forms of `--target`, with a description."""


def resolve_target(
    spec: str,
    profile: str | None = None,
    mutant: str | None = None,
    *,
    allow_disruption: bool = False,
    credentials: Credentials = NO_CREDENTIALS,
    several: bool = False,
) -> Target:
    """The target that a `--target` text names. Only a described process is started, to ask for its release.

    `credentials` are for servers that the kit has not configured. `several`: for a cluster.
    `profile` None means the target's own: `strict` for `embedded`, for a real server the release that it reports.
    Raises UsageError when the text, the profile or the mutant is unknown, or does not go with the target.
    """
    kind, _, rest = spec.partition(":")
    if mutant is not None and kind in ("process", "attach"):
        raise UsageError(f"the target {spec} has no mutants; they are built into the embedded node only")
    if profile is not None and kind != NacosTarget.kind:  # which has one release, and knows it
        listed_profile(profile)
    match kind:
        case "embedded" if rest:
            raise UsageError(f"the target embedded takes no argument, got {rest!r}")
        case "embedded":
            return EmbeddedTarget(profile or STRICT, mutant)
        case "nacos":
            return NacosTarget(rest, profile, mutant)
        case "process":
            return ProcessTarget(rest, profile, credentials)
        case "attach":
            if not several and len(named := addresses_in(rest)) > 1:
                raise UsageError(f"the requirements are checked on one node, and {spec} names {len(named)}")
            return AttachedTarget(rest, profile, allow_disruption=allow_disruption, credentials=credentials)
    raise UsageError(f"no target {spec!r}; known: {', '.join(FORMS)}")


def require_own(target: Target) -> Target:
    """Require a target that can be started with members of the kit. Raises UsageError."""
    if not target.limits.counts_members:
        raise UsageError(f"{target.spec} was not started by the kit; this needs a node that the kit starts")
    return target
