"""What a story of a client says of the links of its run."""

from __future__ import annotations

from distro_spark.history import END, ClientHistory, Row
from distro_traces.event import Kind


def story_of(*faults: tuple[int, str, str]) -> ClientHistory:
    rows = [
        Row("a", seq, at_ms, Kind.LINK_FAULT, peer=peer, detail=what) for seq, (at_ms, peer, what) in enumerate(faults)
    ]
    return ClientHistory("run", "strict", "c1", (), {}, {}, faults={"a": rows})


def test_a_link_that_is_cut_while_it_is_held_is_whole_after_both_have_ended() -> None:
    story = story_of((10, "b", "held"), (20, "b", "cut"), (30, "b", "released"), (40, "b", "healed"))
    assert story.cuts("a", "b") == [(10, 30), (20, 40)]


def test_a_link_that_is_cut_again_is_whole_when_it_is_healed_once() -> None:
    story = story_of((10, "b", "cut"), (20, "b", "cut"), (30, "b", "healed"), (40, "b", "healed"), (50, "b", "cut"))
    assert story.cuts("a", "b") == [(10, 30), (50, END)]


def test_the_links_to_others_are_others() -> None:
    assert story_of((10, "c", "cut"), (20, "b", "healed")).cuts("a", "b") == []
