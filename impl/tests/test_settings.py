"""Nacos' configuration keys reach the profile, and what is unknown is named."""

from dataclasses import fields

import pytest

from distro_impl import Profile, profile_named
from distro_impl.settings import KEYS, UnknownSettingError, with_settings


def test_every_key_sets_a_field_of_the_profile():
    assert set(KEYS.values()) <= {field.name for field in fields(Profile)}


def test_a_key_changes_its_field_and_nothing_else():
    strict = profile_named("strict")
    changed = with_settings(strict, {"nacos.naming.client.expired.time": "20000"})
    assert changed.client_expired_ms == 20_000
    assert with_settings(changed, {"nacos.naming.client.expired.time": "180000"}) == strict


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (
            {"nacos.naming.client.expiredtime": "1"},
            "no setting 'nacos.naming.client.expiredtime'; known are: nacos.core",
        ),
        ({"nacos.naming.client.expired.time": "20s"}, "takes a whole number, not '20s'"),
    ],
)
def test_what_cannot_be_used_is_named(settings, complaint):
    with pytest.raises(UnknownSettingError, match=complaint):
        with_settings(profile_named("strict"), settings)
