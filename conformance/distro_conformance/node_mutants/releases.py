"""What releases do otherwise, mostly bugs: each turns a switch of the profile the way a release had it."""

from __future__ import annotations

from distro_conformance.node_mutants.mutant import Mutant, add
from distro_impl.profiles.profile import MissingClient, RevisionTakenOver

add(
    Mutant(
        "B02",
        "A verify only tests whether the client exists; a copy with other content is confirmed and kept.",
        {"verify_tests_revision": False},
    ),
    Mutant("B02-sender", "A verify always carries revision 0.", {"revision_sent": False}),
    Mutant(
        "B03",
        "Silent connections are not detected: a client whose machine lost power stays, and is verified, for ever.",
        {"detection_timeout_ms": None},
    ),
    Mutant("B06", "What the checker of beats changes leaves the revision.", {"revision_follows_beats": False}),
    Mutant(
        "B10",
        "A copy takes over the revision only where it is created.",
        {"revision_taken_over": RevisionTakenOver.ON_CREATION},
    ),
    Mutant(
        "B12",
        "A registration on a connection without a client is acknowledged and dropped.",
        {"missing_client": MissingClient.IGNORED},
    ),
    Mutant(
        "B15",
        "The place of an ip:port client is one among the living members: who believes different things of them names "
        "different owners, or each another one.",
        {"owner_by_configured_place": False},
    ),
    Mutant("B16", "An exception while applying is answered with resultCode 200.", {"exception_visible": False}),
    Mutant("B16-unhandled", "A sync without a handler is answered with resultCode 200.", {"unhandled_visible": False}),
    Mutant("B17", "A CHANGE renews no lease.", {"sync_renews_lease": False}),
    Mutant(
        "B18",
        "A batch leaves the revision of its client as it is, so that a copy without it passes every verify.",
        {"batch_bumps_revision": False},
    ),
    Mutant(
        "B19", "A batch that comes where a single instance was cannot be applied.", {"batch_replaces_single": False}
    ),
    Mutant(
        "B24",
        "The retry of a CHANGE replaces a DELETE that waits, and then finds no client to send.",
        {"pending_delete_survives_retry": False, "missing_client_is_deleted": False},
    ),
    Mutant(
        "B11",
        "A snapshot of more than 10 MiB cannot be taken: the load never ends, and no client is ever verified.",
        {"reply_bytes_max": 10 * 1024 * 1024},
    ),
    Mutant(
        "B23",
        "A node that was suspended expires what could not be renewed meanwhile.",
        {"renews_after_pause": False},
    ),
    Mutant("B31", "A copy that is not verified expires after 30 s.", {"client_expired_ms": 30_000}),
    Mutant(
        "m-requests-carry-no-identity",
        "Requests to members carry no identity of the cluster.",
        {"identity_sent": False},
    ),
    Mutant(
        "m-instance-id-stays-empty",
        "An instance that is registered without an id gets none.",
        {"instance_id_generated": False},
    ),
    Mutant(
        "m-illegal-instance-is-registered",
        "An instance with a beat interval longer than its time-outs, or an illegal cluster name, is registered.",
        {"instances_checked": False},
    ),
    Mutant(
        "m-load-waits-three-seconds",
        "A SNAPSHOT request times out after three seconds, as a sync does.",
        {"load_timeout_ms": 3_000},
    ),
    Mutant("B33", "A node that has not loaded gives a snapshot.", {"snapshot_needs_load": False}),
    Mutant(
        "D4", "A change of nothing but the cluster of an instance is not applied.", {"equality_sees_cluster": False}
    ),
    Mutant(
        "D7", "A registration by version 2 of the HTTP API stays where it was made.", {"every_write_forwarded": False}
    ),
    Mutant(
        "m-v2-registration-stays",
        "A registration by version 2 of the HTTP API stays where it was made, and only an owner announces.",
        {"every_write_forwarded": False, "owner_hands_over": False},
    ),
    Mutant(
        "push-of-every-cluster",
        "Who subscribed to one cluster is pushed the instances of all.",
        {"push_of_subscribed_cluster": False},
    ),
    Mutant(
        "subscription-shows-disabled",
        "The answer to a subscription shows disabled instances.",
        {"subscription_hides_disabled": False},
    ),
    Mutant(
        "native-connect-onto-synced",
        "A client is created only if there is none of that id; a copy stays what it is, and takes what is registered.",
        {"connection_replaces_copy": False},
    ),
    Mutant("revision-zero-wildcard", "A verify of revision 0 passes against any copy.", {"zero_is_a_revision": False}),
    Mutant("m-distro-on-sdk-port", "Members' requests are taken on the port for SDKs.", {"distro_on_sdk_port": True}),
    Mutant("m-sends-to-everybody", "Members that are not UP are sent to.", {"sends_only_to_up_members": False}),
    Mutant("m-verify-late", "A verify round comes every 20 s.", {"verify_interval_ms": 20_000}),
    Mutant("m-sync-late", "A change leaves 4 s after it happened.", {"sync_delay_ms": 4_000}),
    Mutant("m-retry-late", "A failed sync waits for 30 s.", {"sync_retry_delay_ms": 30_000}),
    Mutant("m-retry-early", "A failed sync is repeated after 300 ms.", {"sync_retry_delay_ms": 300}),
    Mutant("m-ip-port-copies-stay", "A copy of an ip:port client has no lease.", {"ip_port_lease": False}),
    Mutant(
        "m-no-push-retry",
        "A push that is not acknowledged is repeated a minute later.",
        {"push_retry_delay_ms": 60_000},
    ),
    Mutant("m-push-late", "Subscribers get a push after 5 s.", {"push_delay_ms": 5_000}),
    Mutant("m-asked-early", "A connection is asked for a sign of life after 5 s.", {"connection_idle_ms": 5_000}),
)
