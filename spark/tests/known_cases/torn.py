"""A change that is read or applied in steps: B05; with near misses."""

from __future__ import annotations

from distro_spark.symptoms import torn as known
from distro_traces.event import Kind, Outcome
from known_cases.run import EMPTY, Run, case

# B05: a CHANGE that is applied in steps


def a_snapshot_of_c(run: Run, *, while_applied: bool, carried: str = "A", gives: str | None = "m-load") -> None:
    """b loads from c, to which a's first CHANGE comes; what c gives has the revision of that, and nothing in it."""
    run.connect()
    run.change(1, "A")
    load_while_a_change_comes(run, 1, carried, while_applied=while_applied)
    run.apply("b", 1, EMPTY, gives)
    run.apply("b", 1, "A")


def load_while_a_change_comes(run: Run, revision: int, digest: str, *, while_applied: bool) -> None:
    """b loads from c, which gives its answer while it applies a's CHANGE, or before that comes."""
    change = {"message": f"m{revision}", "operation": "CHANGE", "client": "c1"}
    load = {"message": "m-load", "operation": "SNAPSHOT"}
    run.row("b", Kind.REQUEST_SENT, peer="c", **load)
    run.row("c", Kind.REQUEST_RECEIVED, peer="b", **load)
    if while_applied:
        run.row("c", Kind.REQUEST_RECEIVED, peer="a", **change, revision=revision, digest=digest)
    run.row("c", Kind.REPLY_SENT, peer="b", **load, outcome=Outcome.SUCCESS)
    if not while_applied:
        run.row("c", Kind.REQUEST_RECEIVED, peer="a", **change, revision=revision, digest=digest)
    run.apply("c", revision, digest, f"m{revision}")
    run.row("c", Kind.REPLY_SENT, peer="a", **change, outcome=Outcome.SUCCESS)
    run.row("b", Kind.REPLY_RECEIVED, peer="c", **load, outcome=Outcome.SUCCESS)


@case("nacos-2.3.2", INV_REV=["B05"])
def a_snapshot_that_is_made_while_a_change_is_applied(run: Run) -> None:
    a_snapshot_of_c(run, while_applied=True)


@case("nacos-2.3.2", (known.given_torn, "handling a CHANGE to that revision"), INV_REV=[None])
def a_snapshot_that_is_made_before_a_change_came(run: Run) -> None:
    a_snapshot_of_c(run, while_applied=False)


@case("nacos-2.3.2", (known.given_torn, "came with a snapshot"), INV_REV=[None])
def a_content_that_no_snapshot_brings_while_a_change_is_applied(run: Run) -> None:
    a_snapshot_of_c(run, while_applied=True, gives=None)


@case("nacos-2.3.2", (known.given_torn, "carried another content"), INV_REV=[None, None])
def a_snapshot_with_the_whole_of_a_change_that_has_another_content_than_its_owner(run: Run) -> None:
    a_snapshot_of_c(run, while_applied=True, carried=EMPTY)


def a_snapshot_of_c_that_b_passes_on(
    run: Run,
    *,
    while_applied: bool = True,
    carried: str = "A",
    gives: str | None = "m-load",
    brings: bool = True,
    content: str = EMPTY,
) -> None:
    """c gives b a copy with nothing in it, and loads from b when it is started again."""
    run.connect()
    run.change(1, "A")
    load_while_a_change_comes(run, 1, carried, while_applied=while_applied)
    run.apply("b", 1, EMPTY, gives)
    c_loads_from_b(run, content, revision=1, brings=brings)


@case("nacos-2.3.2", INV_CONV=["B05", "B05"])
def a_torn_snapshot_that_is_passed_on(run: Run) -> None:
    a_snapshot_of_c_that_b_passes_on(run)


@case("nacos-2.3.2", (known.torn_passed_on, "the content came with a snapshot"), INV_CONV=[None, "B05"])
def a_content_like_that_of_a_torn_snapshot_which_no_snapshot_brings(run: Run) -> None:
    a_snapshot_of_c_that_b_passes_on(run, brings=False)


