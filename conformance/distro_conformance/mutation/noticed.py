"""Which mutants of the reference node each requirement notices, those that break least besides first.

From a run of every mutant against every requirement, `distrocheck mutants run --level node --json`; a new mutant or
requirement is added with what such a run says of it. That each still notices its first is a test.
"""

from __future__ import annotations

from collections.abc import Mapping

NOTICED: Mapping[str, tuple[str, ...]] = {
    "DISTRO-BATCH-001": ("m-half-a-batch",),
    "DISTRO-BATCH-002": (
        "B18",
        "m-first-registration-stays",
        "m-stale-content",
    ),
    "DISTRO-BATCH-003": (
        "B19",
        "m-change-is-not-applied",
        "m-lists-show-own-clients",
        "m-one-id-for-all",
    ),
    "DISTRO-CONNECTION-001": (
        "B03",
        "m-detection-believes-anybody",
    ),
    "DISTRO-CONNECTION-002": (
        "B39",
        "m-acknowledgements-are-not-heard",
    ),
    "DISTRO-CONNECTION-003": (
        "B03",
        "m-asked-early",
        "m-detection-believes-anybody",
        "B39",
    ),
    "DISTRO-CONNECTION-004": (
        "m-requests-are-no-signs-of-life",
        "m-asked-early",
        "m-health-check-fails",
    ),
    "DISTRO-ERROR-001": (
        "m-unknown-type-is-500",
        "m-health-check-fails",
    ),
    "DISTRO-ERROR-002": (
        "m-unreadable-is-500",
        "m-health-check-fails",
    ),
    "DISTRO-ERROR-003": (
        "m-unreadable-is-500",
        "m-health-check-fails",
        "m-one-id-for-all",
    ),
    "DISTRO-ERROR-004": (
        "m-unknown-fields-are-refused",
        "m-one-id-for-all",
    ),
    "DISTRO-ERROR-005": ("B16",),
    "DISTRO-ERROR-006": ("m-codes-disagree",),
    "DISTRO-HOLDER-001": ("B02",),
    "DISTRO-HOLDER-002": ("m-one-id-for-all",),
    "DISTRO-HOLDER-003": (
        "B26",
        "m-delete-is-not-applied",
    ),
    "DISTRO-HOLDER-004": (
        "m-unknown-delete-fails",
        "m-one-id-for-all",
    ),
    "DISTRO-HOLDER-005": (
        "m-query-creates",
        "m-verify-creates",
    ),
    "DISTRO-HOLDER-006": (
        "m-change-only-adds",
        "m-synced-changes-are-not-pushed",
        "m-change-is-not-applied",
        "B07",
        "m-stale-content",
    ),
    "DISTRO-HOLDER-007": (
        "B13",
        "m-delete-is-not-applied",
        "B07",
    ),
    "DISTRO-HOLDER-008": (
        "D4",
        "m-change-is-not-applied",
        "B07",
    ),
    "DISTRO-HOLDER-009": ("m-add-is-refused",),
    "DISTRO-HOLDER-010": (
        "m-equality-without-health",
        "m-equality-without-metadata",
        "m-equality-without-port",
        "m-change-is-not-applied",
        "B07",
        "m-stale-content",
        "m-one-id-for-all",
    ),
    "DISTRO-HOLDER-011": (
        "revision-zero-wildcard",
        "B02",
    ),
    "DISTRO-IPPORT-001": (
        "m-ip-port-clients-are-called-otherwise",
        "m-no-change",
        "m-one-member-is-told",
        "m-sync-late",
    ),
    "DISTRO-IPPORT-002": (
        "m-beats-are-never-missed",
        "m-queries-keep-their-first-view",
        "m-lists-show-own-clients",
    ),
    "DISTRO-IPPORT-003": ("m-everybody-owns-everything",),
    "DISTRO-IPPORT-004": (
        "m-beat-renews-nothing",
        "m-ip-port-clients-are-called-otherwise",
    ),
    "DISTRO-IPPORT-005": (
        "m-beat-registers-nobody",
        "m-ip-port-clients-are-called-otherwise",
    ),
    "DISTRO-IPPORT-006": (
        "m-http-deregistration-is-forgotten",
        "m-deregistration-is-not-announced",
        "m-stale-content",
    ),
    "DISTRO-IPPORT-007": (
        "B06",
        "m-beats-are-never-missed",
        "B02-sender",
        "m-answers-without-revisions",
        "m-stale-content",
    ),
    "DISTRO-IPPORT-008": (
        "m-beat-heals-nobody",
        "m-beat-renews-nothing",
        "m-sync-late",
    ),
    "DISTRO-IPPORT-009": (
        "m-second-hop",
        "m-everybody-owns-everything",
    ),
    "DISTRO-IPPORT-010": ("m-http-list-has-plain-names",),
    "DISTRO-IPPORT-011": (
        "m-ip-port-clients-are-not-verified",
        "m-verify-late",
        "B02-sender",
        "m-answers-without-revisions",
        "no-anti-entropy",
    ),
    "DISTRO-LEASE-001": (
        "B31",
        "m-copies-stay",
    ),
    "DISTRO-LEASE-002": ("m-verify-renews-nothing",),
    "DISTRO-LEASE-003": (
        "m-failed-verify-renews",
        "B02",
        "m-copies-stay",
    ),
    "DISTRO-LEASE-004": ("B17",),
    "DISTRO-LEASE-005": (
        "m-cleaner-drops-native",
        "m-acknowledgements-are-not-heard",
    ),
    "DISTRO-LEASE-006": (
        "m-ip-port-copies-stay",
        "B31",
        "m-copies-stay",
    ),
    "DISTRO-LEASE-007": (
        "m-ipport-verify-no-beat-renew",
        "m-verify-renews-nothing",
    ),
    "DISTRO-LIST-001": (
        "m-deregistration-is-not-announced",
        "m-lists-are-one-behind",
        "m-queries-keep-their-first-view",
    ),
    "DISTRO-LIST-002": (
        "m-empty-service-is-an-error",
        "m-one-id-for-all",
    ),
    "DISTRO-LIST-003": ("m-lists-show-the-disabled",),
    "DISTRO-LIST-004": (
        "m-lists-show-every-cluster",
        "m-lists-show-the-unhealthy",
    ),
    "DISTRO-LIST-005": ("m-lists-show-own-clients",),
    "DISTRO-LIST-006": (
        "m-service-names-are-grouped",
        "m-one-group",
        "m-one-id-for-all",
    ),
    "DISTRO-LIST-007": (
        "B13",
        "m-queries-keep-their-first-view",
    ),
    "DISTRO-LOAD-001": ("m-load-descends", "m-load-asks-everybody", "B32"),
    "DISTRO-LOAD-002": (
        "m-load-asks-the-first",
        "m-load-applies-nothing",
    ),
    "DISTRO-LOAD-003": (
        "m-load-applies-nothing",
        "m-lists-show-own-clients",
        "B07",
    ),
    "DISTRO-LOAD-004": (
        "m-verifies-before-the-load",
        "m-load-asks-everybody",
        "no-anti-entropy",
        "m-no-change",
        "m-one-member-is-told",
        "m-sync-late",
    ),
    "DISTRO-LOAD-005": (
        "m-load-is-not-repeated",
        "m-load-applies-nothing",
    ),
    "DISTRO-LOAD-006": (
        "B01",
        "B39",
        "m-acknowledgements-are-not-heard",
    ),
    "DISTRO-LOAD-007": (
        "B27",
        "m-delete-is-not-applied",
    ),
    "DISTRO-LOAD-008": ("B33",),
    "DISTRO-MEMBER-001": (
        "m-report-without-version",
        "m-report-without-address",
    ),
    "DISTRO-MEMBER-002": (
        "m-report-is-answered-by-nobody",
        "m-report-without-address",
    ),
    "DISTRO-MEMBER-003": ("m-anonymous-report-is-taken",),
    "DISTRO-MEMBER-004": (
        "m-not-sent-is-forgotten",
        "m-sends-to-everybody",
        "m-nobody-comes-back",
        "m-nobody-goes-down",
        "m-retry-late",
        "m-stale-content",
    ),
    "DISTRO-MEMBER-005": (
        "m-owner-includes-down",
        "m-nobody-comes-back",
        "m-nobody-goes-down",
        "m-everybody-owns-everything",
    ),
    "DISTRO-NATIVE-001": ("B01",),
    "DISTRO-NATIVE-002": ("B41",),
    "DISTRO-OWNER-001": (
        "m-lists-show-own-clients",
        "B07",
    ),
    "DISTRO-PUSH-001": (
        "m-nobody-is-told",
        "m-push-late",
        "B13",
        "m-first-registration-stays",
        "m-lists-are-one-behind",
        "m-queries-keep-their-first-view",
    ),
    "DISTRO-PUSH-002": (
        "m-nobody-is-told",
        "m-push-late",
        "B13",
        "m-delete-is-not-applied",
        "m-lists-are-one-behind",
        "m-lists-show-own-clients",
        "B07",
    ),
    "DISTRO-PUSH-003": (
        "m-no-push-retry",
        "m-nobody-is-told",
        "m-push-late",
    ),
    "DISTRO-PUSH-004": ("m-acknowledgements-are-not-heard",),
    "DISTRO-PUSH-005": ("m-unsubscribed-is-told",),
    "DISTRO-PUSH-006": ("m-lists-have-one-time",),
    "DISTRO-PUSH-007": (
        "m-subscription-is-answered-empty",
        "m-lists-are-one-behind",
        "m-one-id-for-all",
    ),
    "DISTRO-REFUSAL-001": ("B16",),
    "DISTRO-REFUSAL-002": ("B16-unhandled",),
    "DISTRO-REFUSAL-003": ("B16-unhandled",),
    "DISTRO-REGISTER-001": (
        "m-first-registration-stays",
        "m-one-id-for-all",
    ),
    "DISTRO-REGISTER-002": (
        "m-deregistration-matches-the-address",
        "m-one-id-for-all",
    ),
    "DISTRO-REGISTER-003": (
        "m-deregistration-removes-everything",
        "m-one-id-for-all",
    ),
    "DISTRO-REGISTER-004": ("m-weight-is-a-whole-number",),
    "DISTRO-REGISTER-005": (
        "B12",
        "m-everybody-is-a-client",
    ),
    "DISTRO-REGISTER-006": (
        "m-nameless-service",
        "m-one-id-for-all",
    ),
    "DISTRO-REGISTER-007": (
        "m-equal-registration-is-nothing",
        "m-deregistration-matches-the-address",
        "m-deregistration-removes-everything",
        "m-first-registration-stays",
        "B02-sender",
        "m-answers-without-revisions",
        "m-stale-content",
        "m-one-id-for-all",
    ),
    "DISTRO-REGISTER-008": (
        "m-one-namespace",
        "m-one-group",
        "m-one-id-for-all",
    ),
    "DISTRO-RETRY-001": (
        "m-retry-early",
        "m-failure-is-success",
        "m-one-worker",
        "m-retry-late",
    ),
    "DISTRO-RETRY-002": (
        "m-error-is-success",
        "m-retry-late",
    ),
    "DISTRO-RETRY-003": (
        "m-timeout-is-success",
        "m-retry-late",
    ),
    "DISTRO-RETRY-004": (
        "B42",
        "m-retry-late",
    ),
    "DISTRO-RETRY-005": (
        "m-delete-retried-as-change",
        "m-failed-delete-is-forgotten",
        "m-failure-is-success",
        "m-retry-late",
    ),
    "DISTRO-RETRY-006": ("B24",),
    "DISTRO-RETRY-007": ("m-stale-content",),
    "DISTRO-RETRY-008": ("m-stale-content",),
    "DISTRO-REVISION-001": ("B10",),
    "DISTRO-SECURITY-001": (
        "m-distro-on-sdk-port",
        "m-unreadable-is-500",
        "m-health-check-fails",
    ),
    "DISTRO-SETUP-001": ("m-one-id-for-all",),
    "DISTRO-SETUP-002": (
        "m-unregistered-is-500",
        "m-one-id-for-all",
    ),
    "DISTRO-SETUP-003": ("m-health-check-fails",),
    "DISTRO-SETUP-004": ("m-everybody-is-a-client",),
    "DISTRO-SETUP-005": (
        "m-subscribers-are-not-verified",
        "m-verify-late",
        "no-anti-entropy",
    ),
    "DISTRO-SETUP-006": ("m-no-abilities",),
    "DISTRO-SETUP-007": (
        "m-rubbish-ends-the-client",
        "m-health-check-fails",
    ),
    "DISTRO-SETUP-008": (
        "m-second-set-up-starts-over",
        "m-health-check-fails",
    ),
    "DISTRO-SNAPSHOT-001": ("m-snapshot-of-own-clients",),
    "DISTRO-SNAPSHOT-002": (
        "m-snapshot-of-own-clients",
        "B02-sender",
        "m-answers-without-revisions",
        "m-stale-content",
        "m-one-id-for-all",
    ),
    "DISTRO-SNAPSHOT-003": ("m-unknown-query-fails",),
    "DISTRO-SYNC-001": (
        "m-no-change",
        "m-one-worker",
        "m-one-member-is-told",
        "m-sync-late",
    ),
    "DISTRO-SYNC-002": ("m-no-delete",),
    "DISTRO-SYNC-003": (
        "m-no-delete",
        "m-no-change",
        "m-one-worker",
        "m-one-member-is-told",
        "m-sync-late",
    ),
    "DISTRO-SYNC-004": (
        "m-merge-keeps-max-delay",
        "m-no-change",
        "m-one-worker",
        "m-one-member-is-told",
        "m-sync-late",
        "m-stale-content",
    ),
    "DISTRO-SYNC-005": (
        "m-deregistration-removes-everything",
        "m-no-change",
        "m-one-worker",
        "m-one-member-is-told",
        "m-sync-late",
    ),
    "DISTRO-SYNC-006": ("B08",),
    "DISTRO-SYNC-007": ("m-no-target",),
    "DISTRO-SYNC-008": (
        "m-deregistration-removes-everything",
        "m-stale-content",
    ),
    "DISTRO-VERIFY-001": (
        "m-verify-late",
        "B02-sender",
        "m-answers-without-revisions",
        "no-anti-entropy",
    ),
    "DISTRO-VERIFY-002": ("m-failed-verify-is-ignored",),
    "DISTRO-VERIFY-003": (
        "m-verify-to-one",
        "m-verify-late",
        "no-anti-entropy",
    ),
    "DISTRO-VERIFY-004": ("m-add-after-fail-to-all",),
    "DISTRO-VERIFY-005": ("m-the-dead-are-verified",),
    "DISTRO-VERIFY-006": ("m-verify-names-nobody",),
}

NOT_SEEN_TO_FAIL: Mapping[str, str] = {}
"""With the reason."""
