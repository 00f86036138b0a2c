"""Datagrams between sockets of this process, counted for the clock as messages on a stream are.

A socket that a test or the kit opens is enlisted here under its address. What a node sends there is work from then on,
until its owner says that it has consumed it, or stops reading; and so is what is sent to the socket of a node. An
address without a receiver here belongs to another program, and nothing is counted.
"""

from __future__ import annotations

from distro_impl.clocks.clock import Clock
from distro_impl.transport.counted_stream import OneWay

Address = tuple[str, int]

_receivers: dict[Address, Receiver] = {}


class Receiver:
    """The receiver at an address. `clock` None: that of the first sender."""

    def __init__(self, address: Address, clock: Clock | None = None) -> None:
        self._address = address
        self._way = None if clock is None else self._counted(clock)
        _receivers[address] = self

    def consumed(self) -> None:
        """What came last, with everything that it leads to here."""
        if self._way is not None:
            self._way.consumed()

    def stop_reading(self) -> None:
        """It answers nothing from here on, and reads nothing."""
        if self._way is not None:
            self._way.stop_reading(True)

    def close(self) -> None:
        _receivers.pop(self._address, None)
        if self._way is not None:
            self._way.closed()

    def sent(self, clock: Clock | None) -> None:
        if self._way is None and clock is not None:
            self._way = self._counted(clock)
        if self._way is not None:
            self._way.sent()

    def _counted(self, clock: Clock) -> OneWay:
        return OneWay(clock.counted(f"datagrams to {self._address[0]}:{self._address[1]}"))


def sent_to(address: Address, clock: Clock | None = None) -> None:
    """Call it before a datagram is sent; a sender without a clock need not."""
    receiver = _receivers.get(address)
    if receiver is not None:
        receiver.sent(clock)
