"""Troubles that the servers themselves report, in order of time: the first page for an operator.

A trouble is an episode: the first record that reports it, the number of such records, and the record that ends it, if
there is one. No trouble is a verdict, and none follows from the absence of a record that a missing file may have.
Kinds, by how much they explain: a server in 1.x mode, a node that restarted, one that does not load (and so verifies
nothing), a member that another does not list as UP, a link on which calls fail, a client whose connection was closed by
the server, a copy that is removed and applied again, registrations that were dropped, pushes that fail; changes that
never reached a member, copies that differ at the end, and missing files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from distro_protos.addresses import entries, one_name
from distro_traces.endings import Differs
from distro_traces.nacos_logs.facts import Fact, What, states_in
from distro_traces.nacos_logs.holes import Hole
from distro_traces.unreached import Unreached

FLAPS = 3
"""A copy that is removed and applied again this many times is reported."""
KEPT_MAX = 10_000
"""Limit of episodes; further ones are not reported. A member or a link has one at a time."""
_BRIEF_MS = {"not-loaded": 10_000, "old-mode": 300_000}
"""Shorter episodes are part of every start and not reported."""
_SEPARATE_MS = 60_000
"""A record after a longer pause begins another episode."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """`until_ms`: null when no record ends it. Times in milliseconds since the trace began."""

    kind: str
    node: str
    subject: str  # the member, client or subscriber
    text: str
    from_ms: int
    until_ms: int | None = None
    count: int = 1
    place: str = ""  # file and line of the first record


@dataclass(slots=True)
class _Episode:
    kind: str
    node: str
    subject: str
    from_ms: int
    place: str
    last_ms: int
    reports: Counter[str] = field(default_factory=Counter)
    until_ms: int | None = None

    @property
    def count(self) -> int:
        return sum(self.reports.values())


_Key = tuple[str, str, str]


class Troubles:
    """Takes the facts of all nodes, each node's in order."""

    def __init__(self, addresses: Mapping[str, str]) -> None:
        """`addresses`: earlier addresses of nodes, with the present one."""
        self._addresses = addresses
        self._open: dict[_Key, _Episode] = {}
        self._over: list[_Episode] = []
        self._removed: dict[tuple[str, str], int] = {}  # node, client: when its copy was removed
        self._listed: dict[str, set[str]] = {}  # node: members that it once listed as healthy

    def take(self, node: str, fact: Fact) -> None:
        if (report := _REPORTS.get(fact.what)) is not None:
            subject = "" if report.subject is None else fact[report.subject]
            self._report(report.kind, node, subject, fact, report.text.format(**fact.details))
        elif (kind := _ENDS.get(fact.what)) is not None:
            self._close((kind, node, ""), fact.at_ms)
        elif (note := _NOTES.get(fact.what)) is not None:
            note(self, node, fact)

    def restarted(self, node: str, last_ms: int, fact: Fact) -> None:
        """The node has started; `last_ms`: its last record before."""
        if len(self._over) < KEPT_MAX:
            self._over.append(
                _Episode("restart", node, "", last_ms, fact.place, fact.at_ms, Counter(restart=1), fact.at_ms)
            )

    def found(
        self, began_ms: int, unreached: list[Unreached], differing: list[Differs], holes: list[tuple[str, Hole]]
    ) -> list[Trouble]:
        """In order of time; a server in 1.x mode first, since it explains the rest."""
        episodes = [_settled(each) for each in (*self._over, *self._open.values()) if _is_reported(each)]
        troubles = [_trouble(each, began_ms) for each in episodes]
        places = {(each.node, each.subject): each.place for each in episodes if each.kind == "link"}
        for each in unreached:
            place = places.get((each.node, each.member), "")
            troubles.append(
                Trouble("unreached", each.node, each.client, str(each), each.first_ms, count=each.failed, place=place)
            )
        never = {(each.client, each.member) for each in unreached}
        troubles += [
            Trouble("differs", each.node, each.client, each.text, each.from_ms)
            for each in differing
            if (each.client, each.node) not in never
        ]
        troubles += [_hole(node, hole, began_ms) for node, hole in holes]
        return sorted(troubles, key=lambda trouble: (trouble.kind != "old-mode", trouble.from_ms, trouble.node))

    def _name(self, address: str) -> str:
        return self._addresses.get(one_name(address), one_name(address))

    # Episodes

    def _report(self, kind: str, node: str, subject: str, fact: Fact, what: str) -> None:
        key = (kind, node, subject)
        found = self._open.get(key)
        if found is not None and kind in _SEPARATE and fact.at_ms - found.last_ms > _SEPARATE_MS:
            self._close(key, found.last_ms)
            found = None
        if found is None:
            if len(self._open) + len(self._over) >= KEPT_MAX:
                return
            found = self._open[key] = _Episode(kind, node, subject, fact.at_ms, fact.place, fact.at_ms)
        found.reports[what] += 1
        found.last_ms = fact.at_ms

    def _close(self, key: _Key, at_ms: int) -> None:
        found = self._open.pop(key, None)
        if found is not None and _is_reported(found):
            self._over.append(replace(found, until_ms=at_ms))

    # The facts

    def _starts(self, node: str, fact: Fact) -> None:
        self._listed.pop(node, None)
        for key in [key for key in self._open if key[1] == node and key[0] not in ("old-mode", "not-loaded")]:
            self._close(key, fact.at_ms)

    def _members(self, node: str, fact: Fact) -> None:
        old, listed = (set(map(self._name, entries(fact[name]))) for name in ("old", "members"))
        known = self._listed.setdefault(node, set())
        known |= old
        for member in known - listed:
            self._report("member", node, member, fact, "not in its list of healthy members")
        for member in listed:
            self._close(("member", node, member), fact.at_ms)
        known |= listed

    def _states(self, node: str, fact: Fact) -> None:
        for address, state in states_in(fact["list"]):
            member = self._name(address)
            if state in ("DOWN", "SUSPICIOUS"):
                self._report("member", node, member, fact, f"{state} in its list")
            elif state == "UP":
                self._close(("member", node, member), fact.at_ms)

    def _report_fails(self, node: str, fact: Fact) -> None:
        why = fact.details.get("why", "").strip().rstrip(";") or "no reason is given"
        self._report("reports", node, fact["target"], fact, why)

    def _call_ends(self, node: str, fact: Fact) -> None:
        target = fact.details.get("target")
        if target is None:
            why = "timed out" if "imeout" in fact.more else "failed"
            self._report("link", node, "a member that the record does not name", fact, f"call {why}")
            return
        if fact.details.get("result") == "true":
            self._close(("link", node, target), fact.at_ms)
        elif fact.what is What.CALL_CANCELLED:
            self._report("link", node, target, fact, "call cancelled, the member is not UP")
        elif fact.what is What.CALL_FAILS:
            self._report("link", node, target, fact, "call timed out" if "imeout" in fact.more else "call failed")
        else:
            self._report("link", node, target, fact, "call answered with failure")

    def _load_ends(self, node: str, fact: Fact) -> None:
        if fact.details.get("result") == "true":
            self._close(("not-loaded", node, ""), fact.at_ms)
            return
        how = "cancelled, it is not UP" if "cancelled" in fact.details else "failed"
        self._report("not-loaded", node, "", fact, f"load from {fact['target']} {how}")

    def _old_mode(self, node: str, fact: Fact) -> None:
        what = "upgrade check result false" if "check" in fact.details else "data of 1.x arrives"
        self._report("old-mode", node, "", fact, what)

    def _removes(self, node: str, fact: Fact) -> None:
        if len(self._removed) >= KEPT_MAX:
            self._removed.clear()
        self._removed[node, fact["client"]] = fact.at_ms

    def _applies(self, node: str, fact: Fact) -> None:
        if self._removed.pop((node, fact["client"]), None) is not None:
            self._report("flapping", node, fact["client"], fact, "came again after a DELETE")

    def _refuses(self, node: str, fact: Fact) -> None:
        found = self._open.get(("flapping", node, fact["client"]))
        if found is not None or (node, fact["client"]) in self._removed:
            self._report("flapping", node, fact["client"], fact, f"verified by {fact['ip']}")