@case("nacos-2.3.2", (known.torn_passed_on, "handling a CHANGE to that revision"), INV_CONV=[None, None])
def a_snapshot_with_nothing_that_is_passed_on_and_was_made_before_the_change_came(run: Run) -> None:
    a_snapshot_of_c_that_b_passes_on(run, while_applied=False)


@case(
    "nacos-2.3.2",
    (known.torn_passed_on, "at the node that sent the snapshot, the content came with a snapshot"),
    INV_CONV=[None, None],
)
def a_content_that_no_snapshot_brought_and_that_is_passed_on(run: Run) -> None:
    a_snapshot_of_c_that_b_passes_on(run, gives=None)


@case("nacos-2.3.2", (known.torn_passed_on, "held that content"), INV_CONV=[None, "B05"])
def a_snapshot_with_another_content_than_a_torn_snapshot_had_brought(run: Run) -> None:
    a_snapshot_of_c_that_b_passes_on(run, content="X")


@case("nacos-2.3.2", (known.torn_passed_on, "carried another content"), INV_CONV=[None, None])
def a_snapshot_with_the_whole_of_an_empty_change_that_is_passed_on(run: Run) -> None:
    a_snapshot_of_c_that_b_passes_on(run, carried=EMPTY)


def a_change_around_a_snapshot(run: Run, *, comes_first: bool) -> None:
    """b loads from c, which holds A, and is sent a's CHANGE to B, which comes before the snapshot is taken or after."""
    run.connect()
    run.change(1, "A")
    run.apply("c", 1, "A", "m1")
    run.change(2, "B")
    change, load = {"operation": "CHANGE", "client": "c1"}, {"message": "m-load", "operation": "SNAPSHOT"}
    run.row("b", Kind.REQUEST_SENT, peer="c", **load)
    run.row("c", Kind.REQUEST_RECEIVED, peer="b", **load)
    run.row("c", Kind.REPLY_SENT, peer="b", **load, outcome=Outcome.SUCCESS)
    run.row("a", Kind.REQUEST_SENT, peer="b", message="m2", **change, revision=2, digest="B")
    for step in ("change", "load") if comes_first else ("load", "change"):
        if step == "change":
            run.row("b", Kind.REQUEST_RECEIVED, peer="a", message="m2", **change, revision=2, digest="B")
        else:
            run.row("b", Kind.REPLY_RECEIVED, peer="c", **load, outcome=Outcome.SUCCESS)
            run.apply("b", 1, "A", "m-load")
    run.apply("b", 2, "A", "m2")
    run.row("b", Kind.REPLY_SENT, peer="a", message="m2", **change, outcome=Outcome.SUCCESS)
    run.row("a", Kind.REPLY_RECEIVED, peer="b", message="m2", **change, outcome=Outcome.SUCCESS)


@case("nacos-2.3.0", INV_REV=["B05"], INV_ACK=["B05"])
def a_snapshot_that_is_taken_while_a_change_is_applied(run: Run) -> None:
    a_change_around_a_snapshot(run, comes_first=True)


@case("nacos-2.3.0", (known.mixed, "while the node handled"), INV_REV=[None], INV_ACK=[None])
def a_snapshot_that_is_taken_before_a_change_comes(run: Run) -> None:
    a_change_around_a_snapshot(run, comes_first=False)


def a_snapshot_with_the_revision_of_before(
    run: Run, *, while_applied: bool = True, revision: int = 1, gives: str | None = "m-load", content: str = "B"
) -> None:
    """c holds A under revision 1; b loads from c, to which a's CHANGE to B comes; what c gives has B, or `content`."""
    run.connect()
    run.change(1, "A")
    run.apply("c", 1, "A", "m1")
    run.change(2, "X")
    run.change(3, "B")
    load_while_a_change_comes(run, 3, "B", while_applied=while_applied)
    run.apply("b", revision, content, gives)
    run.apply("b", 3, "B")


@case("nacos-2.5.1", INV_REV=["B05"])
def a_snapshot_that_is_made_between_the_content_and_the_revision(run: Run) -> None:
    a_snapshot_with_the_revision_of_before(run)


@case("nacos-2.5.1", INV_REV=["B05"])
def a_snapshot_that_is_made_between_two_services_of_a_change(run: Run) -> None:
    """Its content is what the client published in between."""
    a_snapshot_with_the_revision_of_before(run, content="X")


