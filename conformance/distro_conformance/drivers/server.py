"""What a cluster needs of one of its nodes, wherever that runs: its life, its address, what it knows of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class Server(Protocol):
    """One node. `start` and `stop` may alternate; `address` is the node's name in every message, host:port."""

    @property
    def address(self) -> str: ...

    @property
    def pid(self) -> int | None:
        """Of its process while it runs; None for a node without a process of its own."""
        ...

    async def start(self, *, until_loaded: bool = True) -> None:
        """Returns when it serves. Raises TargetError."""
        ...

    async def stop(self) -> None:
        """At once, as SIGKILL does: nothing more is said, all memory is gone."""
        ...

    async def close(self) -> None:
        """Stop, and leave nothing behind."""
        ...

    async def change_members(self, addresses: Sequence[str]) -> None: ...

    async def members(self) -> Mapping[str, str]:
        """Address of a member to its state as this node sees it; empty while it does not answer."""
        ...
