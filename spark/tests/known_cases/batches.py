"""A batch over a single instance: B19; with near misses."""

from __future__ import annotations

from distro_spark.symptoms import batches as known
from distro_traces.event import BATCH, BATCH_OVER_SINGLE, Kind, Outcome
from known_cases.run import Run, case

# B19: a node that is never loaded


def leases_end_while_the_owner_waits(
    run: Run,
    *,
    times: int = 5,
    verifies: bool = False,
    answer: Outcome = Outcome.SUCCESS,
    raises: str | None = BATCH_OVER_SINGLE,
    why: str | None = "lease",
) -> None:
    """It asks for a snapshot so often, one a minute, and the lease ends after five minutes."""
    run.registered()
    for number in range(times):
        load = {"operation": "SNAPSHOT", "message": f"m-load-{number}"}
        run.row("a", Kind.REQUEST_SENT, peer="b", **load)
        run.row("a", Kind.REPLY_RECEIVED, peer="b", **load, outcome=answer, detail=raises)
        run.after(60_000)
    run.after((5 - times) * 60_000)
    if verifies:
        run.send("b", "VERIFY", revision=1)
    run.row("b", Kind.REPLICA_REMOVED, client="c1", detail=why)


@case("nacos-2.1.1", INV_CONV=["B19"])
def a_copy_whose_owner_asks_for_snapshots_for_ever(run: Run) -> None:
    leases_end_while_the_owner_waits(run)


@case("nacos-2.3.1", INV_CONV=[None])
def a_copy_whose_owner_asks_for_ever_where_it_was_repaired(run: Run) -> None:
    leases_end_while_the_owner_waits(run)


@case("nacos-2.1.1", (known.never_loaded, "went on asking"), INV_CONV=[None])
def a_copy_whose_owner_was_loaded_and_verifies_none(run: Run) -> None:
    leases_end_while_the_owner_waits(run, times=1)


@case("nacos-2.1.1", (known.never_loaded, "went on asking"), INV_CONV=[None])
def a_copy_whose_owner_was_loaded_at_the_second_time_and_verifies_none(run: Run) -> None:
    leases_end_while_the_owner_waits(run, times=2)


@case("nacos-2.1.1", (known.never_loaded, "each raised"), INV_CONV=[None])
def a_copy_whose_owner_asks_for_ever_though_no_batch_raised(run: Run) -> None:
    leases_end_while_the_owner_waits(run, raises=None)


@case("nacos-2.1.2", (known.never_loaded, "with no member"), INV_CONV=[None])
def a_copy_that_ends_though_its_owner_verified(run: Run) -> None:
    leases_end_while_the_owner_waits(run, verifies=True)


@case("nacos-2.1.2", (known.never_loaded, "given snapshots"), INV_CONV=[None])
def a_copy_whose_owner_is_refused_each_snapshot(run: Run) -> None:
    leases_end_while_the_owner_waits(run, answer=Outcome.FAIL)


@case("nacos-2.1.2", (known.never_loaded, "ended with its lease"), INV_CONV=[None])
def a_copy_that_is_removed_while_its_owner_asks_for_snapshots_for_ever(run: Run) -> None:
    leases_end_while_the_owner_waits(run, why=None)


# B19: a batch over a single instance


def a_change_that_is_left_out(
    run: Run, detail: str | None, *, before: str | None = None, later: str | None = None, is_held: bool = False
) -> None:
    """b, which may have come to hold `before`, acknowledges B, and applies nothing; then `later`."""
    run.registered()
    if before is not None:
        run.apply("b", 1, before)
    if is_held:
        run.change(2, "B", detail=BATCH)
        run.apply("bc", 2, "B")
    else:
        run.change(2, "B", detail=detail)
    run.send("b", "CHANGE", revision=2, digest="B", detail=detail)
    run.apply("c", 2, "B")
    if later is not None:
        run.apply("b", 1, later)


@case("nacos-2.3.0", INV_ACK=["B19"], INV_CONV=["B19"])
def a_batch_that_is_left_out(run: Run) -> None:
    a_change_that_is_left_out(run, BATCH)


@case("nacos-2.3.0", (known.left_out, "has a batch"), INV_ACK=[None], INV_CONV=[None])
def what_is_left_out_and_is_no_batch(run: Run) -> None:
    a_change_that_is_left_out(run, None)


@case("nacos-2.3.1", INV_ACK=[None], INV_CONV=[None])
def a_batch_that_is_left_out_where_it_was_repaired(run: Run) -> None:
    a_change_that_is_left_out(run, BATCH)


@case("nacos-2.3.0", (known.left_out, "published by its client"), INV_ACK=["B19"], INV_CONV=[None])
def a_batch_that_is_left_out_where_the_copy_has_what_was_never_published(run: Run) -> None:
    a_change_that_is_left_out(run, BATCH, before="X")


