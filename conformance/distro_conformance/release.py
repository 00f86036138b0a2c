"""Profiles as users and servers name them. What a name stands for is in `distro_model.release`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from distro_conformance.verdict import UsageError
from distro_model.release import STRICT, Release, Span, UnreadableReleaseError, parsed
from distro_model.release import release_of as _release_of

__all__ = [
    "STRICT",
    "Release",
    "Span",
    "disagreements",
    "judged_as",
    "listed_profile",
    "numbers_of",
    "release_of",
]


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

    Raises UsageError for releases that were never read. It is asked about what a user named; what a server says of
    itself is taken as it is.
    """
    from distro_impl.profiles import UnknownProfileError, listed  # noqa: PLC0415 - findings are light

    try:
        return listed(name).name
    except UnknownProfileError as error:
        raise UsageError(str(error)) from error


def judged_as(profile: str) -> str | None:
    """As which release a profile is judged, by the node and the model alike, where that is not the one of its name.

    None for a listed one, and for what cannot be judged, which is refused where it is looked up.
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
    """Where the two lists of releases would judge one release as two. `node`: the versions that it lists, in order;
    `model`: the spans that the model lists, as `2.2.1 to 2.2.4`.

    The model has fewer entries, as it leaves out what differs elsewhere: each of its spans says up to where it was
    read. So both must end at the same release, and each release of the node must be in a span.
    """
    spans = [tuple(map(parsed, (text.split(" to ") * 2)[:2])) for text in model]
    found = [f"the model was not read at {each}" for each in node if not any(a <= parsed(each) <= b for a, b in spans)]
    if (end := max(last for _, last in spans)) != parsed(node[-1]):
        found.append(f"the node's last release is {node[-1]}, the model's {'.'.join(map(str, end))}")
    return found
