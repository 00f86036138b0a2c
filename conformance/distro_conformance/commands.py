"""Printed commands that a user can run: quoted for a shell, with options that the command line accepts."""

from __future__ import annotations

import shlex

from distro_conformance.release import listed_profile
from distro_conformance.verdict import UsageError
from distro_conformance.version import NAME


def command(verb: str, *arguments: object, profile: str | None = None, mutant: str | None = None) -> str:
    """`arguments` are quoted where a shell would split them.

    A profile that the command line refuses is left out: the target reported it itself, and will report it again.
    """
    named = {"--profile": profile if profile and _can_be_named(profile) else None, "--mutant": mutant}
    options = [word for option, value in named.items() if value for word in (option, value)]
    return shlex.join([NAME, *verb.split(), *map(str, arguments), *options])


def _can_be_named(profile: str) -> bool:
    try:
        listed_profile(profile)
    except UsageError:
        return False
    return True
