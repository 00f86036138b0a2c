"""The health check of connections to peers: the evidence that a connection works, and when it is tested.

A node has one connection to each peer and sends all its requests there. When there has been no such evidence for a
while, the connection is tested, and replaced if the test fails. All Distro traffic is asynchronous and is no evidence
in either direction, unless a release counts its own sending as activity (B35).
"""

from __future__ import annotations

from distro_model.events import Send
from distro_model.node import NodeState, Step
from distro_model.profile import Profile
from distro_model.rules.rule import rule


@rule("note-activity", source="connection-client-check; RpcClient, GrpcConnection (2.0.0)")
def with_activity(step: Step, at_ms: int, _: Profile) -> Step:
    """The time at which each target of this step was last sent a request."""
    sent = dict(step.node.sent) | {output.target: at_ms for output in step.outputs if isinstance(output, Send)}
    return Step(step.node.changed(sent=tuple(sorted(sent.items()))), step.outputs)


@rule("test-a-connection", source="connection-client-check; RpcClient.healthCheck")
def is_tested(node: NodeState, peer: str, at_ms: int, profile: Profile) -> bool:
    """Whether the health check that is due now tests the connection to this peer.

    With time frozen no check is ever late enough after a request, as in a cluster whose verify rounds never stop.
    """
    sent_ms = dict(node.sent).get(peer)
    return sent_ms is None or at_ms - sent_ms > profile.health_check_ms