@case("nacos-2.3.0", (known.left_out, "applied nothing since"), INV_CONV=[None])
def a_copy_that_is_older_than_what_was_left_out(run: Run) -> None:
    """It fell back later, and of that no batch can be the reason."""
    run.connect()
    run.change(0, "O")
    a_change_that_is_left_out(run, BATCH, later="O")


@case("nacos-2.3.0", (known.left_out, "applied nothing since"), INV_CONV=[None])
def a_copy_of_which_a_probe_reads_something_else_after_what_was_left_out(run: Run) -> None:
    run.connect()
    run.change(0, "O")
    a_change_that_is_left_out(run, BATCH)
    run.row("b", Kind.OBSERVED, client="c1", revision=1, digest="O")


@case("nacos-2.2.4", (known.left_out, "carries another content"), INV_CONV=[None])
def a_change_that_is_never_sent_after_a_batch_that_brought_nothing_new(run: Run) -> None:
    a_change_that_is_left_out(run, BATCH, is_held=True)
    run.change(3, "C")
    run.apply("c", 3, "C")


@case("nacos-2.2.4", (known.left_out, "has a batch"), INV_ACK=[None, "B19"], INV_CONV=[None])
def a_change_that_is_left_out_after_a_batch_that_was_left_out(run: Run) -> None:
    a_change_that_is_left_out(run, BATCH)
    run.change(3, "C")
    run.send("b", "CHANGE", revision=3, digest="C")
    run.apply("c", 3, "C")


@case("nacos-2.2.4", INV_LIVE=["B17"])
def a_copy_that_was_loaded_twice_by_the_node_that_had_the_client_before_it_crashed(run: Run) -> None:
    run.registered()
    run.row("a", Kind.NODE_STOPPED, detail="crash")
    run.row("a", Kind.NODE_STARTED, detail="a,b,c")
    run.apply("a", 1, "A", "m1")
    run.after(60_000)
    run.apply("a", 1, "A", "m2")
    run.after(122_000)
    run.row("a", Kind.REPLICA_REMOVED, client="c1", detail="lease")


def kept_out_until_the_lease_ends(run: Run, *details: str | None, why: str | None = "lease") -> None:
    run.registered()
    run.change(2, "B")
    run.apply("c", 2, "B")
    run.after(170_000)
    for detail in details:
        run.send("b", "CHANGE", revision=2, digest="B", detail=detail)
        run.after(4_000)
    run.row("b", Kind.REPLICA_REMOVED, client="c1", detail=why)


@case("nacos-2.3.0", INV_LIVE=["B19"])
def a_batch_that_is_kept_out_until_the_lease_ends(run: Run) -> None:
    kept_out_until_the_lease_ends(run, BATCH, BATCH, BATCH)


@case("nacos-2.3.0", INV_CONV=["B19"])
def a_copy_that_is_gone_since_batches_were_kept_out(run: Run) -> None:
    kept_out_until_the_lease_ends(run, BATCH, BATCH, BATCH)


@case("nacos-2.3.0", (known.left_out_until_lease, "no other CHANGE"), INV_CONV=[None])
def a_copy_that_is_gone_since_a_batch_and_something_else_were_kept_out(run: Run) -> None:
    kept_out_until_the_lease_ends(run, BATCH, None, BATCH)


@case("nacos-2.3.1", INV_CONV=[None])
def a_copy_that_is_gone_where_batches_can_be_taken(run: Run) -> None:
    kept_out_until_the_lease_ends(run, BATCH, BATCH, BATCH)


@case("nacos-2.3.0", (known.left_out_until_lease, "no other CHANGE"), INV_LIVE=[None])
def a_batch_and_something_else_that_are_kept_out(run: Run) -> None:
    kept_out_until_the_lease_ends(run, BATCH, None, BATCH)


@case("nacos-2.1.1", INV_LIVE=[None])
def a_batch_that_is_kept_out_where_any_copy_is_confirmed(run: Run) -> None:
    kept_out_until_the_lease_ends(run, BATCH, BATCH, BATCH)


@case("nacos-2.3.0", (known.left_out_until_lease, "ended with its lease"), INV_CONV=[None])
def a_copy_that_is_removed_though_its_lease_has_not_ended(run: Run) -> None:
    kept_out_until_the_lease_ends(run, BATCH, BATCH, BATCH, why=None)


@case("nacos-2.3.0", (known.left_out_until_lease, "CHANGEs with a batch came"), INV_LIVE=[None], INV_CONV=[None])
def a_copy_that_expires_and_no_batch_was_kept_out(run: Run) -> None:
    run.registered()
    run.after(170_000)
    for _ in range(3):
        run.arrives("VERIFY", revision=1)
        run.after(4_000)
    run.row("b", Kind.REPLICA_REMOVED, client="c1", detail="lease")
