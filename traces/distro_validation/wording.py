"""A row about one client in the terms of the model, and a state of the model in the terms of a row.

The content is a digest, which suffices for the rules: a client publishes one thing, named by its digest. Where a row
does not show whether it was one instance or a batch, both are tried.
"""

from __future__ import annotations

from collections.abc import Iterable

from distro_model.events import (
    BatchRegistered,
    ClientConnected,
    ClientDisconnected,
    InstanceDeregistered,
    InstanceRegistered,
)
from distro_model.events import Event as Input
from distro_model.messages import Change, Content, Delete, Request, Verify, batch_of, instances_of
from distro_traces.content import NOTHING_PUBLISHED
from distro_traces.event import BATCH, Event, Kind

_BATCHES, _SERVICE = "batches", "content"  # of batches alone, and of whatever there is

View = tuple[bool, int, str] | None
"""The state of the client on a node: native, revision, digest."""

OWN = frozenset({Kind.CLIENT_CONNECTED, Kind.CLIENT_CHANGED, Kind.CLIENT_DISCONNECTED})


def own_inputs(event: Event, client: str) -> tuple[str, tuple[Input, ...]]:
    if event.kind is Kind.CLIENT_CONNECTED:
        return "connect", (ClientConnected(event.at_ms, client),)
    if event.kind is Kind.CLIENT_DISCONNECTED:
        return "disconnect", (ClientDisconnected(event.at_ms, client),)
    if event.digest in (None, NOTHING_PUBLISHED):
        return "deregister", (InstanceDeregistered(event.at_ms, client, _SERVICE),)
    content = event.digest or ""  # a trace does not say whether it is one instance or a batch of them
    one = InstanceRegistered(event.at_ms, client, _SERVICE, content)
    return "register", (one, BatchRegistered(event.at_ms, client, _SERVICE, (content,)))


def requests_of(event: Event, client: str) -> tuple[Request, ...]:
    """The possible contents of the request; empty where the row does not show any."""
    match event.operation:
        case "CHANGE" | "ADD" if event.digest is not None and event.revision is not None:
            contents = batches_of(event.digest) if event.detail == BATCH else (content_of(event.digest),)
            return tuple(Change(client, event.revision, content) for content in contents)
        case "DELETE":
            return (Delete(client),)
        case "VERIFY" if event.revision is not None:
            return (Verify(client, event.revision),)
    return ()


def content_of(content: str) -> Content:
    return () if content == NOTHING_PUBLISHED else ((_SERVICE, content),)


def batches_of(content: str) -> tuple[Content, ...]:
    """Of several services only some have a batch, and the row does not say whether that is in place of an instance."""
    batch = batch_of([content])
    return ((_SERVICE, batch),), ((_BATCHES, batch), (_SERVICE, content))


def of_one_service(content: Content) -> Content:
    """Without the batches that `batches_of` puts beside the rest."""
    return tuple(each for each in content if each[0] != _BATCHES)


def digest_of(content: Content) -> str:
    return instances_of(content[0][1])[0] if content else NOTHING_PUBLISHED


def false_guard(event: Event, view: View) -> str:
    """The first thing in which the model's state and the row differ, as a sentence."""
    if event.digest is None:
        return "the client is gone then"
    if view is None:
        return "the client is held then"
    if event.owned not in (None, view[0]):
        return "it is native" if event.owned else "it is a copy"
    if event.digest != view[2]:
        return "this is its content"
    return "this is its revision"


def views_text(views: Iterable[View]) -> str:
    return " or ".join(sorted(_view_text(view) for view in views))


def _view_text(view: View) -> str:
    if view is None:
        return "nothing"
    return f"{'native' if view[0] else 'a copy'}, revision {view[1]}, {view[2]}"


def row_text(event: Event) -> str:
    if event.digest is None and event.revision is None:
        return "nothing"
    native = {True: "native, ", False: "a copy, ", None: ""}[event.owned]
    return f"{native}revision {event.revision}, {event.digest}"