class _Report(NamedTuple):
    """A record that reports a trouble by itself; `subject`: the detail that names the member, client or subscriber."""

    kind: str
    subject: str | None
    text: str


_REPORTED = "reported to while it is not UP"
_REPORTS: Mapping[What, _Report] = {
    What.MEMBER_UNHEALTHY: _Report("member", "target", _REPORTED),
    What.STATUS_FAILS: _Report("reports", "target", "a request of the 1.x part"),
    What.NOT_LOADED: _Report("not-loaded", None, "sends no verify"),
    What.NO_MEMBERS: _Report("not-loaded", None, "waits for a member list"),
    What.REDIRECT_REFUSED: _Report("redirect", "ip", "refused"),
    What.REGISTER_DROPPED: _Report("dropped", "client", "dropped"),
    What.OUTDATED: _Report("ejected", "client", "nothing came from it, and it did not answer"),
    What.OVERLOADED: _Report("ejected", "client", "too many connections"),
    What.PUSH_FAILS: _Report("push", "ip", "{service} after {ms} ms"),
}
_ENDS: Mapping[What, str] = {What.LOADED: "not-loaded", What.NEW_MODE: "old-mode"}
_NOTES: Mapping[What, Callable[[Troubles, str, Fact], None]] = {
    What.STARTS: Troubles._starts,
    What.MEMBERS: Troubles._members,
    What.STATES: Troubles._states,
    What.REPORT_FAILS: Troubles._report_fails,
    What.CALL_ENDS: Troubles._call_ends,
    What.CALL_FAILS: Troubles._call_ends,
    What.CALL_CANCELLED: Troubles._call_ends,
    What.LOAD_ENDS: Troubles._load_ends,
    What.LOAD_FAILS: Troubles._load_ends,
    What.OLD_MODE: Troubles._old_mode,
    What.REMOVE: Troubles._removes,
    What.APPLY: Troubles._applies,
    What.VERIFY_REFUSED: Troubles._refuses,
}
_SEPARATE = frozenset({"link", "redirect", "dropped", "push", "reports"})


