"""Random runs that go on from where somebody else has led the nodes.

A subclass of the lockstep machine: with no beginnings the machine is what it was, and a seed draws the same runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from distro_conformance.walks.machine import LINKS, Machine
from distro_model.actions import Action, Connect, Deregister, Disconnect, Hold, Register, Release, Swallow


def beginning_with(machine_class: Any, beginnings: Sequence[Sequence[Action]]) -> Machine:
    """Every third run or so goes on from one of them. Which one is drawn, so that a failing run shrinks to none."""
    without = 2 * len(beginnings)

    class BeginningMachine(machine_class):  # type: ignore[misc]
        @initialize(number=st.integers(0, without + len(beginnings) - 1))
        def begin(self, number: int) -> None:
            for action in beginnings[number - without] if number >= without else ():
                if self.lockstep is None or self.lockstep.forbidden(action):
                    return
                self._note(action)
                self.perform(action)

        @precondition(lambda self: self.held)
        @rule(link=st.integers(0, len(LINKS) - 1))
        def release_link(self, link: int) -> None:
            self.perform(Release(*self.held.pop(link % len(self.held))))

        def _note(self, action: Action) -> None:
            """What the rules know of a run."""
            match action:
                case Connect(client, node):
                    self.connected_ever += 1
                    self.clients[client] = self.homes[client] = node
                case Register(client, service, _):
                    self.published.add((client, service))
                case Deregister(client, service):
                    self.published.discard((client, service))
                case Disconnect(client):
                    self._gone({client})
                case Swallow(operation="DELETE"):
                    self.orphans = True
                case Hold(source, target):
                    self.held.append((source, target))
                case Release(source, target):
                    self.held.remove((source, target))

    return BeginningMachine
