"""What is listed of the violations of one client, of which there may be very many."""

from __future__ import annotations

from distro_spark.invariants import INVARIANTS
from distro_spark.judge import CLIENT_MAX, listed
from distro_spark.story import Row, Story
from distro_traces.event import Kind


def test_what_is_news_is_not_excused_by_all_that_is_known_before_it() -> None:
    """A copy that keeps its stamp (B10) through so many changes, and then holds what nobody published."""
    rows, changes = [Row("a", 1, 0, Kind.CLIENT_CONNECTED, owned=True, revision=0, digest="")], CLIENT_MAX + 50
    for revision in range(1, changes + 1):
        at_ms = 1_000 * revision
        rows.append(
            Row("a", 2 * revision, at_ms, Kind.CLIENT_CHANGED, owned=True, revision=revision, digest=f"{revision}")
        )
        rows.append(
            Row("b", 2 * revision, at_ms + 1, Kind.REPLICA_APPLIED, owned=False, revision=1, digest=f"{revision}")
        )
    rows.append(Row("b", 10_000, 10_000_000, Kind.REPLICA_APPLIED, owned=False, revision=1, digest="nobody's"))
    story = Story("run", "nacos-2.2.4", "c1", sorted(rows, key=lambda row: (row.node, row.seq)), {}, {})
    tell = INVARIANTS["INV-REV"].tell
    assert tell is not None

    lines = listed("INV-REV", story, tell(story, []))

    counts = {bug: sum(line["count"] for line in lines if line["known"] == bug) for bug in (None, "B10")}
    assert counts == {None: 1, "B10": changes - 1}
    assert len(lines) == CLIENT_MAX + 1
