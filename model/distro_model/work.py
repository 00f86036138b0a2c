"""Work that a node has begun and not finished, where a profile lets other events come in between (B05).

In `strict` there is none: what one request or one task does is one step. A release handles requests on several threads
without a lock, so that two of these can overlap.
"""

from __future__ import annotations

from distro_model.messages import Content
from distro_model.value import value


@value(frozen=True, slots=True, order=True)
class Apply:
    """A CHANGE on its way into a copy: `done` of its steps are behind it (`rules/torn.py`)."""

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
