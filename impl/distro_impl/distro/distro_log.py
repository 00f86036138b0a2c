"""What a node logs about Distro, in the words of a real server, so that readers of its logs can read these.

The loggers are called like the files of a real server: `protocol-distro` is the protocol's, `naming-distro` naming's.
No line is formatted for a level that is off. Source: docs/protocol #log-lines.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from distro_impl.distro.record import DistroRecord
from distro_impl.distro.transport_agent import RESOURCE_TYPE, DistroReply
from distro_impl.logs import NodeLog, line, logger
from distro_impl.profiles import Profile
from distro_impl.remote.payloads import DataOperation
from distro_protos import write_json

protocol, naming = logger("protocol-distro"), logger("naming-distro")

SYNC_FAILED = "[DISTRO] Sync data change failed. key: %s"


class DistroLog(NodeLog):
    """The lines of one node."""

    def __init__(self, node: str, profile: Profile) -> None:
        super().__init__(node)
        self.record = DistroRecord()
        self._shows_revision = profile.revision_sent
        self._is_old = not profile.sends_only_to_up_members  # up to 2.1.0

    # Sending

    def sync_began(self, operation: DataOperation, client: str, peer: str) -> None:
        text = f"[DISTRO-START] {_task(operation)} for %s"
        self.write(protocol, logging.INFO, text, _key(client, peer), client=client, peer=peer)

    def sync_ended(self, client: str, peer: str, reply: DistroReply) -> None:
        self.record.sync_successes += reply is DistroReply.SUCCESS
        self.record.sync_failures += reply is not DistroReply.SUCCESS
        key = _key(client, peer)
        if reply is DistroReply.EXCEPTION:
            text, values = ("[DISTRO] Sync data change failed.", ()) if self._is_old else (SYNC_FAILED, (key,))
            self.write(protocol, logging.WARNING, text, *values, client=client, peer=peer)
            return
        if reply is DistroReply.NOT_SENT:
            self._cancelled("sync", peer, key, client)
        result = "true" if reply is DistroReply.SUCCESS else "false"
        self.write(protocol, logging.INFO, "[DISTRO-END] %s result: %s", key, result, client=client, peer=peer)

    def nothing_to_sync(self, client: str, peer: str) -> None:
        text = "[DISTRO] DistroSyncChangeTask for %s with null data to sync, skip"
        self.write(protocol, logging.WARNING, text, _key(client, peer), client=client, peer=peer)

    verify_skipped = line(
        protocol,
        logging.WARNING,
        "data storage DistroClientDataProcessor has not finished initial step, do not send verify data",
    )

    def verify_ended(self, client: str, peer: str, reply: DistroReply) -> None:
        self.record.verifies += 1
        self.record.verify_failures += reply is not DistroReply.SUCCESS
        if reply is DistroReply.SUCCESS:
            text = "[DISTRO] verify data for type %s to %s success"
        else:
            text = "[DISTRO-FAILED] verify data for type %s to %s failed."
        self.write(protocol, logging.DEBUG, text, RESOURCE_TYPE, peer, client=client, peer=peer)
        if reply is DistroReply.NOT_SENT:
            self._cancelled("verify", peer, _key(client, None), client)
        if reply is DistroReply.FAIL:
            text = "Target %s verify client %s failed, sync new client"
            self.write(naming, logging.INFO, text, peer, client, client=client, peer=peer)

    def _cancelled(self, what: str, peer: str, key: Callable[[], str], client: str) -> None:
        text = f"[DISTRO] Cancel distro {what} caused by target server %s unhealthy, key: %s"
        self.write(naming, logging.WARNING, text, peer, key, client=client, peer=peer)

    # Receiving

    def received(self, operation: str, client: str, target: str | None) -> None:
        text = "[DISTRO] Receive distro data type: %s, key: %s"
        self.write(protocol, logging.INFO, text, operation, _key(client, target), client=client)

    def verify_received(self, client: str) -> None:
        text = "[DISTRO] Receive verify data type: VERIFY, key: %s"
        self.write(protocol, logging.DEBUG, text, _key(client, None), client=client)

    def verify_refused(self, client: str, reporter: str) -> None:
        text = "client %s is invalid, get new client from %s"
        self.write(naming, logging.INFO, text, client, reporter, client=client, peer=reporter)

    def client_added(self, client: str, revision: int) -> None:
        text = "[Client-Add] Received distro client sync data %s"
        if self._shows_revision:
            self.write(naming, logging.INFO, text + ", revision=%s", client, revision, client=client)
        else:
            self.write(naming, logging.INFO, text, client, client=client)

    no_batch = line(
        naming, logging.INFO, "[processBatchInstanceDistroData] BatchInstanceData is null , clientId is :%s", "client"
    )
    client_deleted = line(naming, logging.INFO, "[Client-Delete] Received distro client sync data %s", "client")

    def revision_differs(self, client: str, kind: str, local: int, remote: int) -> None:
        text = "[DISTRO-VERIFY-FAILED] %s[%s] revision local=%s, remote=%s"
        self.write(naming, logging.INFO, text, kind, client, local, remote, client=client)

    def handling_failed(self, error: Exception) -> None:
        text = "[DISTRO-FAILED] distro handle with exception"
        self.write(naming, logging.ERROR, text, error=error)

    # Loading

    load_waits = line(protocol, logging.INFO, "[DISTRO-INIT] waiting distro data storage register...")

    def loaded(self, took_ms: int) -> None:
        self.record.load_ms = took_ms
        self.write(protocol, logging.INFO, "[DISTRO-INIT] load snapshot data success")

    def load_began(self, peer: str) -> None:
        self.write(protocol, logging.INFO, "[DISTRO-INIT] load snapshot %s from %s", RESOURCE_TYPE, peer, peer=peer)

    def load_answered(self, peer: str, elements: Sequence[Mapping[str, Any]], took_ms: int) -> None:
        if not self._is_old and protocol.isEnabledFor(logging.INFO):
            size = len(write_json({"clientSyncDataList": elements}))
            text = "[DISTRO-INIT] it took %s ms to load snapshot %s from %s and snapshot size is %s."
            self.write(protocol, logging.INFO, text, took_ms, RESOURCE_TYPE, peer, size, peer=peer)

    def load_ended(self, peer: str, reply: DistroReply) -> None:
        if reply in (DistroReply.SUCCESS, DistroReply.FAIL):
            text, result = "[DISTRO-INIT] load snapshot %s from %s result: %s", reply is DistroReply.SUCCESS
            self.write(protocol, logging.INFO, text, RESOURCE_TYPE, peer, str(result).lower(), peer=peer)
        else:
            text = "[DISTRO-INIT] load snapshot %s from %s failed."
            self.write(protocol, logging.ERROR, text, RESOURCE_TYPE, peer, peer=peer)


def _key(client: str, peer: str | None) -> Callable[[], str]:
    return lambda: (
        f"DistroKey{{resourceKey='{client}', resourceType='{RESOURCE_TYPE}', targetServer='{peer or 'null'}'}}"
    )


def _task(operation: DataOperation) -> str:
    return "DistroSyncDeleteTask" if operation is DataOperation.DELETE else "DistroSyncChangeTask"
