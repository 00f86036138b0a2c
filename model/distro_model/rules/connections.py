"""The ejector: idle connections are probed, and closed if they do not answer.

A check probes all idle connections at once and waits on a latch that every answer counts down. The callback of an
answer records it and counts it, on another thread than the one that waits; other events may occur between the two, so
they are two events. Their order is the only difference of B39.
"""

from __future__ import annotations

from distro_model.events import ConnectionCheckDue, ConnectionCheckEnds, DetectionAnswered, DetectionHandled
from distro_model.node import Detection, NodeState, Step
from distro_model.profile import Profile
from distro_model.rules.clients import disconnected
from distro_model.rules.rule import instead_of, rule


@rule("check-connections", source="ejector-check; NacosRuntimeConnectionEjector.ejectOutdatedConnection")
def on_connection_check_due(node: NodeState, event: ConnectionCheckDue, _: Profile) -> Step:
    """A connection that was idle for long is probed.

    One check at a time: the thread that waits for its answers is the one that would start the next.
    """
    if node.detections:
        return Step(node)
    connected = {client.name for client in node.clients if client.native}
    asked = tuple(Detection(name) for name in event.idle if name in connected)
    return Step(node.changed(detections=asked, checked_ms=event.at_ms) if asked else node)


@instead_of(on_connection_check_due)
def checks_no_connection(node: NodeState, _event: ConnectionCheckDue, _: Profile) -> Step:
    """No connection is ever probed (B03)."""
    return Step(node)


@rule("hear-a-sign-of-life", source="ejector-answer; ConnectionManager.refreshActiveTime")
def on_detection_answered(node: NodeState, event: DetectionAnswered, profile: Profile) -> Step:
    """The first half of the handling of an answer; the second may come later (`on_detection_handled`)."""
    asked = node.detection(event.client)
    if asked is None or asked.recorded or asked.counted:
        return Step(node)
    return Step(node.with_detection(first_half(asked, profile)))


@rule("record-a-sign-of-life", source="ejector-answer")
def first_half(asked: Detection, _: Profile) -> Detection:
    """An answer is recorded before the check that waits for it continues."""
    return Detection(asked.client, recorded=True)


@instead_of(first_half)
def counts_first(asked: Detection, _: Profile) -> Detection:
    """An answer is counted first, and the check may continue before it is recorded (B39)."""
    return Detection(asked.client, counted=True)


@rule("finish-a-sign-of-life", source="ejector-answer")
def on_detection_handled(node: NodeState, event: DetectionHandled, _: Profile) -> Step:
    """The missing half. After the end of the check it changes nothing any more."""
    asked = node.detection(event.client)
    if asked is None or asked.recorded == asked.counted:
        return Step(node)
    return Step(node.with_detection(Detection(asked.client, recorded=True, counted=True)))


@rule("eject-connections", source="ejector-check; ConnectionManager.unregister")
def on_connection_check_ends(node: NodeState, event: ConnectionCheckEnds, profile: Profile) -> Step:
    """Every connection that was probed, and is not among those that answered, is closed."""
    silent = [detection.client for detection in node.detections if not detection.recorded]
    node = node.changed(detections=(), checked_ms=event.at_ms)
    for client in silent:
        node = disconnected(node, client, event.at_ms, profile)
    return Step(node)