@case("nacos-2.5.1", (known.given_early, "handling a CHANGE with that content"), INV_REV=[None])
def a_snapshot_with_a_content_that_its_client_has_never_published(run: Run) -> None:
    a_snapshot_with_the_revision_of_before(run, content="Y")


@case("nacos-2.5.1", (known.given_early, "handling a CHANGE with that content"), INV_REV=[None])
def a_snapshot_with_a_content_that_has_not_come_yet(run: Run) -> None:
    a_snapshot_with_the_revision_of_before(run, while_applied=False)


@case("nacos-2.5.1", (known.given_early, "came with a snapshot"), INV_REV=[None])
def a_content_under_the_revision_of_before_that_no_snapshot_brings(run: Run) -> None:
    a_snapshot_with_the_revision_of_before(run, gives=None)


@case("nacos-2.5.1", (known.given_early, "held that revision"), INV_REV=[None])
def a_snapshot_with_a_revision_that_its_source_never_held(run: Run) -> None:
    a_snapshot_with_the_revision_of_before(run, revision=2)


def first_of_two(run: Run) -> str:
    """The first CHANGE has arrived at b when the second change is made; c has both."""
    run.registered()
    run.change(2, "B")
    first = run.arrives("CHANGE", revision=2, digest="B")
    run.change(3, "C")
    run.apply("c", 3, "C")
    return first


def two_changes(run: Run, *, at_once: bool, later: str | None = None) -> str:
    """The second one, which is returned, leaves what the first one carried, under its own revision."""
    first = first_of_two(run)
    if at_once:
        second = run.arrives("CHANGE", revision=3, digest="C")
    run.apply("b", 2, "B", first)
    run.answers("CHANGE", first)
    if not at_once:
        second = run.arrives("CHANGE", revision=3, digest="C")
    run.apply("b", 3, "B", second)
    run.answers("CHANGE", second)
    if later is not None:
        run.apply("b", 3, later)
    return second


@case("nacos-2.5.1", INV_ACK=["B05"], INV_REV=["B05"], INV_CONV=["B05"])
def two_changes_that_are_applied_at_once(run: Run) -> None:
    two_changes(run, at_once=True)


@case("nacos-2.2.4", INV_REV=["B05"], INV_CONV=["B05"])
def an_older_change_that_ends_last(run: Run) -> None:
    """The later CHANGE, a batch, brings revision 3; the last step is that of the older one, whose row shows it."""
    first = first_of_two(run)
    second = run.arrives("CHANGE", revision=3, digest="C")
    run.apply("b", 3, "C", second)
    run.answers("CHANGE", second)
    run.apply("b", 3, "B", first)
    run.answers("CHANGE", first)


@case("nacos-2.2.4", (known.mixed, "not what that sync carried"), INV_REV=[None, None], INV_CONV=[None])
def a_change_that_carried_the_older_content_under_the_later_revision(run: Run) -> None:
    first = first_of_two(run)
    run.after(1_000)
    second = run.arrives("CHANGE", revision=3, digest="B")
    run.apply("b", 2, "B", first)
    run.answers("CHANGE", first)
    run.apply("b", 3, "B", second)
    run.answers("CHANGE", second)


@case("nacos-2.5.1", (known.mixed, "while the node handled"), INV_ACK=[None], INV_REV=[None], INV_CONV=[None])
def two_changes_that_are_applied_one_after_the_other(run: Run) -> None:
    two_changes(run, at_once=False)


@case("nacos-2.5.1", (known.mixed, "had handled both"), INV_REV=[None, "B05"], INV_CONV=[None])
def something_else_that_is_applied_after_two_changes_at_once(run: Run) -> None:
    two_changes(run, at_once=True, later="X")


