"""From pairs of key and text to a profile and options, with everything that contradicts itself refused by name.

Each section of the registry becomes one value here. A key that the release of the profile does not read, or that has
nothing to configure in this node, has no effect; it is listed, with the reason, in `notices`.
"""

from __future__ import annotations

import base64
import binascii
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from distro_impl.options import (
    ALL_NAMESPACES,
    DEFAULT_OPTIONS,
    TOKEN_SECONDS,
    WRITES_ALL,
    AuthOptions,
    GrpcServerOptions,
    NodeOptions,
    ServerIdentity,
    TlsOptions,
    User,
)
from distro_impl.profiles import Profile
from distro_impl.settings.errors import SettingError
from distro_impl.settings.ignored import why_ignored
from distro_impl.settings.registry import SETTINGS, TLS_PREFIXES, Kind, Setting

MIN_SECRET_BYTES = 32
"""As upstream: a shorter key is too weak for HS256."""

FILE_PREFIX = "file:"
"""Without it a real server takes even an absolute path for a resource of its class path. Here it may be left out."""

TLS_SWITCHES = tuple((f"{section}.enabled",) for section in TLS_PREFIXES)
"""What these ask for is never left out with a mere notice."""

Section = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """What the keys say. `None` and empty: they say nothing about it."""

    profile: Profile
    options: NodeOptions = DEFAULT_OPTIONS
    port: int | None = None
    ip: str | None = None
    members: tuple[str, ...] = ()
    is_standalone: bool = False
    notices: tuple[str, ...] = ()
    """One sentence for each key without effect."""


def configured(profile: Profile, settings: Mapping[str, str]) -> Configured:
    """The profile and the options with those keys set. Raises SettingError."""
    notices: list[str] = []
    sections = _sections(settings, profile, notices)
    node = sections["node"]
    if node.get("standalone") and node.get("members"):
        raise SettingError("'nacos.standalone' is true and 'nacos.member.list' names members; drop one of the two")
    options = NodeOptions(
        sdk_server=_server(sections, "sdk", notices),
        cluster_server=_server(sections, "cluster", notices),
        http_tls=_http_tls(sections["http_tls"], notices),
        identity=_identity(sections["identity"]),
        auth=_auth(sections["auth"], profile, notices),
        **sections["options"],
    )
    return Configured(
        profile=replace(profile, **sections["profile"]),
        options=options,
        port=node.get("port"),
        ip=node.get("ip"),
        members=node.get("members", ()),
        is_standalone=node.get("standalone", False),
        notices=tuple(notices),
    )


def _sections(settings: Mapping[str, str], profile: Profile, notices: list[str]) -> Mapping[str, Section]:
    """Section -> field -> value, for the keys that have an effect."""
    sections: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    set_by: dict[str, str] = {}
    for key, text in settings.items():
        setting = SETTINGS.get(key)
        if setting is None:
            notices.append(f"'{key}' has no effect: {_why_unknown_is_fine(key)}")
            continue
        value = _parsed(setting, text)
        for target in setting.sets:
            if target in set_by:
                raise SettingError(f"'{set_by[target]}' and '{key}' set the same thing; keep one of the two")
            set_by[target] = key
        if not _is_read_by(setting, profile):
            if value is True and setting.sets in TLS_SWITCHES:
                raise SettingError(f"'{key}' is true, but {_range(setting)} have it, the profile is {profile.version}")
            notices.append(f"'{key}' has no effect: {_range(setting)} read it, the profile is {profile.version}")
            continue
        for target in setting.sets:
            section, _, field = target.partition(".")
            sections[section][field] = value
    return sections


def _why_unknown_is_fine(key: str) -> str:
    reason = why_ignored(key)
    if reason is None:
        near = get_close_matches(key, SETTINGS, n=1)
        hint = f"did you mean '{near[0]}'?" if near else "docs/reference/settings.md lists all"
        raise SettingError(f"the node has no setting '{key}'; {hint}")
    return reason


def _is_read_by(setting: Setting, profile: Profile) -> bool:
    release = _release(profile.version)
    return _release(setting.since) <= release and (setting.until is None or release <= _release(setting.until))


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _range(setting: Setting) -> str:
    if setting.until is None:
        return f"releases from {setting.since} on"
    return f"releases from {setting.since} to {setting.until}"


# Values


def _parsed(setting: Setting, text: str) -> object:
    key, kind = setting.key, setting.kind
    if kind is Kind.FLAG:
        if text.lower() not in ("true", "false"):
            raise SettingError(f"the setting '{key}' takes true or false, not '{text}'")
        return text.lower() == "true"
    if kind is Kind.FILE:
        file = Path(text.removeprefix(FILE_PREFIX))
        if not file.is_file():
            raise SettingError(f"the setting '{key}' names a file that is not there: '{text}'")
        return file
    if kind is Kind.LIST:
        return tuple(item.strip() for item in text.split(",") if item.strip())
    if kind is Kind.TEXT:
        return text
    if not (text.isascii() and text.isdigit()) or (kind is Kind.PORT and not 0 < int(text) <= 64_000):
        wanted = "a port, 1 to 64000" if kind is Kind.PORT else "a whole number"
        raise SettingError(f"the setting '{key}' takes {wanted}, not '{text}'")
    return int(text)


# Sections


def _server(sections: Mapping[str, Section], name: str, notices: list[str]) -> GrpcServerOptions:
    tls = _tls(sections[f"{name}_tls"], f"{name}_tls", notices)
    return GrpcServerOptions(**sections[f"{name}_server"], tls=tls)


