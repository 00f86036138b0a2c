"""The ejector: connections on which nothing came for a while are asked for a sign of life, and closed without one.

A check asks all idle connections at once and waits on a latch that every answer counts down. The callback of an answer
does two things, recording it and counting it, on another thread than the one that waits; between them anything may
happen, so they are two events. In which order they come is all the difference that B39 makes.
"""

from __future__ import annotations

from dataclasses import replace

from distro_model.events import ConnectionCheckDue, ConnectionCheckEnds, DetectionAnswered, DetectionHandled
from distro_model.node import Detection, NodeState, Step
from distro_model.profiles import Profile
from distro_model.rules.clients import disconnected
from distro_model.rules.rule import rule


@rule("connection check", source="wire-protocol.md 2.4; NacosRuntimeConnectionEjector.ejectOutdatedConnection")
def on_connection_check_due(node: NodeState, event: ConnectionCheckDue, profile: Profile) -> Step:
    """One check at a time: the thread that waits for its answers is the one that would start the next."""
    if not profile.detects_silent_connections or node.detections:
        return Step(node)
    connected = {client.name for client in node.clients if client.native}
    return Step(replace(node, detections=tuple(Detection(name) for name in event.idle if name in connected)))


@rule("detection answered", source="wire-protocol.md 2.4; known-bugs.md B39")
def on_detection_answered(node: NodeState, event: DetectionAnswered, profile: Profile) -> Step:
    asked = node.detection(event.client)
    if asked is None or asked.recorded or asked.counted:
        return Step(node)
    first = profile.records_answer_before_counting
    return Step(node.with_detection(Detection(asked.client, recorded=first, counted=not first)))


@rule("detection handled", source="wire-protocol.md 2.4; known-bugs.md B39")
def on_detection_handled(node: NodeState, event: DetectionHandled) -> Step:
    """Whatever half is missing. After the end of the check it changes nothing any more."""
    asked = node.detection(event.client)
    if asked is None or asked.recorded == asked.counted:
        return Step(node)
    return Step(node.with_detection(Detection(asked.client, recorded=True, counted=True)))


@rule("connection check ends", source="wire-protocol.md 2.4; ConnectionManager.unregister")
def on_connection_check_ends(node: NodeState, event: ConnectionCheckEnds, profile: Profile) -> Step:
    """Every connection that was asked, and is not among those that answered, is closed."""
    silent = [detection.client for detection in node.detections if not detection.recorded]
    node = replace(node, detections=())
    for client in silent:
        node = disconnected(node, client, event.at_ms, profile)
    return Step(node)
