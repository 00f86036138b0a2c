"""The release of a profile's name, and spans of releases.

A profile is named after the release whose behaviour it has, `nacos-2.2.4`; the one without a number is `strict`, the
protocol with every known defect repaired, and counts as later than every release.
"""

from __future__ import annotations

from distro_model.value import value

STRICT = "strict"
Release = tuple[int, ...]


class UnreadableReleaseError(ValueError):
    """The text is not the name of a profile."""


def release_of(profile: str) -> Release | None:
    """(2, 2, 4) for `nacos-2.2.4`, None for `strict`. Raises UnreadableReleaseError."""
    if profile == STRICT:
        return None
    name, _, version = profile.partition("-")
    if name != "nacos" or not all(part.isdecimal() for part in version.split(".")):
        raise UnreadableReleaseError(
            f"no profile {profile!r}; profiles are called nacos-2.2.4, for instance, or {STRICT}"
        )
    return parsed(version)


def parsed(version: str) -> Release:
    return tuple(int(part) for part in version.split("."))


@value(frozen=True, slots=True)
class Span:
    """Releases from `since` to `until`, both included; None is open. `strict` is in a span without an end."""

    since: str | None = None
    until: str | None = None

    def __contains__(self, profile: str) -> bool:
        release = release_of(profile)
        if release is None:
            return self.until is None
        return not (
            (self.since is not None and release < parsed(self.since))
            or (self.until is not None and release > parsed(self.until))
        )

    def __str__(self) -> str:
        if self.until is not None:
            return f"from {self.since} to {self.until}" if self.since else f"up to {self.until}"
        return f"from {self.since} on" if self.since else "all releases"
