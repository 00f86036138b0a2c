"""A sync is sent again until it is acknowledged or its receiver is no longer a member (docs/protocol #sync-retry,
#sync-result)."""

from __future__ import annotations

from distro_conformance.node.kit import Kit, services
from distro_conformance.node.peer import Arrival
from distro_conformance.node.player import PlayedClient
from distro_conformance.node.replies import ERROR, FAILURE, NEVER, SUCCESS, UNREADABLE, Reply
from distro_conformance.requirements.requirement import MUST, requirement

_STRANGE = Reply("NobodyKnowsThisResponse", {"resultCode": 200, "errorCode": 0, "success": True})
_SPARE_MS = 500
_FAILURES = 9
"""After the first one: more than the retries that callers usually have."""
_UNANSWERED = 20
"""More requests at once than a small pool of threads has threads; releases and the reference node take more."""
_QUEUED_MS = 100
"""Until the node has an answer, and the retry waits."""
_BEFORE_THE_TIME_OUT_MS, _ATTEMPTS = 500, 3


@requirement("DISTRO-RETRY-001", MUST, "#sync-retry, #sync-result")
async def failed_change_is_repeated(kit: Kit) -> None:
    """A CHANGE that is answered with failure is sent again after the retry delay, however often it fails, until it
    succeeds."""
    client, _, sent = await _changed(kit, FAILURE)
    for answer in (*_FAILURES * [FAILURE], SUCCESS):
        kit.answer("CHANGE", answer, client=client.id)
        before, within_ms = sent, kit.timings.retry_ms + _SPARE_MS
        sent = await kit.eventually_sent("CHANGE", client.id, after=before, within_ms=within_ms)
        kit.require_apart(before.at_ms, sent.at_ms, kit.timings.retry_ms - 2 * _SPARE_MS, "the two")
    more = kit.arrival("CHANGE", client.id, after=sent)
    await kit.never(more, for_ms=kit.timings.retry_ms + _SPARE_MS, what=f"{client.id} was acknowledged")


@requirement("DISTRO-RETRY-002", MUST, "#sync-retry, #sync-result")
async def change_after_an_error_is_repeated(kit: Kit) -> None:
    """A CHANGE that is answered with an ErrorResponse is sent again."""
    client, _, first = await _changed(kit, ERROR)
    await kit.eventually_sent("CHANGE", client.id, after=first, within_ms=kit.timings.retry_ms + _SPARE_MS)


@requirement("DISTRO-RETRY-003", MUST, "#sync-retry, #sync-result")
async def unanswered_change_is_repeated(kit: Kit) -> None:
    """A CHANGE that is not answered in time is sent again."""
    client, _, first = await _changed(kit, NEVER)
    within_ms = kit.timings.call_ms + kit.timings.retry_ms + _SPARE_MS
    await kit.eventually_sent("CHANGE", client.id, after=first, within_ms=within_ms)


@requirement("DISTRO-RETRY-004", MUST, "#sync-unreadable", bug="B42")
async def change_with_a_strange_answer_is_repeated(kit: Kit) -> None:
    """A CHANGE whose answer is of a type that the sender does not know is sent again."""
    await _repeated(kit, _STRANGE)


@requirement("DISTRO-RETRY-009", MUST, "#sync-unreadable", bug="B42")
async def change_with_an_unreadable_answer_is_repeated(kit: Kit) -> None:
    """A CHANGE whose answer cannot be read is sent again."""
    await _repeated(kit, UNREADABLE)


async def _repeated(kit: Kit, answer: Reply) -> None:
    client, _, first = await _changed(kit, answer)

    async def otherwise() -> dict[str, object]:
        arrivals = kit.arrivals(client.id)
        later = arrivals[arrivals.index(first) + 1 :]
        return {"verified": any(each.is_about("VERIFY", client.id) for each in later)}

    await kit.eventually(
        kit.arrival("CHANGE", client.id, after=first),
        within_ms=kit.timings.call_ms + kit.timings.retry_ms,
        what=f"the CHANGE of {client.id} again",
        otherwise=otherwise,
    )