def _settled(each: _Episode) -> _Episode:
    """A member known only from reports sent to it is not UP until the last of these reports."""
    return replace(each, until_ms=each.last_ms) if each.until_ms is None and set(each.reports) == {_REPORTED} else each


def _is_reported(each: _Episode) -> bool:
    if each.kind == "member" and each.reports == {_REPORTED: 1}:
        return False  # sent while the list changed
    if each.kind == "flapping":
        return each.reports["came again after a DELETE"] >= FLAPS
    if each.kind in _BRIEF_MS and each.until_ms is not None:
        return each.until_ms - each.from_ms >= _BRIEF_MS[each.kind]
    return True


def _trouble(each: _Episode, began_ms: int) -> Trouble:
    return Trouble(
        kind=each.kind,
        node=each.node,
        subject=each.subject,
        text=_TEXTS[each.kind].format(
            subject=each.subject, count=each.count, reports=", ".join(_counted(each)), ended=_ended(each)
        ),
        from_ms=each.from_ms - began_ms,
        until_ms=None if each.until_ms is None else each.until_ms - began_ms,
        count=each.count,
        place=each.place,
    )


def _hole(node: str, hole: Hole, began_ms: int) -> Trouble:
    return Trouble(
        kind="hole",
        node=node,
        subject=hole.log,
        text=f"{hole.text}; nothing is concluded from what is not logged then",
        from_ms=hole.from_ms - began_ms,
        until_ms=hole.until_ms - began_ms,
    )


def _ended(each: _Episode) -> str:
    if each.kind == "not-loaded":
        return "never loaded" if each.until_ms is None else "loaded late"
    return ""


def _counted(each: _Episode) -> Iterator[str]:
    most = each.reports.most_common(4)
    for what, count in most:
        yield what if count == 1 else f"{what} ({count} times)"
    if len(each.reports) > len(most):
        yield f"{len(each.reports) - len(most)} more"


_TEXTS = {
    "old-mode": "runs as 1.x: what it replicates does not go by the rules of 2.x: {reports}",
    "restart": "restarted (from its last record to its start); what ended it is not logged",
    "not-loaded": "{ended}: {reports}",
    "member": "does not take {subject} for UP: {reports}",
    "reports": "reports to {subject} failed: {reports}",
    "link": "calls to {subject} fail: {reports}",
    "flapping": "its copy of {subject} goes and comes: {reports}",
    "redirect": "refused {count} of the requests that {subject} passed on: that peer takes this node for responsible "
    "and it does not, so their member lists differ",
    "dropped": "a registration of {subject} was answered with success and dropped, its client is gone: {reports}",
    "ejected": "closed the connection of {subject}: {reports}",
    "push": "pushes to the subscriber {subject} failed: {reports}",
}
