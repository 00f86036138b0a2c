"""Registers that several transitions write: each field is a register."""

from __future__ import annotations

from typing import NamedTuple

from distro_model.cluster.values import Call, IpLife, Life, Link
from distro_model.node import NodeState


class OneLink(NamedTuple):
    link: Link


class Taken(NamedTuple):
    link: Link
    call: Call


class Meant(NamedTuple):
    call: Call


class Lived(NamedTuple):
    life: Life


class IpLived(NamedTuple):
    ip_life: IpLife


class Node(NamedTuple):
    node: NodeState | None


class Before(NamedTuple):
    before: NodeState | None


class Stale(NamedTuple):
    stale: tuple[tuple[str, str], ...]
