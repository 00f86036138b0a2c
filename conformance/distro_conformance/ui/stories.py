"""Three guided walks: the stories of the documentation, each the shortest run that a search finds, step by step.

The meaning of a step depends only on its kind, so the texts serve every walk and not only these three.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from distro_conformance.ui.walk import Setting, Walk


@dataclass(frozen=True, slots=True)
class Story:
    profile: str
    property_id: str
    title: str
    begins: str
    ends: str


STORIES: Mapping[str, Story] = {
    "healthy-change": Story(
        profile="strict",
        property_id="REACH-SECOND-REVISION",
        title="A change of a client arrives at the other node",
        begins="Two nodes, a and b, and one client. Press “go on” and watch what each node holds.",
        ends=(
            "The copy on b equals the owner's record, a little more than a second after the change. This is all "
            "that Distro does when nothing goes wrong."
        ),
    ),
    "lost-change": Story(
        profile="nacos-2.0.4",
        property_id="INV-CONV",
        title="A change that is acknowledged and lost, and confirmed for ever",
        begins=(
            "Release 2.0.4. A request will be acknowledged but not applied: a handler that swallows an "
            "exception is enough."
        ),
        ends=(
            "b holds the first content, although it acknowledged the second. In 2.0.4 a VERIFY asks only "
            "whether a copy exists, so b confirms it every five seconds, and the wrong copy stays for ever. "
            "From 2.1.2 on, a VERIFY compares revisions."
        ),
    ),
    "swallowed-delete": Story(
        profile="nacos-2.2.4",
        property_id="INV-DELETE",
        title="The retry of a CHANGE replaces the queued DELETE",
        begins="Release 2.2.4. A CHANGE is on its way when its client disconnects: watch the task that a has for b.",
        ends=(
            "The retry of the CHANGE replaced the queued DELETE. When it was executed the client was gone, so "
            "it sent nothing. b gets no DELETE and holds an instance that is gone until the lease of its copy "
            "ends."
        ),
    ),
}

MEANINGS: Mapping[str, str] = {
    "connect": "A client connects. This node is its owner now, and holds it as native.",
    "change": (
        "The owner changes its own record, and the revision with it. For each other node it queues "
        "a CHANGE task, which replaces one that is already queued."
    ),
    "disconnect": ("The connection ends, and the client with it. The owner queues a DELETE task for each other node."),
    "task": (
        "The sync delay is over: the task reads what the client publishes now and sends it. If the client "
        "is gone, a CHANGE task sends nothing."
    ),
    "deliver CHANGE": "The node replaces its copy by the received content, renews the lease, and acknowledges.",
    "deliver DELETE": "The node removes its copy, and acknowledges.",
    "deliver VERIFY": (
        "The node compares its copy with the VERIFY; what exactly it compares depends on the release. "
        "Success renews the lease; after a failure the owner sends the whole client again."
    ),
    "verify round": "Every five seconds the owner asks each other node about each client that it owns.",
    "swallow": "The request is acknowledged but not applied. The owner believes that the node has it.",
    "lose": "The request is lost on its way. The owner does not know that yet.",
    "time out": "There was no answer for three seconds: the owner queues the task again.",
}
"""The meaning of each kind of transition."""


def begin(name: str) -> Walk:
    """The walk of a story, at its beginning. The search of the small cluster takes a second or two."""
    story = STORIES[name]
    return Walk.begin(Setting(story.profile)).find(story.property_id)


def next_story(name: str) -> str | None:
    """The next story; the order is fixed, since each story builds on the previous one."""
    names = list(STORIES)
    return names[names.index(name) + 1] if name != names[-1] else None


def meaning(walk: Walk) -> str:
    """The meaning of the last step."""
    return MEANINGS.get(walk.taken[-1].chain.kind, "") if walk.at else ""
