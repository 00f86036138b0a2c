"""The phrases that Nacos servers log about replication, and what each says.

One entry per phrase; it is looked for anywhere in a record, since what stands around it (level, logger, thread, JSON)
is the operator's choice. Phrases of 2.0 to 2.5 are from docs/protocol #log-lines and from running servers (2.0.4,
2.2.4, 2.3.2); that 3.x logs the same ones is read from that document only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from distro_protos.addresses import one_name
from distro_traces.nacos_logs.records import Record


class What(StrEnum):
    """What a record says; the named groups of its pattern are the details."""

    STARTS = "starts"  # the node loads its Distro part: everything it held is gone
    MEMBERS = "members"  # members: the ones that it takes for healthy
    CONNECT = "connect"  # client: held from now on, native or synced
    DISCONNECT = "disconnect"  # client: no longer held; logged for unknown ids too
    PUBLISH = "publish"  # client, namespace, group, service
    WITHDRAW = "withdraw"  # client, namespace, group, service
    EXPIRE = "expire"  # ip, port, namespace, group, service: its beats stay out; a WITHDRAW follows
    HEALTH = "health"  # ip, port, health (ENABLED, DISABLED), service
    CALL = "call"  # operation (Change, Delete), client, target: leaves the delay queue
    CALL_ENDS = "call ends"  # client, target, result (true, false)
    CALL_FAILS = "call fails"  # client, target: the exception path
    CALL_CANCELLED = "call cancelled"  # client, target: START is logged before, and nothing is sent
    RECEIVED = "received"  # operation (CHANGE, DELETE), client, target: the node itself
    VERIFY = "verify"  # client: received
    VERIFY_DIFFERS = "verify differs"  # client, local, remote: the revision held, and the one that was asked for
    VERIFY_REFUSED = "verify refused"  # client, ip: answered with failure
    VERIFY_FAILED = "verify failed"  # client, target: the owner reads that answer
    APPLY = "apply"  # client, revision
    NO_BATCH = "no batch"  # client: what is being applied holds none
    REMOVE = "remove"  # client: by a DELETE
    LOAD = "load"  # target: a snapshot is asked for
    LOAD_ENDS = "load ends"  # target, result (true, false)
    LOAD_FAILS = "load fails"  # target


LOG_OF: Mapping[What, str] = {
    **dict.fromkeys(
        (What.CALL, What.CALL_ENDS, What.CALL_FAILS, What.RECEIVED, What.VERIFY, What.LOAD, What.LOAD_ENDS),
        "protocol-distro",
    ),
    **dict.fromkeys(
        (What.VERIFY_DIFFERS, What.VERIFY_REFUSED, What.VERIFY_FAILED, What.APPLY, What.NO_BATCH, What.REMOVE),
        "naming-distro",
    ),
    **dict.fromkeys((What.CONNECT, What.DISCONNECT, What.PUBLISH, What.WITHDRAW, What.MEMBERS), "naming-server"),
}
"""Which log has a record at INFO (VERIFY: at DEBUG) that says so, wherever it was found."""

LEVEL = re.compile(r"\b(TRACE|DEBUG|INFO|WARN|ERROR)\b")

_ID = r"""(?P<client>[^\s'\",\]]+)"""
_NODE = r"(?P<target>[\w.\-:\[\]]+:\d+)"
_MEMBER = r"\[[^\[\]]*\](?::\d+)?|[^\[\]]"
_TYPE = "Nacos:Naming:v2:ClientData"
_KEY = rf"DistroKey\{{resourceKey='(?P<client>[^']+)', resourceType='{_TYPE}', targetServer='(?P<target>[^']*)'\}}"
_SERVICE = r"Service\{namespace='(?P<namespace>[^']*)', group='(?P<group>[^']*)', name='(?P<service>[^']*)'[^}]*\}"

PHRASES: Mapping[What, str] = {
    What.STARTS: r"\[DISTRO-INIT\] waiting distro data storage register|Current addressing mode selection",
    What.MEMBERS: rf"healthy server list changed, old: \[(?:{_MEMBER})*\], new: \[(?P<members>(?:{_MEMBER})*)\]",
    What.CONNECT: rf"Client connection {_ID} connect\b",
    What.DISCONNECT: rf"Client connection {_ID} disconnect, remove instances",
    What.PUBLISH: rf"Client change for service {_SERVICE}, {_ID}",
    What.WITHDRAW: rf"Client remove for service {_SERVICE}, {_ID}",
    What.EXPIRE: rf"\[AUTO-DELETE-IP\] service: {_SERVICE}, ip: \{{"
    r"""\\?"ip\\?":\\?"(?P<ip>[^"\\]+)\\?",\\?"port\\?":(?P<port>\d+)""",
    What.HEALTH: r"\{IP-(?P<health>ENABLED|DISABLED)\} valid: (?P<ip>[^@\s]+):(?P<port>\d+)@[^@,]*@(?P<service>[^,\s]+)"
    r"|service: (?:\S+@@)?(?P<service2>\S+) \{POS\} \{IP-(?P<health2>ENABLED|DISABLED)\} valid: "
    r"(?P<ip2>[^@\s]+):(?P<port2>\d+)@[^@,]*,",
    What.CALL: rf"\[DISTRO-START\] DistroSync(?P<operation>Change|Delete)Task for {_KEY}",
    What.CALL_ENDS: rf"\[DISTRO-END\] {_KEY} result: (?P<result>true|false)",
    What.CALL_FAILS: rf"\[DISTRO\] Sync data change failed\. key: {_KEY}",
    What.CALL_CANCELLED: rf"Cancel distro sync caused by target server \S+ unhealthy, key: {_KEY}"
    rf"|DistroSync\w+Task for {_KEY.replace('?P<client>', '?P<client2>').replace('?P<target>', '?P<target2>')}"
    r" with null data to sync",
    What.RECEIVED: rf"Receive distro data type: (?P<operation>CHANGE|ADD|DELETE), key: {_KEY}",
    What.VERIFY: rf"Receive verify data type: VERIFY, key: {_KEY}",
    What.VERIFY_DIFFERS: r"\[DISTRO-VERIFY-FAILED\] \w+\[(?P<client>\S+)\] "
    r"revision local=(?P<local>-?\d+), remote=(?P<remote>-?\d+)",
    What.VERIFY_REFUSED: rf"client {_ID} is invalid, get new client from (?P<ip>\S+)",
    What.VERIFY_FAILED: rf"Target {_NODE} verify client {_ID} failed, sync new client",
    What.APPLY: rf"\[Client-Add\] Received distro client sync data {_ID}(?:, revision=(?P<revision>-?\d+))?",
    What.NO_BATCH: rf"BatchInstanceData is null\s*, clientId is\s*:\s*{_ID}",
    What.REMOVE: rf"\[Client-Delete\] Received distro client sync data {_ID}",
    What.LOAD_ENDS: rf"load snapshot {_TYPE} from {_NODE} result: (?P<result>true|false)",
    What.LOAD_FAILS: rf"load snapshot {_TYPE} from {_NODE} failed",
    What.LOAD: rf"\[DISTRO-INIT\] load snapshot {_TYPE} from {_NODE}\s*(?:$|[\"|])",
}
_PATTERNS = {what: re.compile(phrase) for what, phrase in PHRASES.items()}
_HINT = re.compile(
    r"DISTRO|Client[ -]|verify client|\bclient \S+ is invalid|\{IP-|Receive |healthy server list|addressing mode|distro"
    r"|BatchInstanceData|AUTO-DELETE-IP"
)
VERSION = re.compile(r"\bversion=(\d+\.\d+\.\d+(?:\.\d+)?)\b|Nacos (\d+\.\d+\.\d+(?:\.\d+)?)\b")
MEMBER = re.compile(r"Member\{ip='([^']+)', port=(\d+)")


@dataclass(frozen=True, slots=True)
class Fact:
    """One record that says something of replication."""

    at_ms: int  # since 1970, UTC
    what: What
    details: Mapping[str, str]
    log: str

    def __getitem__(self, name: str) -> str:
        return self.details[name]

    @property
    def client(self) -> str | None:
        if self.what in (What.HEALTH, What.EXPIRE):  # only clients that send heartbeats have one
            return f"{self['ip']}:{self['port']}#true"
        return self.details.get("client")


def fact_of(record: Record) -> Fact | None:
    """What a record says of replication; None: nothing."""
    if not _HINT.search(record.text):
        return None
    for what, pattern in _PATTERNS.items():
        found = pattern.search(record.text)
        if found is not None:
            details = {name.rstrip("2"): value for name, value in found.groupdict().items() if value is not None}
            if "target" in details:
                details["target"] = one_name(details["target"])
            if what is What.LOAD_FAILS and "Cancel get snapshot" in record.more:
                details["cancelled"] = "yes"
            return Fact(record.at_ms, what, details, record.log)
    return None