@case("nacos-2.5.1", (known.mixed, "not what that sync carried"), INV_CONV=[None])
def a_change_that_is_lost_after_two_that_were_applied_at_once(run: Run) -> None:
    """What b holds is what the later one of them carried, so its steps were not mixed with those of the other."""
    run.registered()
    run.change(2, "B")
    first = run.arrives("CHANGE", revision=2, digest="B")
    second = run.arrives("CHANGE", revision=2, digest="B")
    run.apply("bc", 2, "B", second)
    run.answers("CHANGE", first)
    run.answers("CHANGE", second)
    run.change(3, "C")
    run.apply("c", 3, "C")


@case("nacos-2.5.1", INV_REV=[None], INV_CONV=[None])
def two_changes_of_which_neither_the_content_nor_the_answer_is_recorded(run: Run) -> None:
    """As in logs. That a call is not seen to end excuses nothing, and that it is not seen what it carried neither."""
    run.registered()
    for content in ("B", "X"):
        message = run.arrives("CHANGE")
        run.change(2, "B")
        run.apply("b", 2, content, message)
    run.apply("c", 2, "B")


@case("nacos-2.5.1", INV_REV=[None], INV_CONV=[None])
def two_changes_of_which_no_answer_is_recorded(run: Run) -> None:
    run.registered()
    run.change(2, "B")
    for content in ("B", "X"):
        message = run.arrives("CHANGE", revision=2, digest="B")
        run.apply("b", 2, content, message)
    run.apply("c", 2, "B")


@case("nacos-2.5.1", (known.mixed, "not what that sync carried"), INV_REV=[None], INV_CONV=[None])
def two_changes_at_once_of_which_it_is_not_recorded_what_they_carried(run: Run) -> None:
    run.registered()
    run.change(2, "B")
    run.apply("c", 2, "B")
    first, second = run.arrives("CHANGE"), run.arrives("CHANGE")
    run.apply("b", 2, "X", second)
    run.answers("CHANGE", first)
    run.answers("CHANGE", second)


def c_loads_from_b(run: Run, content: str = "B", *, revision: int = 3, brings: bool = True) -> None:
    """c is started again, and is given what b holds."""
    run.row("c", Kind.NODE_STOPPED, detail="crash")
    run.row("c", Kind.NODE_STARTED, detail="a,b,c")
    load = {"message": "m-load", "operation": "SNAPSHOT"}
    run.row("c", Kind.REQUEST_SENT, peer="b", **load)
    run.row("b", Kind.REQUEST_RECEIVED, peer="c", **load)
    run.row("b", Kind.REPLY_SENT, peer="c", **load, outcome=Outcome.SUCCESS)
    run.row("c", Kind.REPLY_RECEIVED, peer="b", **load, outcome=Outcome.SUCCESS)
    run.apply("c", revision, content, "m-load" if brings else None)


@case("nacos-2.3.1", INV_REV=["B05", "B05"], INV_CONV=["B05", "B05"])
def a_snapshot_of_two_changes_that_were_applied_at_once(run: Run) -> None:
    two_changes(run, at_once=True)
    c_loads_from_b(run)


@case("nacos-2.3.1", (known.given_mixed, "came with a snapshot"), INV_REV=[None, "B05"], INV_CONV=[None, "B05"])
def a_content_like_that_of_two_changes_at_once_which_no_snapshot_brings(run: Run) -> None:
    two_changes(run, at_once=True)
    c_loads_from_b(run, brings=False)


@case("nacos-2.3.1", (known.given_mixed, "held that content"), INV_REV=[None, "B05"], INV_CONV=[None, "B05"])
def a_snapshot_with_another_content_than_two_changes_at_once_have_left(run: Run) -> None:
    two_changes(run, at_once=True)
    c_loads_from_b(run, "X")


@case("nacos-2.3.1", (known.given_mixed, "while the node handled"), INV_REV=[None, None], INV_CONV=[None, None])
def a_snapshot_of_two_changes_that_were_applied_one_after_the_other(run: Run) -> None:
    two_changes(run, at_once=False)
    c_loads_from_b(run)


@case(
    "nacos-2.3.1", (known.given_mixed, "not what that sync carried"), INV_REV=[None, None, None], INV_CONV=[None, None]
)
def a_snapshot_of_a_change_that_carried_the_older_content_under_the_later_revision(run: Run) -> None:
    a_change_that_carried_the_older_content_under_the_later_revision(run)
    c_loads_from_b(run)


