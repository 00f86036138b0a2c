"""A member needs four ports, so two members can collide although their base ports differ."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from itertools import combinations, pairwise
from pathlib import Path

import pytest

from distro_conformance.targets.ports import CLUSTER_OFFSET, family, first_taken, free_base_ports, require_free
from distro_conformance.verdict import TargetError
from distro_impl import free_main_ports


@pytest.mark.parametrize("distance", [1, 1000, 1001, 2000, 2001])
def test_some_distances_collide(distance: int) -> None:
    assert family(20_000) & family(20_000 + distance)


def test_chosen_families_do_not_overlap() -> None:
    bases = free_base_ports(5)

    assert len(bases) == 5
    assert not any(family(one) & family(other) for one, other in combinations(bases, 2))


def test_families_given_one_after_the_other_do_not_overlap_either() -> None:
    """The first ports are not bound yet when the next cluster asks."""
    bases = [base for _ in range(30) for base in free_base_ports(3)]
    assert not any(family(one) & family(other) for one, other in combinations(bases, 2))


def test_a_member_is_given_a_higher_port_whichever_the_node_has() -> None:
    """One test in a thousand failed: the node had the last port of its process's slice in the highest period."""
    for own in {base for _ in range(200) for base in free_base_ports(4)}:
        (higher,) = free_base_ports(beside=(own,), above=own)
        assert higher > own
        assert not family(higher) & family(own)


def test_nodes_have_ascending_ports_also_where_the_search_begins_again_from_below() -> None:
    given = [free_main_ports(3) for _ in range(30)]
    assert any(later < earlier for earlier, later in pairwise(given)), "it began again"
    assert [list(ports) for ports in given] == [sorted(ports) for ports in given]


@pytest.mark.slow
def test_two_processes_are_given_ports_of_different_slices(tmp_path: Path) -> None:
    """Also where each has a directory of its own for what is temporary."""
    imports = "from distro_conformance.targets.ports import *; from distro_impl import free_main_ports"
    chooses = f"{imports}; print(*free_base_ports(20), *free_main_ports(5), flush=True); input()"
    command = [sys.executable, "-c", chooses]
    with ExitStack() as running:
        slices = []
        for number in range(2):
            (tmp_path / str(number)).mkdir()
            environment = {**os.environ, "TMPDIR": str(tmp_path / str(number))}
            process = subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            slices.append(running.enter_context(process))
        ports = [{int(port) % 1_000 // 100 for port in next(iter(each.stdout or ())).split()} for each in slices]
        for each in slices:
            each.communicate("\n")
    assert [len(each) for each in ports] == [1, 1]
    assert ports[0] != ports[1]


@pytest.mark.wire
def test_a_taken_port_is_named_with_its_use() -> None:
    (base,) = free_base_ports()
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # what was there may linger
        holder.bind(("127.0.0.1", base + CLUSTER_OFFSET))
        holder.listen()

        assert first_taken(base) == base + CLUSTER_OFFSET
        with pytest.raises(TargetError, match=rf"port {base + CLUSTER_OFFSET} is in use .* for cluster gRPC"):
            require_free(base)
