"""A profile: the rules by which a node differs from `strict`, and the numbers that its rules read.

A rule in `rules/` is the behaviour of `strict`, in which every known defect is repaired. A profile lists the
replacements of some of them (`rules/rule.py`), and a few parameters: durations, limits, and what is observable at all.
The rules read the profile; nothing else in the model depends on a release.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from distro_model.rules.rule import Function, is_own, name_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A named record of rules and parameters. The defaults are the `strict` profile."""

    name: str

    rules: tuple[tuple[str, Function], ...] = ()
    """(name of a rule, its replacement), ascending by name. Source: docs/protocol/releases.md."""
    replaced: Mapping[str, Function] = field(init=False, repr=False, compare=False)
    """The same, as a mapping."""
    of: Profile | None = field(default=None, repr=False, compare=False)
    """The profile whose behaviour this one has, where its rules are watched (`rules/watching.py`)."""

    revisions_travel: bool = True
    """Messages carry the revision of a client. Before 2.1.2 every revision on the wire is 0 (B02)."""

    batches: bool = True
    """A client may publish several instances of a service at once. From 2.1.1 on."""

    sending_counts_as_activity: bool = False
    """A request that is sent postpones the health check of the connection to its target. True in 2.0.0 (B35)."""

    reports_to_members_not_up: bool = True
    """Members that are not UP get additional reports, besides the round robin. From 2.3.0 on."""

    event_queue: int = 0
    """Local events that each queue holds; 0: an event is handled at once, where it is published. For an outside
    observer a real server's 16,384 are equivalent to 0; a bounded cluster scales them down (`Bounds.event_queue`)."""
    keeps_index: bool = False
    """The service index and the last push are part of the state (`Bounds.index`). Only lists read them."""

    largest_revision: int | None = None
    """A CHANGE of a larger one raises after its content was applied; None: there is no limit. Every release reads 32
    bits (revision-beyond-int32)."""

    sync_delay_ms: int = 1000
    retry_delay_ms: int = 3000
    load_retry_ms: int = 30_000
    load_alone_ms: int = 1000
    """How often a node without other members checks whether its list has members."""
    load_timeout_ms: int = 30_000
    call_timeout_ms: int = 3000
    tick_ms: int = 100
    """Period of the delay engine: a task is taken at the first tick at or after its due time."""
    verify_interval_ms: int = 5000
    lease_ms: int = 180_000
    """A synced copy not renewed for longer than this is removed by the cleaner."""
    beat_timeout_ms: int = 15_000
    """An ip:port instance is unhealthy when its last beat is this long ago."""
    beat_delete_ms: int = 30_000
    """... and is removed when it is this long ago."""
    empty_lease_ms: int = 30_000
    """An ip:port client that publishes nothing is removed when its last request is longer ago than this."""
    lease_check_ms: int = 5000
    connection_check_ms: int = 3000
    """From the end of one check of idle connections to the next; the first comes a second after the start."""
    connection_idle_ms: int = 20_000
    """A connection that was idle for this long is probed."""
    detection_ms: int = 5000
    """The time to wait for its answer; 1 s before 2.3.0."""
    health_check_ms: int = 5000
    """A connection to a peer is tested when it has shown no activity for longer than this."""
    report_first_ms: int = 5000
    report_interval_ms: int = 2000
    report_not_up_interval_ms: int = 5000
    failures_until_down: int = 3
    """A member is DOWN when more reports than this failed in a row (`fail-access-cnt`)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "replaced", dict(self.rules))

    def with_rules(self, *functions: Function) -> Profile:
        """The profile in which each of these functions replaces its rule; a rule itself restores the behaviour of
        `strict`. Raises NotARuleError for a function that is neither."""
        rules = dict(self.rules)
        for function in functions:
            rules.pop(name_of(function), None)
            if not is_own(function):
                rules[name_of(function)] = function
        return replace(self, rules=tuple(sorted(rules.items())))

    def has(self, function: Function) -> bool:
        """Whether the profile uses this rule, or this replacement of one."""
        if self.of is not None:
            return self.of.has(function)
        if is_own(function):
            return name_of(function) not in self.replaced
        return self.replaced.get(name_of(function)) is function

    def without_time(self) -> Profile:
        """The same rules with time frozen: all delays are equal (the bounded cluster of the explorer)."""
        return replace(self, sync_delay_ms=0, retry_delay_ms=0, load_retry_ms=0, load_alone_ms=0)
