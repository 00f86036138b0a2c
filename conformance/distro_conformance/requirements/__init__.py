"""What a node must do, one sentence and one check each.

`requirement` is the table and its rules; every other file here holds the requirements of one area and is named in the
import below, which is all it takes to add one.
"""

from distro_conformance.requirements import (
    batch,
    connection,
    errors,
    holder,
    ip_port,
    lease,
    lists,
    load,
    members,
    native,
    ownership,
    push,
    refusal,
    register,
    retry,
    revision,
    setup,
    snapshot,
    sync,
    verify,
)
from distro_conformance.requirements.requirement import MAY, MUST, SHOULD, Level, Requirement, registered, requirement

_AREAS = (
    batch,
    connection,
    errors,
    holder,
    ip_port,
    lease,
    lists,
    load,
    members,
    native,
    ownership,
    push,
    refusal,
    register,
    retry,
    revision,
    setup,
    snapshot,
    sync,
    verify,
)


def all_requirements() -> tuple[Requirement, ...]:
    """By id."""
    return registered()


__all__ = ["MAY", "MUST", "SHOULD", "Level", "Requirement", "all_requirements", "requirement"]
