"""Profiles as users and servers name them, and the time limits of a node by release. `distro_model.release` has the
meaning of a name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from distro_conformance.verdict import UsageError
from distro_model.release import STRICT, Release, Span, UnreadableReleaseError, parsed
from distro_model.release import release_of as _release_of

__all__ = [
    "STRICT",
    "Release",
    "Span",
    "Timings",
    "disagreements",
    "judged_as",
    "listed_profile",
    "numbers_of",
    "release_of",
]

_TICK_MS = 100


def release_of(profile: str) -> Release | None:
    """(2, 2, 4) for `nacos-2.2.4`, None for `strict`. Raises UsageError for a text that is no profile's name."""
    try:
        return _release_of(profile)
    except UnreadableReleaseError as error:
        raise UsageError(str(error)) from error


def numbers_of(version: str) -> str:
    """3.1.0 of 3.1.0-SNAPSHOT and 2.5.1 of 2.5.1-vendor.2: a build is judged as the release that it is made from."""
    return re.sub(r"(?<=\d)[-+_].*", "", version)


def listed_profile(name: str) -> str:
    """The listed profile that `name` behaves as: a release between two listed ones is as the one before it.

    Raises UsageError for releases that were never read. It is for names given by a user; the release that a server
    reports is not checked here.
    """
    from distro_impl.profiles import UnknownProfileError, listed  # noqa: PLC0415 - findings are light

    try:
        return listed(name).name
    except UnknownProfileError as error:
        raise UsageError(str(error)) from error


def judged_as(profile: str) -> str | None:
    """The release that a profile is judged as, by the node and the model, if it differs from the one of its name.

    None for a listed release, and for one that cannot be judged, which the look-up refuses.
    """
    from distro_impl.profiles import PROFILES  # noqa: PLC0415

    try:
        listed, release = listed_profile(profile), release_of(profile)
    except UsageError:
        return None
    if listed == profile or release is None:
        return None
    last = max(filter(None, map(release_of, PROFILES)))
    why = "the last release known here" if release > last else "which behaves the same"
    return f"{profile} is judged as {listed}, {why}"


def disagreements(node: Sequence[str], model: Iterable[str]) -> list[str]:
    """The releases that node and model would judge differently. `node`: the listed versions of the node, in order;
    `model`: the listed spans of the model, as `2.2.1 to 2.2.4`.

    The model has fewer entries, as some releases differ only outside of it: a span ends at the last release that was
    read. So both must end at the same release, and each release of the node must be in a span.
    """
    spans = [tuple(map(parsed, (text.split(" to ") * 2)[:2])) for text in model]
    found = [f"the model was not read at {each}" for each in node if not any(a <= parsed(each) <= b for a, b in spans)]
    if (end := max(last for _, last in spans)) != parsed(node[-1]):
        found.append(f"the node's last release is {node[-1]}, the model's {'.'.join(map(str, end))}")
    return found


@dataclass(frozen=True, slots=True)
class Timings:
    """The time limits of a node's actions, with the tick of the delay engine. Source: docs/protocol #sync-merge,
    #releases-matrix."""

    sync_ms: int
    resync_ms: int
    retry_ms: int  # from a failed sync to its repetition
    verify_ms: int
    view_ms: int  # until a query shows a change (docs/real-servers.md#a-played-member)
    push_ms: int
    lease_ms: int
    clean_ms: int = 5000  # between two runs of the cleaner
    call_ms: int = 3000  # the time-out of a member's call
    idle_ms: int = 20_000  # until a silent connection gets a detection
    beat_ms: int = 5_000  # between two beats of an instance of the HTTP API
    unhealthy_ms: int = 15_000  # until an instance without beats is unhealthy, at the next check
    gone_ms: int = 30_000  # until it is removed, at the next check
    beat_check_ms: int = 5_000  # between two of these checks

    @classmethod
    def of(cls, profile: str, lease_ms: int | None = None) -> Timings:
        """`lease_ms`: the lease of the target if it differs from the default."""
        release = release_of(profile)
        delay_ms, retry_ms = (2000, 5000) if release is not None and release < (2, 2, 0) else (1000, 3000)
        documented_ms = 30_000 if release is not None and release < (2, 0, 3) else 180_000
        return cls(
            sync_ms=delay_ms + _TICK_MS,
            resync_ms=_TICK_MS,
            retry_ms=retry_ms + _TICK_MS,
            verify_ms=5000,
            view_ms=600,
            push_ms=500 + _TICK_MS,
            lease_ms=lease_ms or documented_ms,
        )
