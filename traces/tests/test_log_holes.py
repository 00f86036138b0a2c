"""A rotated file that is missing in the middle: it is reported, and nothing is concluded from its missing records."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from distro_traces.event import Kind
from distro_traces.nacos_logs.importer import Imported, import_logs
from distro_traces.ndjson import TraceFile, read_ndjson

A, B = "10.9.0.1:8848", "10.9.0.2:8848"
C1 = "1716170760000_10.0.0.1_40001"
SERVICE = "Service{namespace='public', group='DEFAULT_GROUP', name='web', ephemeral=true, revision=0}"


def stamped(second: float, text: str, level: str = "INFO") -> str:
    at = datetime(2024, 5, 20, 10) + timedelta(seconds=second)
    return f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d} {level} {text}\n"


def key(client: str, target: str) -> str:
    return f"DistroKey{{resourceKey='{client}', resourceType='Nacos:Naming:v2:ClientData', targetServer='{target}'}}"


def sends(second: float, client: str, target: str, *, result: str | None = "true") -> str:
    start = stamped(second, f"[DISTRO-START] DistroSyncChangeTask for {key(client, target)}")
    return start + (stamped(second, f"[DISTRO-END] {key(client, target)} result: {result}") if result else "")


def connects(second: float, client: str) -> str:
    return stamped(second, f"Client connection {client} connect") + stamped(
        second, f"Client change for service {SERVICE}, {client}"
    )


def leaves(second: float, client: str) -> str:
    return stamped(second, f"Client connection {client} disconnect, remove instances and subscribers")


def receives(second: float, client: str, node: str, revision: int = 1) -> str:
    return stamped(second, f"Receive distro data type: CHANGE, key: {key(client, node)}") + stamped(
        second, f"[Client-Add] Received distro client sync data {client}, revision={revision}"
    )


def beats(first: int, last: int, step: int = 2) -> str:
    """Records without a fact of replication."""
    return "".join(stamped(second, "all is well") for second in range(first, last, step))


def write(directory: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory


def imported(directory: Path, out: Path) -> tuple[Imported, TraceFile]:
    names = {name: address for name, address in (("n0", A), ("n1", B)) if (directory / name).is_dir()}
    found = import_logs(directory, out, profile="nacos-2.3.2", names=names)
    return found, read_ndjson(found.path)


def texts(found: Imported, kind: str) -> list[str]:
    return [each.text for each in found.troubles if each.kind == kind]


def calls(rotated: Sequence[str]) -> dict[str, str]:
    """n0 sends something to n1 every 10 s, in three files of 100 s each."""
    texts = ["".join(sends(s, C1, B) for s in range(start, start + 100, 10)) for start in (0, 100, 200)]
    return {f"n0/{name}": text for name, text in zip(rotated, texts, strict=True)}


@pytest.mark.parametrize(
    ("names", "gone"),
    [
        (("protocol-distro.log.3", "protocol-distro.log.2", "protocol-distro.log.1"), ".2"),
        (
            (
                "protocol-distro.log.2024-05-20.0",
                "protocol-distro.log.2024-05-20.1",
                "protocol-distro.log.2024-05-20.2",
            ),
            ".1",
        ),
        (
            (
                "protocol-distro-2024-05-20.0.log",
                "protocol-distro-2024-05-20.1.log",
                "protocol-distro-2024-05-20.2.log",
            ),
            ".1",
        ),
    ],
)
def test_a_number_missing_between_two_rotated_files_is_reported(
    tmp_path: Path, names: tuple[str, ...], gone: str
) -> None:
    files = calls(names)
    whole, _ = imported(write(tmp_path / "whole", files), tmp_path / "a")
    assert texts(whole, "hole") == []
    assert len([each for each in whole_spans(whole) if each.fact == "sent"]) == 1
    del files[f"n0/{names[1]}"]
    found, trace = imported(write(tmp_path / "gone", files), tmp_path / "b")
    [text] = texts(found, "hole")
    assert re.match(rf"protocol-distro: the rotated file \{gone} between \S+ and \S+ is missing; nothing is", text)
    assert [(each.from_ms, each.until_ms) for each in found.troubles if each.kind == "hole"] == [(90_000, 200_000)]
    spans = [(each.from_ms, each.until_ms) for each in trace.header.observed.covered if each.fact == "sent"]
    assert spans == [(0, 90_000), (200_000, 290_000)]


def whole_spans(found: Imported) -> tuple[object, ...]:
    return read_ndjson(found.path).header.observed.covered  # type: ignore[return-value]


def test_the_longest_pause_between_two_files_is_reported(tmp_path: Path) -> None:
    first, last = beats(0, 200) + connects(200, C1), connects(900, "c2") + beats(900, 1100)
    files = {"n0/naming-server.log.1": first, "n0/naming-server.log": last}
    found, _ = imported(write(tmp_path / "a", files), tmp_path / "ta")
    assert texts(found, "hole") == [
        "naming-server: no record for 700 s between naming-server.log.1 and naming-server.log, longer than ever within "
        "them; nothing is concluded from what is not logged then"
    ]
    # it has been silent for as long before: nothing is missing
    files["n0/naming-server.log.1"] = beats(0, 100) + beats(1000, 1200) + connects(1200, C1)
    files["n0/naming-server.log"] = connects(1900, "c2") + beats(1900, 2100)
    found, _ = imported(write(tmp_path / "b", files), tmp_path / "tb")
    assert texts(found, "hole") == []


def test_a_call_that_may_have_succeeded_in_a_missing_file_is_not_open(tmp_path: Path) -> None:
    fails = "".join(sends(s, C1, B, result="false") for s in range(0, 90, 10))
    later = "".join(sends(s, "c2", B) for s in range(200, 290, 10))
    files = {"n0/protocol-distro.log.3": fails, "n0/protocol-distro.log.1": later}
    found, _ = imported(write(tmp_path / "gone", files), tmp_path / "a")
    assert texts(found, "unreached") == []
    files["n0/protocol-distro.log.2"] = "".join(sends(s, "c2", B) for s in range(100, 190, 10))
    found, _ = imported(write(tmp_path / "whole", files), tmp_path / "b")
    assert [text.partition(";")[0] for text in texts(found, "unreached")] == [
        f"{C1}'s change at {A}, 0 ms, never reached {B}"
    ]


def test_a_client_that_may_have_left_in_a_missing_file_has_no_content_after_it(tmp_path: Path) -> None:
    files = {
        "n0/naming-server.log.3": connects(1, C1) + beats(2, 100),
        "n0/naming-server.log.1": beats(300, 400) + stamped(400, f"Client change for service {SERVICE}, {C1}"),
        "n0/naming-distro.log": stamped(0, "x") + stamped(400, "y"),
    }
    _, trace = imported(write(tmp_path / "logs", files), tmp_path / "a")
    assert [(e.at_ms, e.kind) for e in trace.events] == [
        (1000, Kind.CLIENT_CONNECTED),
        (1000, Kind.CLIENT_CHANGED),
    ]


# Copies that differ at the end


def two_nodes(owner: str, other: str) -> dict[str, str]:
    """Full logs of both until 300 s, with the member list of the start."""
    start = stamped(0, f"healthy server list changed, old: [], new: [{A}, {B}]")
    begins, ends, files = stamped(0, "begins"), stamped(300, "ends"), {}
    kinds = {
        "naming-distro": r"\[Client-",
        "protocol-distro": r"DISTRO|Receive",
        "naming-server": r"connection|service|list",
    }
    for name, text in (("n0", owner), ("n1", other)):
        lines = sorted((start + text).splitlines(keepends=True), key=lambda line: line[:23])
        for log, pattern in kinds.items():
            own = "".join(line for line in lines if re.search(pattern, line))
            files[f"{name}/{log}.log"] = begins + own + ends
    return files


def test_a_copy_that_never_came_is_reported_although_no_call_failed(tmp_path: Path) -> None:
    owner = connects(20, C1) + sends(21, C1, B)
    found, _ = imported(write(tmp_path / "a", two_nodes(owner, "")), tmp_path / "ta")
    assert [(each.node, each.text) for each in found.troubles] == [
        (B, f"does not hold {C1} at the end, which {A} holds since 20000 ms")
    ]
    arrived = receives(21, C1, B) + connects(21, C1)
    found, _ = imported(write(tmp_path / "b", two_nodes(owner, arrived)), tmp_path / "tb")
    assert found.troubles == ()


def test_a_copy_that_stays_when_its_client_has_left_is_reported(tmp_path: Path) -> None:
    owner = connects(20, C1) + sends(21, C1, B) + leaves(60, C1)
    copy = receives(21, C1, B) + connects(21, C1)
    found, _ = imported(write(tmp_path / "a", two_nodes(owner, copy)), tmp_path / "ta")
    assert [(each.node, each.text) for each in found.troubles] == [
        (B, f"still holds {C1} at the end, which is gone at {A} since 60000 ms")
    ]


@pytest.mark.parametrize("near_miss", ["late", "no log", "missing file", "older"])
def test_a_copy_that_may_exist_is_not_reported_as_missing(tmp_path: Path, near_miss: str) -> None:
    """A change on its way; a log that was not read, lacks a file, or begins after the client came."""
    at = 290 if near_miss == "late" else 20
    files = two_nodes(connects(at, C1) + sends(at + 1, C1, B), "")
    server = files.pop("n1/naming-server.log")
    if near_miss == "late":
        files["n1/naming-server.log"] = server
    elif near_miss == "missing file":
        files["n1/naming-server.log.3"] = beats(0, 10)
        files["n1/naming-server.log.1"] = beats(100, 300)
    elif near_miss == "older":
        files["n1/naming-server.log"] = beats(100, 301)
    found, _ = imported(write(tmp_path / "a", files), tmp_path / "ta")
    assert [each.kind for each in found.troubles if each.kind != "hole"] == []


def test_a_call_under_way_when_the_logs_end_is_no_trouble_and_an_older_one_is(tmp_path: Path) -> None:
    late = {"n0/protocol-distro.log": sends(10, "c2", B) + sends(299, C1, B, result=None)}
    found, _ = imported(write(tmp_path / "late", late), tmp_path / "a")
    assert texts(found, "unreached") == []
    old = {"n0/protocol-distro.log": sends(10, C1, B, result=None) + sends(299, "c2", B)}
    found, _ = imported(write(tmp_path / "old", old), tmp_path / "b")
    assert texts(found, "unreached") == [
        f"{C1}'s change at {A}, 0 ms, never reached {B}; a call sent at 0 ms is still open"
    ]
