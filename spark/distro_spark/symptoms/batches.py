"""B19: what carries a batch raises where the copy has a single instance under that service.

| seen as | what has to be seen |
|---|---|
| a CHANGE | the node acknowledged and left out a CHANGE that carries a batch, maybe until the lease ended |
| a CHANGE | or what came after one that its owner had not counted, where no row says what carries a batch |
| a snapshot | the copy's lease ended; its owner had verified nobody and asked for one again after it was given one |
"""

from __future__ import annotations

from collections.abc import Sequence

from distro_spark.history import END, LEASE, ClientHistory, Row, Violation, succeeded
from distro_spark.symptoms.look import (
    CHANGES,
    count_before,
    counts_not_all,
    handled_requests,
    own_of,
    remembered,
    states_of,
)
from distro_traces.event import BATCH, Kind

_LOAD_AGAIN_MS = 25_000
"""A load that was not complete begins again 30 s later, before 2.2.1 after a minute."""


def batch_not_put_over(story: ClientHistory, told: Violation) -> bool:
    """B19. The node acknowledged a CHANGE that has a batch, did nothing with it, and holds what it held then. Or it
    holds nothing since the lease of that ended, before which nothing but such batches came."""
    states = [row for row in states_of(story, told.node) if row.at_ms <= told.last.at_ms]
    if states and states[-1].detail == LEASE:
        held_since = max((row.seq for row in states[:-1]), default=0)
        return _only_batches_came(story, told.node, range(held_since, states[-1].seq))
    held_since = states[-1].seq if states else 0
    return any(
        request.detail == BATCH and request.digest != told.evidence["actual"] and request.seq > held_since
        for request in _left_out(story, told.node)
        if request.at_ms <= told.last.at_ms
    )


def batch_never_put_over(story: ClientHistory, told: Violation) -> bool:
    """B19. Verified in vain: since the copy was renewed for the last time, every CHANGE that should have mended it was
    acknowledged and left out, and each has a batch."""
    is_in_vain = told.evidence["signature"] == "verified in vain"
    return is_in_vain and _only_batches_came(story, told.node, range(told.first.seq, told.last.seq))


def _only_batches_came(story: ClientHistory, node: str, between: range) -> bool:
    """Some CHANGEs came between these `seq`, each with a batch, and were acknowledged and left out."""
    requests = [row for row, _, _ in handled_requests(story, node) if row.seq in between]
    changes = [row for row in requests if row.operation in CHANGES]
    left_out = {row.seq for row in _left_out(story, node)}
    return bool(changes) and all(row.detail == BATCH and row.seq in left_out for row in changes)


def uncounted_not_put_over(story: ClientHistory, told: Violation) -> bool:
    """B19, where no row says what carries a batch. The node acknowledged a CHANGE, did nothing with it, and holds what
    it held. Since its owner published that, it published something without counting it."""
    held = told.evidence["actual"]
    for request in _left_out(story, told.node):
        if request.digest == held or request.at_ms > told.last.at_ms:
            continue
        own = [row for row in own_of(story, request.peer or "") if row.at_ms <= request.at_ms]
        last = max((place for place, row in enumerate(own) if row.digest == held), default=len(own))
        if counts_not_all(own[last:]):
            return True
    return False


@remembered
def _left_out(story: ClientHistory, node: str) -> Sequence[Row]:
    """The CHANGEs that the node answered, and no row says that it holds anything else by then."""
    states, found = states_of(story, node), []
    for request, begin, end in handled_requests(story, node):
        is_answered = request.operation in CHANGES and request.digest is not None and end != END
        if is_answered and count_before(states, begin + 1) == count_before(states, end):
            found.append(request)
    return found


def owner_never_loaded(story: ClientHistory, told: Violation) -> bool:
    """B19. The copy's lease ended. Its owner, since it was started, has verified nobody: it was given a snapshot and
    asked for one again, since what stands in it raises there."""
    owner = str(told.evidence["owner"])
    ended = [row for row in story.by_node.get(told.node, []) if row.detail == LEASE and row.at_ms <= told.last.at_ms]
    if not ended:
        return False
    since_ms = max((row.at_ms for row in story.resets.get(owner, ()) if row.at_ms <= ended[-1].at_ms), default=0)
    life = [row for row in story.by_node.get(owner, []) if since_ms <= row.at_ms <= ended[-1].at_ms]
    loads = [row for row in story.loads.get(owner, ()) if since_ms <= row.at_ms <= ended[-1].at_ms]
    given = next((row.at_ms for row in loads if succeeded(row)), END)
    asks_again = any(row.kind == Kind.REQUEST_SENT and row.at_ms - given >= _LOAD_AGAIN_MS for row in loads)
    return asks_again and not any((row.kind, row.operation) == (Kind.REQUEST_SENT, "VERIFY") for row in life)
