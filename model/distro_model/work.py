"""Unfinished work of a node, where a profile lets other events come in between (B05).

In `strict` there is none: one request or one task is one step. A release handles requests on several threads without a
lock, so that two of these can overlap.
"""

from __future__ import annotations

from distro_model.messages import Content
from distro_model.value import value


@value(frozen=True, slots=True, order=True)
class Apply:
    """A CHANGE that is being applied to a copy: `done` of its steps are complete (`rules/torn.py`)."""

    source: str
    client: str
    revision: int
    content: Content
    done: int = 0


@value(frozen=True, slots=True, order=True)
class Read:
    """A CHANGE being made for `target`: `content` was read while the revision was `revision`."""

    client: str
    target: str
    revision: int
    content: Content
