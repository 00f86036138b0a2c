"""Local events: events between the parts of one node, through its notify centre. None of them leaves the node.

Two subscribers matter. Distro makes sync tasks of changes to clients; the service index follows which clients publish
which service, and each change of it becomes a push to local subscribers. `queue` is the queue in which an event waits
for its subscriber: events of one queue are handled in order, those of two queues in any order. Source: docs/protocol
#sync-announce, #receive-change (the indexes); `ClientEvent`, `ClientOperationEvent`, `ServiceEvent`.
"""

from __future__ import annotations

from typing import ClassVar

from distro_model.value import value


@value(frozen=True, slots=True)
class ClientChanged:
    """The content of a client that is connected here has changed."""

    queue: ClassVar[str] = "client events"
    client: str

    def __str__(self) -> str:
        return f"{self.client} changed"


@value(frozen=True, slots=True)
class ClientRemoved:
    """`ClientDisconnectEvent`: a client has left the table. Distro acts upon it if the client was native."""

    queue: ClassVar[str] = "client events"
    client: str
    native: bool

    def __str__(self) -> str:
        return f"{self.client} is removed"


@value(frozen=True, slots=True)
class ClientVerifyFailed:
    queue: ClassVar[str] = "client events"
    client: str
    target: str

    def __str__(self) -> str:
        return f"{self.target} failed the verify of {self.client}"


@value(frozen=True, slots=True)
class ServiceRegistered:
    """`ClientRegisterServiceEvent`: the client publishes another instance of the service, or a first one."""

    queue: ClassVar[str] = "operation events"
    client: str
    service: str

    def __str__(self) -> str:
        return f"{self.client} publishes {self.service}"


@value(frozen=True, slots=True)
class ServiceDeregistered:
    queue: ClassVar[str] = "operation events"
    client: str
    service: str

    def __str__(self) -> str:
        return f"{self.client} publishes {self.service} no more"


@value(frozen=True, slots=True)
class ClientReleased:
    """`ClientReleaseEvent`, from 2.3.0: a client has left the table; for the index, in the index's own queue."""

    queue: ClassVar[str] = "operation events"
    client: str

    def __str__(self) -> str:
        return f"{self.client} is released"


@value(frozen=True, slots=True)
class IndexEntryDue:
    """Not an event: the second half of handling `ServiceRegistered` where a push is published before it (B44)."""

    queue: ClassVar[str] = "operation events"
    client: str
    service: str

    def __str__(self) -> str:
        return f"{self.client} is about to be indexed under {self.service}"


@value(frozen=True, slots=True)
class ServiceChanged:
    """The list of a service may have changed: local subscribers get it again. One that waits serves all."""

    queue: ClassVar[str] = "service events"
    service: str

    def __str__(self) -> str:
        return f"the list of {self.service} changed"


ClientEvent = ClientChanged | ClientRemoved | ClientVerifyFailed
IndexEvent = ServiceRegistered | ServiceDeregistered | ClientReleased | IndexEntryDue
LocalEvent = ClientEvent | IndexEvent | ServiceChanged
