"""From statements to the chains of look-ups of a search: one chain for each transition at each place.

The additions of a search stand before the steps: a budget that is decremented, a timer that fires once a period. Time
is derived from the period just before a step first reads it, so that everything before it shares its look-ups.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial

from distro_model.bounded.layout import BUDGET, CLOCK, Layout, link_column, node_column
from distro_model.cluster.budget import Budget, Clock
from distro_model.cluster.statement import (
    Does,
    Function,
    Member,
    Place,
    StatementError,
    Step,
    Transition,
    alternatives,
    changed_by,
    reads_of,
    values,
    written_by,
)
from distro_model.cluster.values import Call, Link
from distro_model.events import Event, Reply, Send
from distro_model.messages import Verify
from distro_model.node import NodeState
from distro_model.properties.steps import alarms
from distro_model.search.system import NO_GUARD, Alternative, Chain, Lookup, Registers, Value
from distro_model.step import step

LookupFunction = Callable[..., Sequence[Alternative]]
Constants = tuple[tuple[str, Hashable], ...]


@dataclass(frozen=True)
class Chains:
    """Makes the chains of one bounded cluster; shared parts (one object each, hence one table) are here."""

    layout: Layout

    def chain(self, transition: Transition, place: Place) -> Chain:
        """Raises StatementError when a step reads a name that does not exist, or writes one that no step reads."""
        draft = _Draft(self, transition, place)
        draft.open()
        for number, each in enumerate(transition.steps):
            draft.add(each)
            draft.check_use(each, transition.steps[number + 1 :])
        return draft.chain()

    @cached_property
    def constants(self) -> Mapping[str, Hashable]:
        bounds = self.layout.bounds
        always = {
            "profile": self.layout.profile,
            "services": bounds.services,
            "periods": bounds.periods,
            "lease_length": bounds.lease_length,
            "crashes": bounds.crashes,
            "slept_ms": self.slept_ms,
        }
        timeless = {} if bounds.periods else {"now": 0, "period": 0}
        return {**always, **timeless, **({} if bounds.pauses else {"last_ms": None})}

    @cached_property
    def handle(self) -> LookupFunction:
        """(node, event) -> the node after it, the calls that it sent, its answer, the finding."""

        def handled(node: NodeState | None, event: Event) -> Sequence[Alternative]:
            if node is None:
                return ()
            result = step(node, event, self.layout.profile)
            sent = [out for out in result.outputs if isinstance(out, Send)]
            answer = next((out.answer for out in result.outputs if isinstance(out, Reply)), None)
            calls = [(out.target, out.request) for out in sent]
            found = alarms(node, event, result.node, answer, calls, self.layout.profile)
            return ((result.node, tuple((out.target, _call(result.node, out)) for out in sent), answer, found),)

        return handled

    @cached_property
    def push(self) -> Mapping[str, LookupFunction]:
        """For each target: (link, calls of one step) -> the link with those calls that go there, within the bound."""
        return {target: self._push_to(target) for target in self.layout.nodes}

    def _push_to(self, target: str) -> LookupFunction:
        in_flight = self.layout.bounds.in_flight

        def pushed(link: Link, calls: Sequence[tuple[str, Call]]) -> Sequence[Alternative]:
            added = [call for to, call in calls if to == target]
            if len(link.calls) + len(added) > in_flight:
                return ()
            for call in added:
                link = link.with_call(call)
            return ((link,),)

        return pushed

    @cached_property
    def time(self) -> LookupFunction:
        interval_ms = self.layout.profile.verify_interval_ms
        return lambda clock: ((clock.period * interval_ms, clock.period),)

    @cached_property
    def slept_ms(self) -> int:
        return (self.layout.bounds.lease_length + 1) * self.layout.profile.verify_interval_ms

    def once(self, timer: str, who: str) -> tuple[LookupFunction, tuple[str, ...]]:
        """(clock) -> the clock after `who` has fired this timer; None when it had before in this period.

        The last period does not end: timers go on in it, so that there is an infinite run for liveness checks.
        """
        last = self.layout.bounds.periods
        if timer == "checked" and self.layout.bounds.pauses:
            return partial(_checked, who, last, self.layout.profile.verify_interval_ms, self.slept_ms), (
                CLOCK,
                "last_ms",
            )
        return _once(timer, who, last), (CLOCK,)


def _call(node: NodeState, send: Send) -> Call:
    request = send.request
    client = node.client(request.client) if isinstance(request, Verify) else None
    return Call(request, sent_as=None if client is None else client.content)


@cache
def _spent(name: str) -> LookupFunction:
    """One less of a budget; the same function for the same name, so that one table serves all places."""

    def less(budget: Budget) -> Sequence[Alternative]:
        after = budget.less(name)
        return () if after is None else ((after,),)

    return less


@cache
def _once(timer: str, who: str, last: int) -> LookupFunction:
    def after(clock: Clock) -> Sequence[Alternative]:
        fired = clock.fired(timer, who, last)
        return () if fired is None else ((fired,),)

    return after


def _checked(node: str, last: int, interval_ms: int, slept_ms: int, clock: Clock) -> Sequence[Alternative]:
    """A node that has slept since its last check can detect it: that check is long ago (B23)."""
    fired = clock.fired("checked", node, last)
    last_ms = None if node not in clock.slept else (clock.period - 1) * interval_ms - slept_ms
    return () if fired is None else ((fired.woken(node), last_ms),)


@cache
def _bound(
    function: Function, names: tuple[str, ...], constants: Constants, *, handles: bool, watches: bool
) -> LookupFunction:
    """A look-up of the values of `names`: the same function and constants are the same object."""
    given = partial(function, **dict(constants)) if constants else function
    returns_value = handles or changed_by(function) is not None
    meant = _seen if watches else values if returns_value else alternatives

    def lookup(*read: Value) -> Sequence[Alternative]:
        return meant(given(*read))

    def lookup_by_name(*read: Value) -> Sequence[Alternative]:
        return meant(given(**dict(zip(names, read, strict=True))))

    in_order = reads_of(function)[: len(names)] == names
    found = lookup if in_order else lookup_by_name
    found.__qualname__ = function.__qualname__
    return found


def _seen(found: object) -> Sequence[Alternative]:
    return ((found,),)


@cache
def _constant(function: Function, constants: Constants, *, handles: bool) -> LookupFunction:
    """A look-up that reads no register."""
    found = function(**dict(constants))
    result = values(found) if handles else alternatives(found)
    return lambda _: result


@dataclass
class _Draft:
    """One chain under construction. `latest`: column or other name -> the register with its latest value."""

    chains: Chains
    transition: Transition
    place: Place
    lookups: list[Lookup] = field(default_factory=list)
    latest: dict[str, str] = field(default_factory=dict)
    alarms: list[str] = field(default_factory=list)

    def add_lookup(self, guard: str, function: LookupFunction, reads: Sequence[str], writes: Sequence[str]) -> None:
        registers = tuple(f"{name}#{len(self.lookups)}" for name in writes)
        self.lookups.append(Lookup(guard, function, tuple(map(self.register, reads)), registers))
        self.latest.update(zip(writes, registers, strict=True))

    def register(self, name: str) -> str:
        return self.latest.get(name, name)

    def open(self) -> None:
        """The first look-ups of a search: is there a budget left, was it not yet done in this period?"""
        once, cost = self.transition.once, self.transition.cost
        if once is not None and self.chains.layout.bounds.periods:
            who = self.place.constants.get("node_name") or f"beat {self.place.constants['client']}"
            function, writes = self.chains.once(once, str(who))
            self.add_lookup(f"{once} in this period", function, (CLOCK,), writes)
        if cost is not None:
            self.add_lookup(f"no {cost} are left", _spent(cost), (BUDGET,), (BUDGET,))

    def add(self, each: Step) -> None:
        handler = (each.handler,) if each.handler else ()
        written = () if each.does in (Does.HANDLES, Does.WATCHES) else tuple(written_by(each.function))
        for member in self.place.members((*reads_of(each.function), *written, *handler)):
            self.add_at(each, member, written)

    def check_use(self, each: Step, later: Sequence[Step]) -> None:
        """Each name that a step writes is a column, or is read later; otherwise the step has no effect."""
        written = () if each.does in (Does.HANDLES, Does.WATCHES) else tuple(written_by(each.function))
        if each.unless != NO_GUARD or not written:
            return
        read = {name for step in later for name in (*reads_of(step.function), step.handler)}
        of_families = {name for family in self.place.families for name in family.names}
        used = read.union(reads_of(self.transition.says), self.place.columns, of_families, self.place.absent)
        if not used.intersection(written):
            where = f"{self.transition.kind} {self.place.name}"
            raise StatementError(f"{where}: {each.name} writes {', '.join(written)}, which nothing reads")

    def add_at(self, each: Step, member: Member, written: tuple[str, ...]) -> None:
        columns = {**self.place.columns, **member.columns}
        constants = {**self.chains.constants, **self.place.constants, **member.constants}
        names = reads_of(each.function)
        given = tuple((name, constants[name]) for name in names if name in constants)
        read = tuple(name for name in names if name not in constants)
        self.derive_time(read)
        for name in read:
            if name not in columns and name not in self.latest:
                where = f"{self.transition.kind} {self.place.name}"
                raise StatementError(f"{where}: {each.name} reads {name}, which nothing writes")
        guard = each.unless.format(**constants) if each.unless != NO_GUARD else NO_GUARD
        handles, watches = each.does is Does.HANDLES, each.does is Does.WATCHES
        if read:
            function, reads = _bound(each.function, read, given, handles=handles, watches=watches), read
        else:
            function, reads = _constant(each.function, given, handles=handles), (BUDGET,)
        registers = [columns.get(name, name) for name in reads]
        if handles:
            self.add_lookup(guard, function, registers, ("event",))
            self.handle(columns[each.handler])
        elif watches:
            self.add_lookup(guard, function, registers, (f"alarm {len(self.alarms)}",))
            self.alarms.append(self.register(f"alarm {len(self.alarms)}"))
        else:
            self.add_lookup(guard, function, registers, [columns.get(name, name) for name in written])

    def derive_time(self, names: Sequence[str]) -> None:
        if any(name in ("now", "period") and name not in self.latest for name in names):
            self.add_lookup(NO_GUARD, self.chains.time, (CLOCK,), ("now", "period"))

    def handle(self, column: str) -> None:
        alarm_name, node = f"alarm {len(self.alarms)}", column.removeprefix(node_column(""))
        self.add_lookup(
            f"{node} is down", self.chains.handle, (column, "event"), (column, "calls", "answer", alarm_name)
        )
        self.alarms.append(self.register(alarm_name))
        for other in self.chains.layout.others(node):
            link = link_column(node, other)
            self.add_lookup(f"in flight on {node}->{other}", self.chains.push[other], (link, "calls"), (link,))

    def chain(self) -> Chain:
        transition, place = self.transition, self.place
        constants = {**self.chains.constants, **place.constants}
        names = reads_of(transition.says)
        where = {name: self.register(place.columns.get(name, name)) for name in names if name not in constants}

        def label(registers: Registers) -> object:
            return transition.says(
                **{name: constants[name] if name in constants else registers[where[name]] for name in names}
            )

        result = {name: register for name, register in self.latest.items() if name in self.chains.layout.columns}
        kind = transition.kind.format(**constants)
        needed = {*result.values(), *self.alarms, *where.values()}
        return Chain(
            f"{kind} {place.name}".strip(),
            kind,
            _without_unused(self.lookups, needed),
            result,
            label,
            tuple(self.alarms),
            transition.fair,
        )


def _without_unused(lookups: Sequence[Lookup], needed: set[str]) -> tuple[Lookup, ...]:
    """Without unused look-ups: no guard, and no register that is read."""
    kept: list[Lookup] = []
    for lookup in reversed(lookups):
        if lookup.guard != NO_GUARD or needed.intersection(lookup.writes):
            kept.append(lookup)
            needed.update(lookup.reads)
    return tuple(reversed(kept))
