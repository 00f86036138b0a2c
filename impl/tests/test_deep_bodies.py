"""Wherever a node reads JSON of a client or a peer, there is stack left for finalizers, however deep it is nested.

The collector may start while a decoder recurses, and the finalizers of gRPC fail where there is no stack left for
them: no code can handle that, and their resources leak.
"""

from __future__ import annotations

import gc
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from distro_impl import VirtualClock
from distro_impl.http.distro_filter import responsible_tag
from distro_impl.http.instance_parameters import beat_of, metadata_of
from distro_impl.http.parameters import Parameters
from distro_impl.naming.udp_push import UdpPushService
from distro_impl.options import AuthOptions
from distro_impl.remote.errors import NacosError
from distro_impl.security.callers import Right
from distro_impl.security.tokens import AccessDeniedError, TokenManager
from distro_protos import MAX_NESTING, Payload, UnreadableBodyError, decode

FRAMES = 100
"""That a finalizer may need."""
ROUNDS = range(50, 1_000, 100)
"""Allocations after which the collector starts: one for each level of a body."""


def of_a_payload(text: bytes) -> None:
    payload = Payload()
    payload.body.value = text
    decode(payload)


def of_a_token(text: bytes) -> None:
    token = f"{urlsafe_b64encode(text).decode()}.e30.AAAA"
    TokenManager(AuthOptions(secret=b"s" * 32, users={}), VirtualClock()).check(token, Right.READ, None)


READERS: dict[str, Callable[[bytes], object]] = {
    "payload": of_a_payload,
    "token": of_a_token,
    "beat": lambda text: beat_of(Parameters({"beat": text.decode()})),
    "beat to pass on": lambda text: responsible_tag(Parameters({"beat": text.decode()})),
    "metadata": lambda text: metadata_of(text.decode()),
    "datagram": lambda text: UdpPushService(VirtualClock()).datagram_received(text, ("127.0.0.1", 1)),
}


class Ring:
    """Garbage that only the collector finds."""

    def __init__(self, ended: list[bool]) -> None:
        self._self, self._ended = self, ended

    def __del__(self) -> None:
        try:
            self._descend(FRAMES)
            self._ended.append(True)
        except RecursionError:
            self._ended.append(False)

    def _descend(self, frames: int) -> None:
        if frames:
            self._descend(frames - 1)


@pytest.fixture
def collector() -> Iterator[None]:
    """Concerns only the objects of the test."""
    usual = gc.get_threshold()
    gc.collect()
    gc.freeze()
    yield
    gc.set_threshold(*usual)
    gc.unfreeze()


@pytest.mark.usefixtures("collector")
@pytest.mark.parametrize("levels", [MAX_NESTING, pytest.param(3_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", READERS)
def test_a_finalizer_has_stack_left_while_a_body_is_read(name: str, levels: int) -> None:
    ended: list[bool] = []
    text = b'{"a":' * levels + b"1" + b"}" * levels
    for allocations in ROUNDS:
        gc.collect()
        Ring(ended)
        gc.set_threshold(allocations)
        with suppress(UnreadableBodyError, AccessDeniedError, NacosError):
            READERS[name](text)
        gc.set_threshold(0)
    gc.collect()
    assert ended == [True] * len(ROUNDS)
