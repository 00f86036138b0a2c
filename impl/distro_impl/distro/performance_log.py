"""The counters of a node, once a minute, as a real server writes them: the file `naming-performance`.

For readers of that file; /nacos/actuator/prometheus has the same and more. Costs nothing where logging is off. Source:
docs/protocol #log-lines; running servers of 2.0.4, 2.2.4 and 2.3.2.
"""

from __future__ import annotations

import logging

from distro_impl.distro.record import DistroRecord
from distro_impl.logs import NodeLog, logger
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.push import PushRecord

PERIOD_MS = 60_000
NOT_MEASURED = -1
"""How long pushes took."""

performance = logger("naming-performance")


class PerformanceLog(NodeLog):
    """`counts_v1`: up to 2.1.2 the numbers of 1.x data stand in front, and they are always 0."""

    def __init__(
        self, node: str, clients: ClientManager, pushes: PushRecord, record: DistroRecord, *, counts_v1: bool
    ) -> None:
        super().__init__(node)
        self._clients, self._pushes, self._record = clients, pushes, record
        self._v1 = "0|0|" if counts_v1 else ""

    @property
    def is_read(self) -> bool:
        return performance.isEnabledFor(logging.INFO)

    def began(self) -> None:
        names = "serviceCount|ipCount|subscribeCount|maxPushCost|avgPushCost|totalPushCount|failPushCount"
        self.tell(performance, logging.INFO, "PERFORMANCE:|%s", names)
        self.tell(performance, logging.INFO, "DISTRO:|V1SyncDone|V1SyncFail|V2SyncDone|V2SyncFail|V2VerifyFail|")
        self.count()

    def count(self) -> None:
        clients = tuple(self._clients)
        counts = (
            len(self._clients.services()),
            sum(len(client.publishers) for client in clients),
            sum(len(client.subscribers) for client in clients),
            NOT_MEASURED,
            NOT_MEASURED,
            self._pushes.total,
            self._pushes.failed,
        )
        self.tell(performance, logging.INFO, "PERFORMANCE:|%s", "|".join(map(str, counts)))
        done, failed, unverified = self._record.sync_successes, self._record.sync_failures, self._record.verify_failures
        self.tell(performance, logging.INFO, "DISTRO:|%s%s|%s|%s|", self._v1, done, failed, unverified)
