"""What a node does with what it is sent and asked.

| bug | what has to be seen |
|---|---|
| B01 | before it, somebody's message was applied to the client on the node that holds its connection |
| B02 | the node acknowledged the content that it does not have, and confirmed its copy in a verify |
| B33 | the node answered another one's load before it was loaded |
"""

from __future__ import annotations

from distro_spark.story import GONE, OWN_CONNECTION, Story, Told
from distro_spark.symptoms.look import CHANGES, lives
from distro_traces.event import STATE_KINDS, Kind, Outcome


def native_overwritten(story: Story, told: Told) -> bool:
    """B01. A node holds the client's connection, and between two starts applied to it what was sent for a copy."""
    for node in story.by_node:
        for life in lives(story, node, None):
            connected = False
            for row in life:
                connected = connected or row.kind in OWN_CONNECTION
                if connected and row.kind == Kind.REPLICA_APPLIED and row.at_ms <= told.last.at_ms:
                    return True
    return False


def confirmed_unread(story: Story, told: Told) -> bool:
    """B02. What a client publishes that is still there is missing or old although what carried it was acknowledged, and
    a verify confirmed the copy. Who should hold something of it has not left, whatever it does in that millisecond."""
    seen = told.evidence
    own = [row for row in story.by_node.get(str(seen["owner"]), []) if row.kind in STATE_KINDS]
    before = [row for row in own if row.at_ms < told.last.at_ms]
    return (
        bool(before)
        and (seen["expected"] != "nothing" or before[-1].kind not in GONE)
        and seen["last_operation"] in CHANGES
        and seen["last_outcome"] == Outcome.SUCCESS
        and seen["last_verify"] == Outcome.SUCCESS
    )


def gave_a_snapshot(_: Story, told: Told) -> bool:
    """B33. It is the node's answer to another one's load; that it verifies before it is loaded is no known failure."""
    return told.last.kind == Kind.REPLY_SENT and told.last.operation == "SNAPSHOT"