@case("nacos-2.3.1", (known.given_mixed, "had handled both"), INV_REV=[None, None, "B05"], INV_CONV=[None, None])
def a_snapshot_of_something_else_that_was_applied_after_two_changes_at_once(run: Run) -> None:
    second = two_changes(run, at_once=True)
    run.apply("b", 3, "X", second)
    c_loads_from_b(run, "X")


def a_message_behind_its_revision(run: Run, *, waits_ms: int = 0, sent: str = "A", applied: str = "A") -> None:
    run.registered()
    run.change(2, "B")
    run.apply("c", 2, "B")
    run.after(waits_ms)
    message = run.send("b", "CHANGE", revision=2, digest=sent)
    run.apply("b", 2, applied, message)


@case("nacos-2.5.1", INV_REV=["B05", "B05"], INV_CONV=["B05"])
def a_content_that_is_read_just_before_its_revision_is(run: Run) -> None:
    a_message_behind_its_revision(run)


@case("nacos-2.5.1", (known.read_torn, "left in the moment"), INV_REV=[None, None], INV_CONV=[None])
def an_old_content_that_is_sent_long_after_the_change(run: Run) -> None:
    a_message_behind_its_revision(run, waits_ms=2_000)


@case("nacos-2.5.1", (known.read_torn, "left its owner with"), INV_REV=[None, "B05", "B05"], INV_CONV=[None])
def another_content_than_was_read_just_before_its_revision_was(run: Run) -> None:
    a_message_behind_its_revision(run, applied="X")


@case("nacos-2.5.1", (known.read_torn, "the content of before"), INV_REV=[None, None], INV_CONV=[None])
def a_content_that_is_sent_in_the_moment_of_a_change_and_was_never_published(run: Run) -> None:
    a_message_behind_its_revision(run, sent="X", applied="X")


@case("nacos-2.5.1", INV_REV=["B05", "B05", "B05"], INV_CONV=["B05", "B05"])
def a_snapshot_of_a_content_that_is_read_just_before_its_revision_is(run: Run) -> None:
    a_message_behind_its_revision(run)
    c_loads_from_b(run, "A", revision=2)


@case(
    "nacos-2.5.1", (known.given_read_torn, "came with a snapshot"), INV_REV=[None, "B05", "B05"], INV_CONV=[None, "B05"]
)
def a_content_like_one_that_is_read_just_before_its_revision_is_which_no_snapshot_brings(run: Run) -> None:
    a_message_behind_its_revision(run)
    c_loads_from_b(run, "A", revision=2, brings=False)


@case("nacos-2.5.1", (known.given_read_torn, "held that content"), INV_REV=[None, "B05", "B05"], INV_CONV=[None, "B05"])
def a_snapshot_with_another_content_than_was_read_just_before_its_revision(run: Run) -> None:
    a_message_behind_its_revision(run)
    c_loads_from_b(run, "X", revision=2)


@case("nacos-2.5.1", (known.given_read_torn, "left in the moment"), INV_REV=[None, None, None], INV_CONV=[None, None])
def a_snapshot_of_an_old_content_that_is_sent_long_after_the_change(run: Run) -> None:
    a_message_behind_its_revision(run, waits_ms=2_000)
    c_loads_from_b(run, "A", revision=2)


@case(
    "nacos-2.5.1",
    (known.given_read_torn, "left its owner with"),
    INV_REV=[None, None, "B05", "B05"],
    INV_CONV=[None, None],
)
def a_snapshot_of_another_content_than_was_read_just_before_its_revision_was(run: Run) -> None:
    a_message_behind_its_revision(run, applied="X")
    c_loads_from_b(run, "X", revision=2)


@case(
    "nacos-2.5.1", (known.given_read_torn, "the content of before"), INV_REV=[None, None, None], INV_CONV=[None, None]
)
def a_snapshot_of_a_content_that_is_sent_in_the_moment_of_a_change_and_was_never_published(run: Run) -> None:
    a_message_behind_its_revision(run, sent="X", applied="X")
    c_loads_from_b(run, "X", revision=2)


