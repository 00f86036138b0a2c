"""Registers that several transitions write: each field is a register."""

from __future__ import annotations

from typing import NamedTuple

from distro_model.cluster.values import Call, IpLife, Link
from distro_model.node import NodeState


class Taken(NamedTuple):
    link: Link
    call: Call


class IpLived(NamedTuple):
    ip_life: IpLife


class Node(NamedTuple):
    node: NodeState | None


class Before(NamedTuple):
    before: NodeState | None