@requirement("DISTRO-RETRY-005", MUST, "#sync-retry")
async def failed_delete_is_repeated(kit: Kit) -> None:
    """A DELETE that fails in any way is sent again, as a DELETE, however often it fails, until it succeeds."""
    client, _, _ = await kit.replicated()
    kit.answer("DELETE", FAILURE, client=client.id)
    await kit.leave(client)
    sent = await kit.arrange_sent("DELETE", client.id)
    for answer in (*_FAILURES // 3 * [ERROR, NEVER, FAILURE], SUCCESS):
        within_ms = kit.timings.call_ms + kit.timings.retry_ms + _SPARE_MS
        kit.answer("DELETE", answer, client=client.id)
        sent = await kit.eventually_sent("DELETE", client.id, after=sent, within_ms=within_ms)
    more = kit.arrival("DELETE", client.id, after=sent)
    await kit.never(more, for_ms=kit.timings.retry_ms + _SPARE_MS, what=f"DELETE of {client.id} was acknowledged")


@requirement("DISTRO-RETRY-006", MUST, "#sync-retry, #sync-null-data", bug="B24")
async def delete_survives_a_failing_change(kit: Kit) -> None:
    """The DELETE of a client reaches a member even if an earlier CHANGE to that member fails meanwhile."""
    for _ in range(_ATTEMPTS):
        before_ms, taken_ms = await _deleted_while_a_change_fails(kit)
        if taken_ms < before_ms:
            break
    kit.assume(taken_ms < before_ms, "a CHANGE that fails while the DELETE waits", f"this machine took {taken_ms} ms")


async def _deleted_while_a_change_fails(kit: Kit) -> tuple[int, int]:
    """Expects the DELETE of a client that leaves before the time-out of its CHANGE. Returns by how much it left before,
    and what the machine took from the registration to the DELETE: if that is more, the CHANGE may have failed before
    the client left, or after the DELETE."""
    began_ms = kit.target.clock.now_ms()
    client, _, change = await _changed(kit, NEVER)
    fails_ms = change.at_ms + kit.timings.call_ms
    await kit.sleep(max(0, fails_ms - _BEFORE_THE_TIME_OUT_MS - kit.target.clock.now_ms()))
    before_ms = fails_ms - kit.target.clock.now_ms()
    await kit.leave(client)
    kit.answer("CHANGE", SUCCESS, client=client.id)

    async def otherwise() -> dict[str, object]:
        arrivals = kit.arrivals(client.id)
        return {
            "here": [each.call.operation for each in arrivals if each.call and each.call.operation != "VERIFY"],
            "other": any(each.is_about("DELETE", client.id) for each in kit.arrivals(client.id, kit.other)),
        }

    await kit.eventually(
        kit.arrival("DELETE", client.id),
        within_ms=2 * kit.timings.retry_ms + kit.timings.sync_ms,
        what=f"a DELETE of {client.id} at {kit.peer.address}",
        otherwise=otherwise,
    )
    return before_ms, kit.target.clock.slack_since(began_ms)


@requirement("DISTRO-RETRY-007", MUST, "#sync-retry, #sync-workers")
async def silence_delays_no_other_member(kit: Kit) -> None:
    """A member that does not answer, however many requests it was sent, delays nothing that is sent to another
    member."""
    more = [await kit.client() for _ in range(_UNANSWERED)]
    client, _, _ = await _changed(kit, NEVER)
    service = kit.service()
    for each in (client, *more):
        kit.answer("CHANGE", NEVER, client=each.id)
        await each.register(service, "10.0.0.1", 80)
    for each in (client, *more):
        announced = kit.arrival(
            "CHANGE", each.id, at=kit.other, carrying=lambda replica: service in (services(replica) or ())
        )
        what = f"a CHANGE of {each.id} with {service} at {kit.other.address}"
        await kit.eventually(announced, within_ms=kit.timings.sync_ms, what=what)


@requirement("DISTRO-RETRY-008", MUST, "#sync-execute, #sync-merge, #sync-retry")
async def repetition_is_current(kit: Kit) -> None:
    """A retry sends the state that the client has at the time of the retry, and a change that is made while a CHANGE
    waits for its retry is sent after the delay of a change, which is shorter."""
    for _ in range(_ATTEMPTS):
        client, service, first = await _changed(kit, FAILURE)
        other = kit.service()
        await kit.sleep(_QUEUED_MS)
        await client.register(other, "10.0.0.1", 80)
        waited_ms = kit.target.clock.now_ms() - first.at_ms
        kit.note(f"it registers {other}, {waited_ms} ms after the CHANGE that waits for its retry")
        is_soon = waited_ms < kit.timings.retry_ms - kit.timings.sync_ms - 2 * _SPARE_MS
        if is_soon:
            break
    within_ms = (kit.timings.sync_ms if is_soon else kit.timings.retry_ms) + _SPARE_MS
    second = await kit.eventually_sent("CHANGE", client.id, after=first, within_ms=within_ms)
    kit.require(services(second.replica) == sorted((service, other)), f"{service} and {other}", second)


async def _changed(kit: Kit, answer: Reply) -> tuple[PlayedClient, str, Arrival]:
    """A new client, its service, and its CHANGE; `peer` answers this CHANGE and all later ones with `answer`."""
    client, service = await kit.publisher()
    kit.answer("CHANGE", answer, client=client.id)
    return client, service, await kit.arrange_sent("CHANGE", client.id)
