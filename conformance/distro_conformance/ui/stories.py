"""Three guided walks: the stories of the documentation, each the shortest run that a search finds, told step by step.

What a step means depends on its kind only, so every walk is told in the same words and not only these three.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from distro_conformance.diagrams.stories import STORIES as FOUND
from distro_conformance.ui.walk import Setting, Walk


@dataclass(frozen=True, slots=True)
class Story:
    profile: str
    property_id: str
    title: str
    begins: str
    ends: str


_TOLD: Mapping[str, tuple[str, str]] = {
    "healthy-change": (
        "Two members, one client. Press “go on” and watch which node holds what.",
        (
            "The copy on b is as the owner has it, a second and a tick after the change. This is all that "
            "Distro does when nothing goes wrong."
        ),
    ),
    "lost-change": (
        (
            "Release 2.0.4. A request will be acknowledged and not applied: a handler that swallows an "
            "exception is enough."
        ),
        (
            "b holds the first content and acknowledged the second. Verify of 2.0.4 asks only whether "
            "some copy is there, so b says yes every five seconds, and the wrong copy stays for ever. "
            "From 2.1.2 verify compares revisions."
        ),
    ),
    "swallowed-delete": (
        "Release 2.2.4. A CHANGE is on its way when its client leaves: watch the task of a for b.",
        (
            "The retry of the CHANGE took the place of the queued DELETE, found no client any more and "
            "sent nothing. Nobody will tell b: it holds an instance that is gone until the lease of its "
            "copy ends."
        ),
    ),
}
STORIES: Mapping[str, Story] = MappingProxyType(
    {
        name.removesuffix(".svg"): Story(profile, property_id, title, *_TOLD[name.removesuffix(".svg")])
        for name, (profile, property_id, title) in FOUND.items()
    }
)

MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "connect": "A client connects: this node is its owner now, and holds it as native.",
        "change": (
            "The owner changes its own record and counts the revision up. For each other member it queues "
            "a CHANGE task, in place of one that is queued already."
        ),
        "disconnect": (
            "The connection is gone, and with it the client. The owner queues a DELETE task for each other member."
        ),
        "task": (
            "The sync delay is over: the task reads what the client publishes now and sends that. Where "
            "the client is gone, a CHANGE task sends nothing."
        ),
        "deliver CHANGE": "The member puts what it is sent in place of its copy, renews the lease, and acknowledges.",
        "deliver DELETE": "The member removes its copy, and acknowledges.",
        "deliver VERIFY": (
            "The member looks whether it holds that client; which test that is depends on the release. "
            "Success renews the lease, failure makes the owner send everything again."
        ),
        "verify round": "Every five seconds the owner asks each member about each client that it owns.",
        "swallow": "The request is acknowledged and not applied. The owner believes that the member has it.",
        "lose": "The request is lost on the way. The owner does not know that yet.",
        "time out": "No answer came in three seconds: the owner queues the task again.",
    }
)
"""By kind of transition."""


def begin(name: str) -> Walk:
    """The walk of a story, all of it ahead. Searches a small cluster: a second or two."""
    story = STORIES[name]
    return Walk.begin(Setting(story.profile)).find(story.property_id)


def next_story(name: str) -> str | None:
    """They are told in one order: each needs what the one before showed."""
    names = list(STORIES)
    return names[names.index(name) + 1] if name != names[-1] else None


def meaning(walk: Walk) -> str:
    """Of the step that was taken last."""
    return MEANINGS.get(walk.taken[-1].chain.kind, "") if walk.at else ""
