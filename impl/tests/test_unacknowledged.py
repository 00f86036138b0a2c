"""The data that a node keeps of a change of an ip:port client until every member has acknowledged it."""

from __future__ import annotations

from distro_impl.distro.unacknowledged import MAX_REVISIONS, NONE_BEFORE, UnacknowledgedChanges

CLIENT, A, B = "10.0.0.1:80#true", "127.0.0.1:8848", "127.0.0.1:8858"


def after(*revisions: int) -> UnacknowledgedChanges:
    """One change after the other, the first of them of a new client; both members have acknowledged nothing."""
    changes = UnacknowledgedChanges()
    for before, revision in zip((NONE_BEFORE, *revisions), revisions, strict=False):
        changes.accepted(CLIENT, before, revision, (A, B))
    return changes


def test_replaced_content_is_known_for_each_member_until_it_acknowledges_a_later_change() -> None:
    changes = after(1, 2)
    changes.acknowledged(CLIENT, A, 2)
    assert [changes.is_replaced(CLIENT, member, 1) for member in (A, B)] == [False, True]
    assert [changes.is_pending(CLIENT, member) for member in (A, B)] == [False, True]


def test_a_member_that_acknowledges_an_old_change_may_still_hold_that_one() -> None:
    changes = after(1, 2, 3)
    changes.acknowledged(CLIENT, A, 2)
    assert [changes.is_replaced(CLIENT, A, revision) for revision in (1, 2)] == [False, True]


def test_a_content_that_comes_back_is_not_refused() -> None:
    changes = after(1, 2, 1)
    assert [changes.is_replaced(CLIENT, A, revision) for revision in (1, 2)] == [False, True]


def test_a_delete_that_was_acknowledged_leaves_nothing() -> None:
    changes = after(1, 2)
    changes.acknowledged(CLIENT, A, None)
    assert not changes.is_pending(CLIENT, A)
    assert changes.is_pending(CLIENT, B)
    changes.forget(CLIENT)
    assert not changes.is_pending(CLIENT, B)


def test_a_member_that_joins_may_have_what_another_has_not_acknowledged() -> None:
    changes = after(1, 2)
    changes.keep_members((B,))
    assert not changes.is_pending(CLIENT, A)
    changes.joined(CLIENT, A)
    assert changes.is_replaced(CLIENT, A, 1)


def test_a_sender_without_a_name_is_refused_nothing() -> None:
    changes = after(1, 2)
    assert not changes.is_replaced(CLIENT, None, 1)
    assert not changes.is_pending(CLIENT, None)


def test_requests_kept_for_a_member_that_never_answers_are_bounded_and_the_first_stays() -> None:
    last = 3 * MAX_REVISIONS
    changes = after(*range(1, last + 1))
    kept = [revision for revision in range(1, last + 1) if changes.is_replaced(CLIENT, A, revision)]
    assert kept == [*range(1, MAX_REVISIONS - 1), last - 1]
    changes.acknowledged(CLIENT, A, last - 1)
    assert changes.is_pending(CLIENT, A)
