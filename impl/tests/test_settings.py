"""Nacos' configuration keys: a file of them, the resulting profile, and the keys that are refused."""

from __future__ import annotations

import base64
from dataclasses import fields
from pathlib import Path

import pytest

from distro_impl import PROFILES, Profile, SettingError, profile_named
from distro_impl.settings import SETTINGS, configured
from distro_impl.settings.ignored import IGNORED
from distro_impl.settings.properties import read_properties

STRICT, NACOS_2_0_4, NACOS_2_2_4 = PROFILES["strict"], PROFILES["nacos-2.0.4"], PROFILES["nacos-2.2.4"]
TLS = "nacos.remote.server.rpc.tls"
SECRET = base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
AUTH = {
    "nacos.core.auth.enabled": "true",
    "nacos.core.auth.plugin.nacos.token.secret.key": SECRET,
    "distrocheck.auth.users": "nacos:nacos, reader:secret:r",
}


def test_a_key_changes_its_field_and_nothing_else():
    changed = configured(STRICT, {"nacos.naming.client.expired.time": "20000"}).profile
    assert changed.client_expired_ms == 20_000
    assert configured(changed, {"nacos.naming.client.expired.time": "180000"}).profile == STRICT


def test_every_key_of_the_profile_names_a_field_of_it():
    targets = {target for setting in SETTINGS.values() for target in setting.sets if target.startswith("profile.")}
    assert targets <= {f"profile.{field.name}" for field in fields(Profile)}


def test_no_key_is_both_known_and_ignored():
    assert not SETTINGS.keys() & IGNORED.keys()