def _tls(section: Section, name: str, notices: list[str]) -> TlsOptions | None:
    prefix, _ = TLS_PREFIXES[name]
    if _is_off(section, f"{prefix}.enableTls", notices):
        return None
    if section.get("compatibility"):
        raise SettingError(f"'{prefix}.compatibility' is true, but a port here has TLS or plain text; set it to false")
    if section.get("trust_all"):
        raise SettingError(
            f"'{prefix}.trustAll' is true, but gRPC here cannot skip the check; name whom to trust in "
            f"'{prefix}.trustCollectionCertFile'"
        )
    if "compatibility" not in section:
        notices.append(f"'{prefix}.compatibility' is false: a port here has TLS or plain text, never both")
    files = f"{prefix}.certChainFile", f"{prefix}.certPrivateKey", f"{prefix}.trustCollectionCertFile"
    return _tls_options(section, f"{prefix}.enableTls", files, is_mutual=section.get("mutual", False))


def _http_tls(section: Section, notices: list[str]) -> TlsOptions | None:
    """The keys are Spring's, as far as they name files in PEM."""
    if _is_off(section, "server.ssl.enabled", notices):
        return None
    client_auth = section.get("client_auth", "none")
    if client_auth not in ("none", "need"):
        raise SettingError(f"'server.ssl.client-auth' is '{client_auth}', but here it is need or none")
    files = "server.ssl.certificate", "server.ssl.certificate-private-key", "server.ssl.trust-certificate"
    return _tls_options(section, "server.ssl.enabled", files, is_mutual=client_auth == "need")


def _is_off(section: Section, switch: str, notices: list[str]) -> bool:
    if not section.get("enabled") and section.keys() - {"enabled"}:
        prefix = switch.rpartition(".")[0]
        notices.append(f"the other keys of '{prefix}' have no effect: '{switch}' is not true")
    return not section.get("enabled")


def _tls_options(section: Section, switch: str, files: tuple[str, str, str], *, is_mutual: bool) -> TlsOptions:
    """The texts are the keys that turn it on, and that name chain, key and whom to trust."""
    needed = ("cert_chain_file", "private_key_file", *(("trust_collection_file",) if is_mutual else ()))
    for field, key in zip(needed, files, strict=False):
        if field not in section:
            why = "certificates are asked for" if field == "trust_collection_file" else f"'{switch}' is true"
            raise SettingError(f"{why} and '{key}' is missing; name the file")
    return TlsOptions(
        cert_chain_file=section["cert_chain_file"],
        private_key_file=section["private_key_file"],
        trust_collection_file=section.get("trust_collection_file"),
        is_mutual=is_mutual,
        key_password=section.get("key_password"),
    )


def _identity(section: Section) -> ServerIdentity | None:
    key, value = section.get("key", ""), section.get("value", "")
    if bool(key) != bool(value):
        given, missing = ("key", "value") if key else ("value", "key")
        prefix = "nacos.core.auth.server.identity"
        raise SettingError(f"'{prefix}.{given}' is set and '{prefix}.{missing}' is not; set both or neither")
    return ServerIdentity(key, value) if key else None


def _auth(section: Section, profile: Profile, notices: list[str]) -> AuthOptions | None:
    if not section.get("enabled"):
        if section.keys() - {"enabled"}:
            notices.append("the other keys of authentication have no effect: 'nacos.core.auth.enabled' is not true")
        return None
    secret_key = _key_that_sets("auth.secret", profile)
    if not section.get("secret"):
        raise SettingError(
            f"'nacos.core.auth.enabled' is true and '{secret_key}' is missing; give the Base64 of a secret"
        )
    if not section.get("users"):
        raise SettingError(
            "'nacos.core.auth.enabled' is true and 'distrocheck.auth.users' is missing; name who may log in"
        )
    users = [_user(text) for text in section["users"]]
    return AuthOptions(
        secret=_secret(secret_key, section["secret"]),
        users={user.name: user for user in users},
        token_seconds=section.get("token_seconds", TOKEN_SECONDS),
        trusts_server_user_agent=section.get("trusts_server_user_agent", False),
    )


def _key_that_sets(target: str, profile: Profile) -> str:
    return next(
        setting.key for setting in SETTINGS.values() if target in setting.sets and _is_read_by(setting, profile)
    )


def _secret(key: str, text: str) -> bytes:
    try:
        secret = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise SettingError(f"the setting '{key}' is not Base64; encode the secret, with padding") from None
    if len(secret) < MIN_SECRET_BYTES:
        raise SettingError(f"the setting '{key}' holds {len(secret)} bytes; a secret needs {MIN_SECRET_BYTES} or more")
    return secret


def _user(text: str) -> User:
    name, _, rest = text.partition(":")
    password, _, rights = rest.partition(":")
    grants = dict(_grant(one) for one in rights.split(";")) if rights else WRITES_ALL
    if not name or not password or any(granted not in ("r", "w", "rw") for granted in grants.values()):
        raise SettingError(
            "the setting 'distrocheck.auth.users' takes name:password, name:password:r or "
            f"name:password:r@namespace;rw@namespace, separated by commas; the entry of '{name}' is none of them"
        )
    return User(name, password, grants)


def _grant(text: str) -> tuple[str, str]:
    """(namespace, rights)"""
    rights, _, namespace = text.strip().partition("@")
    return namespace or ALL_NAMESPACES, rights
