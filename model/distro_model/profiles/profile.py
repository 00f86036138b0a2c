"""What a profile is: every switch and every duration by which nodes differ. The defaults are `strict`.

One `Profile` is one column of the behaviour matrix (wire-protocol.md 6.9), restricted to what this model covers. Each
switch names the defect that it stands for (`known-bugs.md`, wire-protocol.md 6.10), so that `strict`, in which every
known defect of this grain is repaired, can be read beside a release. The rules ask the profile; nothing else in the
model knows a release.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class TakesRevision(StrEnum):
    """When a synced copy takes over the revision that arrives with its content (B10, D1)."""

    AT_CREATION = "at creation"  # 2.1.2-2.2.4: later CHANGEs leave it alone
    ALWAYS = "always"  # from 2.3.0


class RetryAction(StrEnum):
    """What a failed sync queues again."""

    SAME = "same"
    ALWAYS_CHANGE = "always CHANGE"  # no release; mutant m-delete-retried-as-change


class OwnerRing(StrEnum):
    """From which members, and how, the owner of an ip:port client is computed (wire-protocol.md 6.6)."""

    SKIPPING = "the configured list, from the client's place on to the first member that is not DOWN"
    ALIVE = "the members that are not DOWN"  # every release; B15
    CONFIGURED = "the configured list, DOWN or not"  # no release; mutant m-owner-includes-down


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A named record of semantic switches and durations. The defaults are the `strict` profile."""

    name: str

    revisions_travel: bool = True
    """Messages carry the revision of a client. Before 2.1.2 every revision on the wire is 0 (5.2, 6.9; B02)."""

    verify_tests_revision: bool = True
    """A verify of another revision fails. Before 2.1.2 it tests existence only (B02)."""

    revision_zero_passes: bool = False
    """Revision 0 in a verify matches any copy. True from 2.1.2 on (D11)."""

    takes_revision: TakesRevision = TakesRevision.ALWAYS

    sync_renews_lease: bool = True
    """An applied CHANGE or snapshot element renews the lease. No release does (B17)."""

    protects_native: bool = True
    """A peer's CHANGE, DELETE or snapshot never touches a client connected here. No release does (B01, B41)."""

    tombstones: bool = True
    """What was deleted stays deleted: for one lease no late CHANGE or snapshot brings it back. No release has them
    (B26, B27). In memory like all else: a node that restarts after the DELETE, and loads from a member that has not
    heard of it yet, still takes the client until its lease ends."""

    refuses_before_load: bool = True
    """A member that is not loaded itself gives no snapshot, and a load that everybody refused so is complete: nobody
    has anything. Every release gives what little it has, and whoever asked takes it for everything (B33, D14)."""

    load_passes_over_down: bool = True
    """Such a load waits for nobody who is DOWN. Means nothing where a load asks the first member that answers, as in
    every release; mutant m-load-waits-for-down."""

    grace_after_pause: bool = True
    """A lease check that comes so late that the node must have been suspended ends nothing, and starts every running
    lease anew. In a release it ends whatever could not be renewed meanwhile (B23)."""

    replicas_are_native: bool = False
    """Synced copies believe that they are originals. No release; mutant B07."""

    sends_only_to_up_members: bool = True
    """A sync to a member that is not UP fails without a request and a verify is not sent: from 2.1.1 (6.3)."""

    change_of_gone_client_deletes: bool = True
    """A CHANGE task whose client is gone sends DELETE. Every release skips it silently (B24, D2)."""

    retry_keeps_pending_delete: bool = True
    """The retry of a failed sync leaves a queued DELETE alone. In every release it replaces it (B24, D2)."""

    retry_action: RetryAction = RetryAction.SAME

    acknowledges_failed_applies: bool = False
    """A sync whose handling raises is answered with SUCCESS. True in 2.0.0-2.5.0 (B16, D5)."""

    batch_bumps_revision: bool = True
    """A batch registration counts as a change. 2.1.2-2.2.4 forgot it (B18, D18)."""

    batch_replaces_single: bool = True
    """A copy takes a batch over a single instance. In 2.1.1-2.3.0 the apply raises, every time (B19, D8)."""

    detects_silent_connections: bool = True
    """A connection on which nothing came for long is asked for a sign of life, and closed without one. 2.2.0-2.2.4 lost
    the check (B03)."""

    records_answer_before_counting: bool = True
    """A client's sign of life is recorded before the check that waits for it is let go on. In no release that detects
    (2.0.0-2.1.2, 2.3.0-head; B39)."""

    sending_counts_as_activity: bool = False
    """A request that is only sent postpones the health check of the connection to its target. True in 2.0.0 (B35)."""

    keeps_metadata_of_published: bool = True
    """What an operator has set of an address stays while anybody publishes it. No release looks for another publisher
    when one goes; from 2.3.0 on fewer ways lead there (B43)."""

    refuses_unknown_client: bool = True
    """A request of a client that the node does not know is refused. 2.0.3-2.3.1 answer SUCCESS (B12)."""

    rechecks_client: bool = True
    """A request that has looked up its client looks again before it changes and announces it. No release does (B25)."""

    rechecks_transport: bool = True
    """A transport that ends while its connection is set up leaves no client behind. In every release it may (B40)."""

    queue_per_event_class: bool = False
    """Each class of local events has a queue of its own, so that two of one client change places. 2.0.0-2.0.1 (B08)."""

    overflow_overtakes: bool = False
    """An event that finds its queue full is handled at once, before all that wait in it. Every release (B28)."""

    releases_in_order: bool = True
    """The index hears of a removed client in the queue of its registrations. Before 2.3.0 in another one (B13)."""

    audits_index: bool = True
    """Once every verify interval the service index is held against the table of clients. No release does (B14)."""

    indexes_before_push: bool = True
    """The index has a new entry before the push of its service is published. In 3.x the push comes first (B44)."""

    event_queue: int = 0
    """Local events that each queue holds; 0: an event is handled at once, where it is published. A real server's 16,384
    are as good as 0 to whoever looks from outside; a bounded cluster scales them down (`Bounds.event_queue`)."""
    keeps_index: bool = False
    """The service index and the last push are part of the state (`Bounds.index`). Only lists need them."""

    fresh_change_waits_for_retry: bool = False
    """A change that meets a queued retry takes over its longer delay. In no release; mutant m-merge-keeps-max-delay."""

    retries_unreadable: bool = True
    """A sync whose answer cannot be read is retried. In every release its callback is never called (B42)."""

    applies_atomically: bool = True
    """A CHANGE is applied in one step. In every release service by service, while other requests go on (B05)."""

    reads_atomically: bool = True
    """What a CHANGE carries is read in one step. In every release first the content, then the revision (B05)."""

    largest_revision: int | None = None
    """A CHANGE of a larger one raises after its content was applied; None: there is no limit. Every release reads 32
    bits (revision-beyond-int32)."""

    largest_snapshot: int | None = None
    """Clients that fit into the one message of a snapshot; None: it is paged. Every release sends one message of at
    most 10 MB (B11)."""

    first_load_asks: bool = True
    """A node asks for a snapshot as soon as it starts. 2.0.0-2.2.0 know no peer by then, and fail (B32)."""

    interrupted_load_retried: bool = True
    """A load that was interrupted by an exception starts again. In no release (load-exception-no-retry)."""

    connection_takes_over: bool = True
    """A connection makes its client native, even where a copy of that id is held. In no release
    (native-connect-onto-synced)."""

    verifies: bool = True
    """Owners verify at all. Every release does; mutant no-anti-entropy."""

    verifies_everybody: bool = True
    """A verify round goes to every member. In every release; mutant m-verify-to-one."""

    repairs_only_the_failed: bool = True
    """A failed verify brings a full sync to the member that failed it. In every release; m-add-after-fail-to-all."""

    verify_creates: bool = False
    """A VERIFY of an unknown client creates it, with nothing. In no release; mutant m-query-creates."""

    unknown_delete_succeeds: bool = True
    """A DELETE of an unknown client is a success. In every release; mutant m-unknown-delete-fails."""

    natives_expire: bool = False
    """The lease check removes native clients too. In no release; mutant m-cleaner-drops-native."""
    owner_ring: OwnerRing = OwnerRing.SKIPPING
    """Every release: ALIVE (B15). While everybody believes everybody alive, all three name the same owner."""

    health_changes_revision: bool = True
    """The revision of an ip:port client follows its health and its expiry too. No release from 2.1.2 on (B06)."""

    hands_over: bool = True
    """Who accepts a change of an ip:port client announces it, owner or not by then, and refuses from a peer what it
    has replaced until that peer has heard. Every release asks who is the owner when the event is handled (B22)."""

    creates_atomically: bool = True
    """Two first requests of an ip:port client create it once. Not in 2.0.0-2.0.2 (B30)."""

    verify_renews_beats: bool = True
    """An accepted verify of an ip:port client counts as a beat. All releases; mutant m-ipport-verify-no-beat-renew."""

    verify_renews_owners_beats: bool = False
    """It does so at an owner too, whoever verifies: two owners keep a dead client alive for each other. True in every
    release (known-bugs.md section 5, last line)."""

    verify_lists_owned: bool = False
    """A verify round also lists all that the sender owns, and what it should own and does not is deleted. Nacos 1.x
    (v1-checksum-dual-owner-delete)."""

    loads_ranges: bool = False
    """A load asks each member for what that one owns, instead of the first for everything. r-nacos before 0.4.0
    (snapshot-range-after-jitter)."""

    waits_for_second_member: bool = False
    """A node that knows no other member never completes its load. Every release (single-member-never-initialised)."""

    sends_to_members_that_left: bool = False
    """A task for a node that has left the member list is executed all the same. 2.0.0-2.0.1 (B37)."""

    matches_parts_of_addresses: bool = False
    """A node counts as a member when its address is a part of a member's. Every release (B37, D13)."""

    reports_to_members_not_up: bool = True
    """Who is not UP gets reports of its own, besides those that go round. From 2.3.0 on (4.3)."""

    new_members_start_down: bool = True
    """A node that appears in the member list is DOWN until it was heard of. Not from 2.0.1 on (B36)."""

    list_resets_states: bool = False
    """Reading the member list makes every member UP. Before 1.4.2 (B36)."""

    sync_delay_ms: int = 1000
    retry_delay_ms: int = 3000
    load_retry_ms: int = 30_000
    load_timeout_ms: int = 30_000
    call_timeout_ms: int = 3000
    tick_ms: int = 100
    """Period of the delay engine: a task is taken at the first tick at or after its due time (6.2)."""
    verify_interval_ms: int = 5000
    lease_ms: int = 180_000
    """A synced copy not renewed for longer than this is removed by the cleaner (6.7)."""
    beat_timeout_ms: int = 15_000
    """An ip:port instance is unhealthy when its last beat is longer ago than this (6.7)."""
    beat_delete_ms: int = 30_000
    """... and is removed when it is longer ago than this."""
    lease_check_ms: int = 5000
    health_check_ms: int = 5000
    """A connection to a peer is tested when nothing has shown for longer than this that it works (2.5)."""
    report_first_ms: int = 5000
    report_interval_ms: int = 2000
    report_not_up_interval_ms: int = 5000
    failures_until_down: int = 3
    """A member is DOWN when more reports than this failed in a row (`fail-access-cnt`, 4.3)."""

    def without_time(self) -> Profile:
        """The same rules with time frozen: no delay is longer than another (the bounded cluster of the explorer)."""
        return replace(self, sync_delay_ms=0, retry_delay_ms=0, load_retry_ms=0)
