"""Nacos' own configuration keys, as far as this node has something to configure.

One table from key to the field of the profile that it sets; a key that is not in it would have no effect, and is
refused by name instead of being ignored. Source: wire-protocol.md section 8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from distro_impl.profiles import Profile

_DISTRO = "nacos.core.protocol.distro.data"

KEYS: Mapping[str, str] = {
    f"{_DISTRO}.sync.delayMs": "sync_delay_ms",
    f"{_DISTRO}.sync.timeoutMs": "sync_timeout_ms",
    f"{_DISTRO}.sync.retryDelayMs": "sync_retry_delay_ms",
    f"{_DISTRO}.verify.intervalMs": "verify_interval_ms",
    f"{_DISTRO}.verify.timeoutMs": "verify_timeout_ms",
    f"{_DISTRO}.load.retryDelayMs": "load_retry_delay_ms",
    f"{_DISTRO}.load.timeoutMs": "load_timeout_ms",
    "nacos.naming.client.expired.time": "client_expired_ms",
    "nacos.naming.clean.empty-service.interval": "empty_service_clean_period_ms",
    "nacos.naming.clean.empty-service.expired-time": "empty_service_expired_ms",
    "nacos.naming.push.pushTaskDelay": "push_delay_ms",
    "nacos.naming.push.pushTaskTimeout": "push_timeout_ms",
    "nacos.naming.push.pushTaskRetryDelay": "push_retry_delay_ms",
    "nacos.core.member.fail-access-cnt": "member_fail_access_count",
}
"""All values are whole numbers: milliseconds, but for the last, a count."""


class UnknownSettingError(ValueError):
    """A key that this node does not know, or a value that it cannot use; the message names it."""


def with_settings(profile: Profile, settings: Mapping[str, str]) -> Profile:
    """The profile with those keys set. Raises UnknownSettingError."""
    changes: dict[str, Any] = {}
    for key, value in settings.items():
        if key not in KEYS:
            raise UnknownSettingError(f"the node has no setting '{key}'; known are: {', '.join(KEYS)}")
        if not value.isdigit():
            raise UnknownSettingError(f"the setting '{key}' takes a whole number, not '{value}'")
        changes[KEYS[key]] = int(value)
    return replace(profile, **changes)
