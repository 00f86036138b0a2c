"""What a cluster needs of a node, wherever it runs: start and stop, its address, its view of the members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class Server(Protocol):
    """One node. `start` and `stop` may alternate; `address` is the node's name in every message, host:port."""

    @property
    def address(self) -> str: ...

    @property
    def pid(self) -> int | None:
        """The id of its process while it runs; None for a node without a process of its own."""
        ...

    async def start(self, *, until_loaded: bool = True) -> None:
        """Returns when it serves. Raises TargetError."""
        ...

    async def stop(self) -> None:
        """Ends the node at once, like SIGKILL: it sends nothing more and loses its memory."""
        ...

    async def close(self) -> None:
        """Stop, and leave nothing behind."""
        ...

    async def change_members(self, addresses: Sequence[str]) -> None: ...

    async def members(self) -> Mapping[str, str]:
        """Address of a member to its state as this node sees it; empty while it does not answer."""
        ...