@case(
    "nacos-2.5.1", (known.given_read_torn, "held that content"), INV_REV=[None, "B05", "B05"], INV_CONV=["B05", "B05"]
)
def a_snapshot_of_a_content_that_is_read_just_before_its_revision_under_a_later_one(run: Run) -> None:
    a_message_behind_its_revision(run)
    run.change(3, "C")
    c_loads_from_b(run, "A", revision=3)


def a_change_and(operation: str, run: Run, *, at_once: bool, is_held: bool = False, **content: object) -> None:
    """The CHANGE is not applied, and another call about the client comes before it is answered, or afterwards."""
    run.connect()
    run.change(1, "A")
    run.apply("bc" if is_held else "c", 1, "O" if is_held else "A")
    change = run.arrives("CHANGE", revision=1, digest="A")
    if at_once:
        other = run.arrives(operation, **content)
        run.answers(operation, other)
    run.answers("CHANGE", change)
    if not at_once:
        other = run.arrives(operation, **content)
        run.answers(operation, other)


@case("nacos-2.5.1", INV_ACK=["B05"])
def a_delete_between_two_steps_of_a_change(run: Run) -> None:
    a_change_and("DELETE", run, at_once=True)


@case("nacos-2.5.1", (known.removed, "a DELETE of the client"), INV_ACK=[None])
def a_delete_after_a_change_that_was_not_applied(run: Run) -> None:
    a_change_and("DELETE", run, at_once=False)


@case("nacos-2.5.1", (known.removed, "holds nothing"), INV_ACK=[None, None])
def a_delete_that_removes_nothing_while_a_change_is_not_applied(run: Run) -> None:
    a_change_and("DELETE", run, at_once=True, is_held=True)


@case("nacos-2.5.1", INV_VERIFY=["B05"])
def a_verify_between_two_steps_of_a_change(run: Run) -> None:
    a_change_and("VERIFY", run, at_once=True, revision=1)


@case("nacos-2.5.1", (known.confirmed, "a CHANGE of the client"), INV_VERIFY=[None])
def a_verify_after_a_change_that_was_not_applied(run: Run) -> None:
    a_change_and("VERIFY", run, at_once=False, revision=1)


@case("nacos-2.5.1", (known.confirmed, "that the verify asks for"), INV_VERIFY=[None])
def a_verify_of_a_revision_that_the_change_between_does_not_bring(run: Run) -> None:
    a_change_and("VERIFY", run, at_once=True, revision=2)


# B05 at the owner, which counts a change after it has made it


def a_change_that_is_sent_too_early(run: Run, then: str, after_ms: int = 0, before: int = 1) -> None:
    run.registered()
    if before > 1:
        run.change(before, "A0")
        run.apply("bc", before, "A0")
    run.send("b", "CHANGE", revision=1, digest="B")
    run.after(after_ms)
    run.change(before + 1, then)
    run.apply("bc", before + 1, then)


@case("nacos-2.2.4", INV_REV=["B05", "B05"])
def a_change_that_is_sent_before_it_is_counted(run: Run) -> None:
    a_change_that_is_sent_too_early(run, "B")


@case("nacos-2.2.4", (known.sent_early, "published next"), INV_REV=[None, None])
def a_content_that_the_owner_never_held(run: Run) -> None:
    a_change_that_is_sent_too_early(run, "C")


@case("nacos-2.2.4", (known.sent_early, "published next"), INV_REV=[None, None])
def a_content_that_the_owner_held_much_later(run: Run) -> None:
    a_change_that_is_sent_too_early(run, "B", after_ms=2_000)


@case("nacos-2.2.4", (known.sent_early, "published another content"), INV_REV=[None, None])
def a_content_that_is_sent_under_a_revision_that_the_owner_has_left(run: Run) -> None:
    a_change_that_is_sent_too_early(run, "B", before=2)


@case("nacos-2.2.4", (known.sent_early, "had sent that content"), INV_REV=[None, "B05", "B05"])
def a_content_that_comes_to_a_copy_before_its_owner_sends_it(run: Run) -> None:
    run.registered()
    run.apply("b", 1, "B")
    run.send("c", "CHANGE", revision=1, digest="B")
    run.change(2, "B")
    run.apply("bc", 2, "B")
