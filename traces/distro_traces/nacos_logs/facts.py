"""The phrases that Nacos servers log about replication, and the fact that each reports.

One entry per phrase. A phrase may be anywhere in a record, since operators configure the text around it (level,
logger, thread, JSON). A record is searched for a few fixed words first (`MARKS`), which most records lack, and then
only for the phrases with the word that it has. The phrases are from docs/protocol #log-lines, from public reports, and
from running servers (2.0.4, 2.2.4, 2.3.2, 2.5.1, 3.0.3, 3.1.0-SNAPSHOT).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from distro_protos.addresses import bracketed, one_name
from distro_traces.nacos_logs.records import Record


class What(StrEnum):
    """The fact that a record reports; the named groups of its pattern are the details."""

    STARTS = "starts"  # the node starts its Distro part: it holds nothing any more
    MEMBERS = "members"  # members: those that the node lists as healthy
    CONNECT = "connect"  # client: held from now on, native or synced
    DISCONNECT = "disconnect"  # client: no longer held; logged for unknown ids too
    PUBLISH = "publish"  # client, namespace, group, service
    WITHDRAW = "withdraw"  # client, namespace, group, service
    EXPIRE = "expire"  # ip, port, namespace, group, service: its beats are missing; a WITHDRAW follows
    HEALTH = "health"  # ip, port, health (ENABLED, DISABLED), service
    CALL = "call"  # operation (Change, Delete), client, target: leaves the delay queue
    CALL_ENDS = "call ends"  # client, target, result (true, false)
    CALL_FAILS = "call fails"  # client, target: the exception path; up to 2.1.0 neither is named
    CALL_CANCELLED = "call cancelled"  # client, target: START is logged before, and nothing is sent
    RECEIVED = "received"  # operation (CHANGE, DELETE), client, target: the node itself
    VERIFY = "verify"  # client: received
    VERIFY_DIFFERS = "verify differs"  # client, local, remote: the revision held, and the one verified
    VERIFY_REFUSED = "verify refused"  # client, ip: answered with failure
    VERIFY_FAILED = "verify failed"  # client, target: the owner reads that answer
    APPLY = "apply"  # client, revision
    NO_BATCH = "no batch"  # client: the applied content holds no batch
    REMOVE = "remove"  # client: by a DELETE
    LOAD = "load"  # target: a snapshot is asked for
    LOAD_ENDS = "load ends"  # target, result (true, false)
    LOAD_FAILS = "load fails"  # target
    LOADED = "loaded"  # verifies are sent from now on
    NOT_LOADED = "not loaded"  # no verify is sent
    NO_MEMBERS = "no members"  # the load waits for a member list
    STATES = "states"  # list: the members with their states, as the node sees them
    MEMBER_UNHEALTHY = "member unhealthy"  # target: a report goes to it although it is not UP
    REPORT_FAILS = "report fails"  # target, why
    STATUS_FAILS = "status fails"  # target: a request of the 1.x part
    REDIRECT_REFUSED = "redirect refused"  # ip: a peer lists this node as responsible; its own list does not
    REGISTER_DROPPED = "register dropped"  # client: answered with success, although its client is gone (B12)
    OLD_MODE = "old mode"  # the server still runs as 1.x
    NEW_MODE = "new mode"  # it is upgraded to 2.x
    NATIVE = "native"  # client: a connection of this server
    OUTDATED = "outdated"  # client: silent for 20 s and no answer to a check; its connection is closed
    UNREGISTERED = "unregistered"  # client: its connection is closed
    OVERLOADED = "overloaded"  # client: its connection is reset, since there are too many
    PUSH_FAILS = "push fails"  # ms, service, why, ip


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
    **dict.fromkeys((What.NATIVE, What.OUTDATED, What.UNREGISTERED), "remote-digest"),
    What.PUSH_FAILS: "naming-push",
}
"""The log that has the records of each fact at INFO (VERIFY: at DEBUG), wherever they were found."""

LEVEL = re.compile(r"\b(TRACE|DEBUG|INFO|WARN|ERROR)\b")

_ID = r"""(?P<client>[^\s'\",\]]+)"""
_NODE = r"(?P<target>[\w.\-:\[\]%]+:\d+)"
_MEMBER = r"\[[^\[\]]*\](?::\d+)?|[^\[\]]"
_TYPE = "Nacos:Naming:v2:ClientData"
_KEY = rf"DistroKey\{{resourceKey='(?P<client>[^']+)', resourceType='{_TYPE}', targetServer='(?P<target>[^']*)'\}}"
_SERVICE = r"Service\{namespace='(?P<namespace>[^']*)', group='(?P<group>[^']*)', name='(?P<service>[^']*)'[^}]*\}"

PHRASES: Mapping[What, str] = {
    What.STARTS: r"\[DISTRO-INIT\] waiting distro data storage register|Current addressing mode selection",
    What.MEMBERS: rf"healthy server list changed, old: \[(?P<old>(?:{_MEMBER})*)\], "
    rf"new: \[(?P<members>(?:{_MEMBER})*)\]",
    What.CONNECT: rf"Client connection {_ID} connect\b",
    What.DISCONNECT: rf"Client connection {_ID} disconnect, remove instances",
    What.REGISTER_DROPPED: rf"Client connection {_ID} already disconnect",
    What.PUBLISH: rf"Client change for service {_SERVICE}, {_ID}",
    What.WITHDRAW: rf"Client remove for service {_SERVICE}, {_ID}",
    What.EXPIRE: rf"\[AUTO-DELETE-IP\] service: {_SERVICE}, ip: \{{"
    r"""\\?"ip\\?":\\?"(?P<ip>[^"\\]+)\\?",\\?"port\\?":(?P<port>\d+)""",
    What.HEALTH: r"\{IP-(?P<health>ENABLED|DISABLED)\} valid: (?P<ip>[^@\s]+):(?P<port>\d+)@[^@,]*@(?P<service>[^,\s]+)"
    r"|service: (?:\S+@@)?(?P<service2>\S+) \{POS\} \{IP-(?P<health2>ENABLED|DISABLED)\} valid: "
    r"(?P<ip2>[^@\s]+):(?P<port2>\d+)@[^@,]*,",
    What.CALL: rf"\[DISTRO-START\] DistroSync(?P<operation>Change|Delete)Task for {_KEY}",
    What.CALL_ENDS: rf"\[DISTRO-END\] {_KEY} result: (?P<result>true|false)",
    What.CALL_FAILS: rf"\[DISTRO\] Sync data change failed\.(?:\s*key: {_KEY})?",
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
    What.LOADED: r"\[DISTRO-INIT\] load snapshot data success",
    What.NOT_LOADED: r"DistroClientDataProcessor has not finished initial step, do not send verify data",
    What.NO_MEMBERS: r"\[DISTRO-INIT\] waiting server list init",
    What.STATES: r"\[serverlist\] (?:updated|changed) to\s*: \[(?P<list>Member\{.*)",
    What.MEMBER_UNHEALTHY: rf"report the metadata to the unhealthy node\s*:\s*{_NODE}",
    What.REPORT_FAILS: rf"failed to report new info to target node(?: by \w+)?\s*:\s*{_NODE}"
    r"(?:, error\s*:\s*(?:caused:\s*)?(?P<why>[^;(]*))?",
    What.STATUS_FAILS: rf"\[STATUS-SYNCHRONIZE\] failed to request \w+, remote server:\s*{_NODE}",
    What.REDIRECT_REFUSED: r"receive invalid redirect request from peer (?P<ip>\S+)",
    What.OLD_MODE: r"(?P<check>upgrade check result false)|type: null\b.*(?P<data>iplist)",
    What.NEW_MODE: r"upgrade check result true",
    What.NATIVE: rf"new connection registered successfully, connectionId = {_ID}",
    What.OUTDATED: r"\[(?P<client>[^\]\s]+)\]\s*Unregister Out dated connection",
    What.UNREGISTERED: r"\[(?P<client>[^\]\s]+)\]\s*Connection unregistered successfully",
    What.OVERLOADED: r"\[(?P<client>[^\]\s]+)\]\s*(?:expel connection|[Ss]end connection reset request)"
    r"|[Ss]end connection reset (?:request|server).*?(?:connection id|connectionId)\s*=\s*(?P<client2>[^\s,]+)",
    What.PUSH_FAILS: rf"\[PUSH-FAIL\] (?P<ms>\d+)ms, {_SERVICE}, reason=(?P<why>.*?), target=(?P<ip>\S+)",
}
_PATTERNS = {what: re.compile(phrase) for what, phrase in PHRASES.items()}
_MARKED: Mapping[str, tuple[What, ...]] = {
    "Client connection": (What.CONNECT, What.DISCONNECT, What.REGISTER_DROPPED),
    "Client change for": (What.PUBLISH,),
    "Client remove for": (What.WITHDRAW,),
    "AUTO-DELETE-IP": (What.EXPIRE,),
    "{IP-": (What.HEALTH,),
    "{POS}": (What.HEALTH,),
    "[DISTRO-START]": (What.CALL, What.CALL_CANCELLED),
    "[DISTRO-END]": (What.CALL_ENDS,),
    "Sync data change failed": (What.CALL_FAILS,),
    "Cancel distro sync": (What.CALL_CANCELLED,),
    "with null data": (What.CALL_CANCELLED,),
    "Receive distro data": (What.RECEIVED, What.OLD_MODE),
    "Receive verify data": (What.VERIFY,),
    "[DISTRO-VERIFY-FAILED]": (What.VERIFY_DIFFERS,),
    "is invalid, get new": (What.VERIFY_REFUSED,),
    "verify client": (What.VERIFY_FAILED,),
    "[Client-Add]": (What.APPLY,),
    "BatchInstanceData is": (What.NO_BATCH,),
    "[Client-Delete]": (What.REMOVE,),
    "[DISTRO-INIT]": (What.STARTS, What.LOAD_ENDS, What.LOAD_FAILS, What.LOAD, What.LOADED, What.NO_MEMBERS),
    "load snapshot": (What.LOAD_ENDS, What.LOAD_FAILS),
    "addressing mode": (What.STARTS,),
    "healthy server list": (What.MEMBERS,),
    "not finished initial": (What.NOT_LOADED,),
    "[serverlist]": (What.STATES,),
    "the unhealthy node": (What.MEMBER_UNHEALTHY,),
    "failed to report new": (What.REPORT_FAILS,),
    "[STATUS-SYNCHRONIZE]": (What.STATUS_FAILS,),
    "invalid redirect": (What.REDIRECT_REFUSED,),
    "upgrade check result": (What.OLD_MODE, What.NEW_MODE),
    "type: null": (What.OLD_MODE,),
    "registered success": (What.NATIVE,),
    "Out dated connection": (What.OUTDATED,),
    "unregistered success": (What.UNREGISTERED,),
    "expel connection": (What.OVERLOADED,),
    "connection reset": (What.OVERLOADED,),
    "[PUSH-FAIL]": (What.PUSH_FAILS,),
}
MARKS = tuple(mark.encode() for mark in _MARKED)
"""A line without any of them has no fact of replication."""
VERSION = re.compile(r"\bversion=(\d+\.\d+\.\d+(?:\.\d+)?)\b|Nacos (\d+\.\d+\.\d+(?:\.\d+)?)\b")
MEMBER = re.compile(r"Member\{ip='([^']+)', port=(\d+)(?:, state=(\w+))?")


def states_in(text: str) -> Iterator[tuple[str, str]]:
    """The members that a record lists, with the state of each."""
    for ip, port, state in MEMBER.findall(text):
        yield one_name(f"{bracketed(ip)}:{port}"), state


def releases_in(text: str) -> Iterator[tuple[str, str]]:
    """The members that a record lists with their release."""
    for part in re.split(r"(?=Member\{ip=)", text):
        member, release = MEMBER.match(part), VERSION.search(part)
        if member is not None and release is not None and release[1]:
            yield one_name(f"{bracketed(member[1])}:{member[2]}"), release[1]


@dataclass(frozen=True, slots=True)
class Fact:
    """One record with a fact of replication."""

    at_ms: int  # since 1970, UTC
    what: What
    details: Mapping[str, str]
    log: str
    place: str = ""  # file and line
    more: str = ""  # the first lines of an exception
    is_cut: bool = False  # its last word may be half of one

    def __getitem__(self, name: str) -> str:
        return self.details[name]

    @property
    def client(self) -> str | None:
        if self.what in (What.HEALTH, What.EXPIRE):  # only clients that send heartbeats have one
            return f"{self['ip']}:{self['port']}#true"
        return self.details.get("client")


def fact_of(record: Record) -> Fact | None:
    """The fact of replication in a record; None: there is none."""
    text = record.text
    for mark in sorted((mark for mark in _MARKED if mark in text), key=text.index):
        for what in _MARKED[mark]:
            found = _PATTERNS[what].search(text)
            if found is not None:
                details = {name.rstrip("2"): value for name, value in found.groupdict().items() if value is not None}
                if "target" in details:
                    details["target"] = one_name(details["target"])
                if what is What.LOAD_FAILS and "Cancel get snapshot" in record.more:
                    details["cancelled"] = "yes"
                is_cut = record.is_cut and "client" in details and found.end("client") == len(text)
                return Fact(record.at_ms, what, details, record.log, record.place, record.more, is_cut)
    return None
