"""The data that a node keeps of changes of ip:port clients: what they replaced, and who has not acknowledged them."""

from __future__ import annotations

import pytest

from distro_impl.distro.unacknowledged import MAX_REVISIONS, NONE_BEFORE, UnacknowledgedChanges

CLIENT, OTHER, A, B = "10.0.0.1:80#true", "10.0.0.2:80#true", "127.0.0.1:8848", "127.0.0.1:8858"


def after(*revisions: int, removed: tuple[str, ...] = ()) -> UnacknowledgedChanges:
    """One change after the other, the first of them of a new client; both members have acknowledged nothing."""
    changes = UnacknowledgedChanges(lambda client_id: client_id in removed)
    for before, revision in zip((NONE_BEFORE, *revisions), revisions, strict=False):
        changes.accepted(CLIENT, (A, B))
        changes.supersede(CLIENT, (before,), revision)
    return changes


def test_a_member_is_pending_until_it_acknowledges_the_last_change() -> None:
    changes = after(1, 2)
    changes.acknowledged(CLIENT, A, 1)
    assert changes.is_pending(CLIENT, A)
    changes.acknowledged(CLIENT, A, 2)
    assert [changes.is_pending(CLIENT, member) for member in (A, B)] == [False, True]


def test_what_was_replaced_is_known_after_all_have_acknowledged_the_change() -> None:
    changes = after(1, 2)
    for member in (A, B):
        changes.acknowledged(CLIENT, member, 2)
    assert [changes.is_superseded(CLIENT, revision) for revision in (NONE_BEFORE, 1, 2)] == [False, True, False]


def test_a_content_that_comes_back_is_not_superseded() -> None:
    assert after(1, 2, 1).superseded(CLIENT) == [2]


def test_a_removal_supersedes_the_client_and_is_known_until_its_tombstone_ends() -> None:
    removed = [CLIENT]
    changes = UnacknowledgedChanges(removed.__contains__)
    changes.supersede(CLIENT, (1,), 2)
    changes.ended(CLIENT, 2, was_owner=True)
    assert changes.superseded(CLIENT) == [1, 2]
    removed.clear()
    changes.ended(OTHER, 1, was_owner=True)
    assert changes.superseded(CLIENT) == []


@pytest.mark.parametrize("comes_back", [False, True])
def test_what_was_superseded_is_forgotten_with_the_tombstone_also_when_no_other_client_ends(comes_back: bool) -> None:
    removed = [CLIENT]
    changes = UnacknowledgedChanges(removed.__contains__)
    changes.supersede(CLIENT, (1,), 2)
    changes.ended(CLIENT, 2, was_owner=False)
    removed.clear()
    if comes_back:
        changes.accepted(CLIENT, (A,))
        changes.supersede(CLIENT, (NONE_BEFORE,), 3)
    assert not changes.is_superseded(CLIENT, 1)
    assert changes.superseded(CLIENT) == []


def test_a_client_that_comes_back_before_that_keeps_what_is_superseded() -> None:
    changes = after(1, 2, removed=(CLIENT,))
    changes.ended(CLIENT, 2, was_owner=False)
    assert not changes.is_pending(CLIENT, A)
    changes.supersede(CLIENT, (), 3)
    changes.ended(OTHER, 1, was_owner=True)
    assert changes.superseded(CLIENT) == [1, 2]


def test_the_end_of_an_owned_client_is_pending_until_it_is_acknowledged() -> None:
    changes = after(1, 2)
    changes.ended(CLIENT, 2, was_owner=True)
    changes.acknowledged(CLIENT, A, None)
    assert [changes.is_pending(CLIENT, member) for member in (A, B)] == [False, True]
    changes.keep_members((A,))
    assert not changes.is_pending(CLIENT, B)


def test_a_sender_without_a_name_has_acknowledged_everything() -> None:
    assert not after(1, 2).is_pending(CLIENT, None)


def test_superseded_revisions_are_bounded_and_the_first_stay_while_a_member_has_not_acknowledged() -> None:
    last = 3 * MAX_REVISIONS
    changes = after(*range(1, last + 1))
    assert changes.superseded(CLIENT) == [*range(1, MAX_REVISIONS), last - 1]
    changes.keep_members(())
    changes.supersede(CLIENT, (last,), last + 1)
    assert changes.superseded(CLIENT) == [*range(2, MAX_REVISIONS), last - 1, last]
