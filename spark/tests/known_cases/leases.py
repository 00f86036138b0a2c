"""Copies that end too soon, and a connection that does not end: B03, B17, B31; with near misses."""

from __future__ import annotations

from distro_spark.symptoms import leases as known
from distro_traces.event import Kind
from known_cases.run import Run, case

# B17: a sync that renews nothing


@case("nacos-2.5.1", INV_LIVE=["B17"])
def a_copy_that_expires_though_a_change_has_just_come(run: Run) -> None:
    run.registered()
    run.after(170_000)
    run.change(2, "B")
    run.apply("bc", 2, "B")
    run.after(11_000)
    run.row("b", Kind.REPLICA_REMOVED, client="c1", detail="lease")


def a_copy_ends_between_two_rounds(
    run: Run, operation: str, checked_after_ms: int, *, changes: bool = True, why: str | None = "lease"
) -> None:
    run.registered()
    run.after(170_000)
    if changes:
        run.change(2, "B")
        run.send("b", operation, revision=2, digest="B")
        run.apply("bc", 2, "B")
    run.after(11_000)
    run.row("b", Kind.REPLICA_REMOVED, client="c1", detail=why)
    run.after(checked_after_ms)
    run.checkpoint()
    run.is_over = True


@case("nacos-2.5.1", INV_CONV=["B17"])
def a_copy_that_the_next_round_brings_back(run: Run) -> None:
    a_copy_ends_between_two_rounds(run, "CHANGE", 1000)


@case("nacos-2.5.1", (known.not_renewed_at_checkpoint, "a round of verification"), INV_CONV=[None])
def a_copy_that_no_round_brings_back(run: Run) -> None:
    a_copy_ends_between_two_rounds(run, "CHANGE", 20_000)


@case("nacos-2.5.1", (known.not_renewed_at_checkpoint, "a lease had passed"), INV_CONV=[None])
def a_copy_that_ends_though_it_was_verified(run: Run) -> None:
    a_copy_ends_between_two_rounds(run, "VERIFY", 1000)


@case("nacos-2.5.1", (known.not_renewed_at_checkpoint, "was applied to it"), INV_CONV=[None])
def a_copy_of_a_client_that_has_not_changed_and_ends_before_the_checkpoint(run: Run) -> None:
    a_copy_ends_between_two_rounds(run, "CHANGE", 1000, changes=False)


@case("nacos-2.5.1", (known.not_renewed_at_checkpoint, "ended with its lease"), INV_CONV=[None])
def a_copy_that_is_removed_before_the_checkpoint_and_not_by_its_lease(run: Run) -> None:
    a_copy_ends_between_two_rounds(run, "CHANGE", 1000, why=None)


@case("nacos-2.5.1", (known.not_renewed, "a lease had passed"), INV_LIVE=[None])
def a_copy_that_expires_half_a_minute_after_it_came_though_a_change_came(run: Run) -> None:
    run.registered()
    run.after(10_000)
    run.change(2, "B")
    run.apply("bc", 2, "B")
    run.after(21_000)
    run.row("b", Kind.REPLICA_REMOVED, client="c1", detail="lease")


@case("nacos-2.5.1", (known.not_renewed, "was applied to it"), INV_LIVE=[None])
def a_copy_that_expires_though_it_was_asked_for_three_times(run: Run) -> None:
    run.registered()
    run.after(170_000)
    for _ in range(3):
        run.arrives("VERIFY", revision=1)
        run.after(4_000)
    run.row("b", Kind.REPLICA_REMOVED, client="c1", detail="lease")


def a_connected_client_that_expires(run: Run) -> None:
    run.registered()
    run.after(31_000)
    run.row("a", Kind.REPLICA_REMOVED, client="c1", detail="lease")


@case("nacos-2.5.1", (known.not_renewed, "ended with its lease"), INV_LIVE=[None])
def a_client_that_is_connected_and_expires(run: Run) -> None:
    a_connected_client_that_expires(run)


@case("nacos-2.0.2", (known.half_a_minute, "ended with its lease"), INV_LIVE=[None])
def a_client_that_is_connected_and_expires_after_half_a_minute(run: Run) -> None:
    a_connected_client_that_expires(run)


@case("nacos-2.5.1", INV_LIVE=[None])
def a_copy_that_expires_though_it_is_new(run: Run) -> None:
    run.registered()
    run.after(31_000)
    run.row("b", Kind.REPLICA_REMOVED, client="c1", detail="lease")


# B31: a lease of half a minute


@case("nacos-2.0.2", INV_LIVE=["B31"])
def a_copy_that_expires_after_half_a_minute(run: Run) -> None:
    run.registered()
    run.after(31_000)
    run.row("b", Kind.REPLICA_REMOVED, client="c1", detail="lease")


@case("nacos-2.0.2", INV_LIVE=["B31"])
def a_copy_whose_half_a_minute_began_just_before_its_row(run: Run) -> None:
    run.registered()
    with run.at_one_instant():
        run.after(29_800)
        run.row("b", Kind.REPLICA_REMOVED, client="c1", detail="lease")


@case("nacos-2.0.2", INV_LIVE=["B17"])
def a_copy_that_expires_half_a_minute_after_a_verify_though_a_change_came(run: Run) -> None:
    run.registered()
    run.send("b", "VERIFY")
    run.after(10_000)
    run.apply("b", 2, "B")
    run.after(20_000)
    run.row("b", Kind.REPLICA_REMOVED, client="c1", detail="lease")


@case("nacos-2.0.2", (known.half_a_minute, "30 s"), INV_LIVE=[None])
def a_copy_that_expires_two_seconds_too_soon(run: Run) -> None:
    run.registered()
    run.after(28_000)
    run.row("b", Kind.REPLICA_REMOVED, client="c1", detail="lease")


# B03


def silent_for_a_minute(run: Run) -> None:
    run.registered()
    run.row("a", Kind.LINK_FAULT, client="c1", detail="silent")
    run.after(60_000)
    run.checkpoint()


@case("nacos-2.2.4", INV_SILENT=["B03"])
def a_silent_client_that_is_never_asked(run: Run) -> None:
    silent_for_a_minute(run)


@case("nacos-2.3.2", INV_SILENT=[None])
def a_silent_client_that_is_never_asked_where_it_was_repaired(run: Run) -> None:
    silent_for_a_minute(run)


@case("nacos-2.2.4", (known.kept_in_silence, "keeps that connection"), INV_SILENT=[None])
def a_silent_client_whose_connection_is_closed_late(run: Run) -> None:
    run.registered()
    run.row("a", Kind.LINK_FAULT, client="c1", detail="silent")
    run.after(60_000)
    run.leave()
    run.removed("bc")