def test_a_file_is_read_in_javas_syntax(tmp_path: Path):
    file = tmp_path / "application.properties"
    file.write_text(
        "# a comment\n! another\nserver.port: 9000\nnacos.naming.client.expired.time 20000\n"
        "distrocheck.auth.users = a:b,\\\n    c:\\u00e9\nnacos.inetutils.ip-address=${HOST:${OTHER:127.0.0.2}}\n"
        "nacos.member.list=${nacos.inetutils.ip-address}:${server.port}\n"
    )
    assert read_properties(file, {}) == {
        "server.port": "9000",
        "nacos.naming.client.expired.time": "20000",
        "distrocheck.auth.users": "a:b,c:é",
        "nacos.inetutils.ip-address": "127.0.0.2",
        "nacos.member.list": "127.0.0.2:9000",
    }
    assert read_properties(file, {"OTHER": "10.0.0.1"})["nacos.member.list"] == "10.0.0.1:9000"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a=${b}", "the value of 'a' needs ${b}, which is neither set nor has a default"),
        ("a=${b:${c}", "opens a placeholder and does not close it: '${b:${c}'"),
        ("a=${b}\nb=${a}", "refers to itself: b -> a -> b"),
        ("a=1\na=2", "gives 'a' twice"),
        ("a=\\u12", "is no \\uXXXX escape"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(tmp_path: Path, text: str, problem: str):
    file = tmp_path / "application.properties"
    file.write_text(text)
    with pytest.raises(SettingError) as refused:
        read_properties(file, {})
    assert str(file) in str(refused.value)
    assert problem in str(refused.value)


def test_the_keys_of_the_node_itself():
    found = configured(STRICT, {"server.port": "9000", "nacos.member.list": "10.0.0.1:8848, 10.0.0.2:8848"})
    assert (found.port, found.members) == (9000, ("10.0.0.1:8848", "10.0.0.2:8848"))
    assert found.notices == ()


def test_limits_reach_the_server_that_they_name():
    found = configured(STRICT, {"nacos.remote.server.grpc.cluster.max-inbound-message-size": "20000000"})
    assert found.options.cluster_server.max_inbound_bytes == 20_000_000
    assert found.options.sdk_server.max_inbound_bytes == 10 * 1024 * 1024
    found = configured(STRICT, {"nacos.remote.server.grpc.maxinbound.message.size": "1000"})
    assert (found.options.sdk_server.max_inbound_bytes, found.options.cluster_server.max_inbound_bytes) == (1000, 1000)


def test_from_3_0_1_on_a_node_can_be_set_to_take_a_larger_snapshot():
    key = "nacos.remote.client.grpc.maxinbound.message.size"
    assert configured(PROFILES["nacos-3.1.0"], {key: "100000000"}).profile.reply_bytes_max == 100_000_000
    found = configured(profile_named("nacos-3.0.0"), {key: "100000000"})
    assert found.profile.reply_bytes_max == 10 * 1024 * 1024
    assert f"'{key}' has no effect: releases from 3.0.1" in found.notices[0]


def test_up_to_2_1_2_only_the_legacy_key_has_an_effect_and_later_only_the_new_one():
    """docs/protocol #releases-matrix."""
    legacy, new = {"nacos.naming.distro.taskDispatchPeriod": "7"}, {"nacos.core.protocol.distro.data.sync.delayMs": "7"}
    assert configured(NACOS_2_0_4, legacy).profile.sync_delay_ms == 7
    assert configured(STRICT, new).profile.sync_delay_ms == 7
    for profile, settings in ((NACOS_2_0_4, new), (STRICT, legacy)):
        found = configured(profile, settings)
        assert found.profile == profile
        assert f"'{next(iter(settings))}' has no effect: releases from" in found.notices[0]


def test_known_keys_without_effect_are_reported_with_the_reason():
    found = configured(STRICT, {"db.num": "1", "nacos.core.auth.server.identity.key": ""})
    assert found.notices == ("'db.num' has no effect: the node keeps everything in memory",)


def test_authentication_is_configured_whole():
    auth = configured(STRICT, AUTH).options.auth
    assert auth is not None
    assert auth.secret == b"0123456789abcdef0123456789abcdef"
    assert {name: user.may("w", None) for name, user in auth.users.items()} == {"nacos": True, "reader": False}
    assert "0123456789" not in repr(auth)
    assert "secret" not in repr(auth.users)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"nacos.naming.client.expiredtime": "1"}, "did you mean 'nacos.naming.client.expired.time'?"),
        ({"colour": "red"}, "the node has no setting 'colour'; docs/reference/settings.md lists all"),
        ({"nacos.naming.client.expired.time": "20s"}, "takes a whole number, not '20s'"),
        ({"nacos.naming.client.expired.time": "²"}, "takes a whole number, not '²'"),
        ({"server.port": "70000"}, "takes a port, 1 to 64000, not '70000'"),
        ({"nacos.standalone": "yes"}, "takes true or false, not 'yes'"),
        (
            {"nacos.standalone": "true", "nacos.member.list": "127.0.0.1:8848"},
            "'nacos.standalone' is true and 'nacos.member.list' names members",
        ),
        (
            {
                "nacos.naming.distro.taskDispatchPeriod": "1",
                "nacos.core.protocol.distro.data.sync.delayMs": "1",
            },
            "'nacos.naming.distro.taskDispatchPeriod' and 'nacos.core.protocol.distro.data.sync.delayMs' set the same",
        ),
        ({f"{TLS}.enableTls": "true"}, f"'{TLS}.enableTls' is true and '{TLS}.certChainFile' is missing"),
        ({f"{TLS}.certChainFile": "/no/such.pem"}, "names a file that is not there: '/no/such.pem'"),
        ({f"{TLS}.enableTls": "true", f"{TLS}.compatibility": "true"}, f"'{TLS}.compatibility' is true"),
        ({f"{TLS}.enableTls": "true", f"{TLS}.trustAll": "true"}, f"'{TLS}.trustAll' is true"),
        ({"server.ssl.enabled": "true"}, "'server.ssl.enabled' is true and 'server.ssl.certificate' is missing"),
        ({"server.ssl.enabled": "true", "server.ssl.client-auth": "want"}, "'server.ssl.client-auth' is 'want'"),
        ({"nacos.core.auth.server.identity.key": "k"}, "identity.key' is set and 'nacos.core.auth.server.identity.va"),
        ({"nacos.core.auth.enabled": "true"}, "is true and 'nacos.core.auth.plugin.nacos.token.secret.key' is missing"),
        ({**AUTH, "distrocheck.auth.users": ""}, "is true and 'distrocheck.auth.users' is missing"),
        ({**AUTH, "distrocheck.auth.users": "nacos"}, "the entry of 'nacos' is none of them"),
        ({**AUTH, "nacos.core.auth.plugin.nacos.token.secret.key": "abc"}, "is not Base64"),
        ({**AUTH, "nacos.core.auth.plugin.nacos.token.secret.key": "YWJj"}, "holds 3 bytes; a secret needs 32"),
    ],
)
def test_an_unusable_setting_is_named(settings: dict[str, str], problem: str):
    with pytest.raises(SettingError) as refused:
        configured(STRICT, settings)
    assert problem in str(refused.value)


def test_tls_is_refused_where_the_release_has_none():
    """A notice could be missed, and the node would talk plain text."""
    with pytest.raises(SettingError, match=r"releases from 2\.3\.0 on have it, the profile is 2\.2\.4"):
        configured(NACOS_2_2_4, {f"{TLS}.enableTls": "true"})


def test_the_secret_of_an_old_release_has_another_key():
    with pytest.raises(SettingError, match=r"'nacos\.core\.auth\.default\.token\.secret\.key' is missing"):
        configured(NACOS_2_0_4, {"nacos.core.auth.enabled": "true"})


@pytest.mark.parametrize("prefix", ["", "file:"])
def test_a_certificate_is_named_as_for_a_real_server_or_by_its_path(tmp_path: Path, prefix: str):
    for name in ("chain.pem", "key.pem"):
        (tmp_path / name).write_text("")
    files = {"certChainFile": f"{prefix}{tmp_path}/chain.pem", "certPrivateKey": f"{prefix}{tmp_path}/key.pem"}
    tls = {f"{TLS}.{name}": value for name, value in {"enableTls": "true", "compatibility": "false", **files}.items()}
    found = configured(STRICT, tls).options.sdk_server.tls
    assert found is not None
    assert (found.cert_chain_file, found.private_key_file) == (tmp_path / "chain.pem", tmp_path / "key.pem")
