"""Certificates, from the files of `TlsOptions` to what gRPC and the HTTP server take.

gRPC complains about a bad certificate at the first handshake only, and not to the user, so Python's own TLS reads the
files first. It takes no encrypted key either, so that such a one is decrypted here. A port has TLS or plain text:
upstream's `compatibility` looks at the first bytes of a connection and takes both, which a gRPC port here cannot do.
Source: docs/protocol #wire-tls.
"""

from __future__ import annotations

import ssl

import grpc

from distro_impl.options import TlsOptions
from distro_impl.settings.errors import SettingError


def server_credentials(tls: TlsOptions) -> grpc.ServerCredentials:
    """Raises SettingError, or OSError naming the file."""
    check(tls)
    pair = (_private_key(tls), tls.cert_chain_file.read_bytes())
    return grpc.ssl_server_credentials([pair], _trusted(tls), require_client_auth=tls.is_mutual)


def channel_credentials(tls: TlsOptions) -> grpc.ChannelCredentials:
    """Of a member towards another one. It shows its certificate only where both sides have to."""
    if not tls.is_mutual:
        return grpc.ssl_channel_credentials(_trusted(tls))
    return grpc.ssl_channel_credentials(_trusted(tls), _private_key(tls), tls.cert_chain_file.read_bytes())


def server_context(tls: TlsOptions) -> ssl.SSLContext:
    """For HTTP. Raises SettingError, or OSError naming the file."""
    context = check(tls)
    if tls.is_mutual:
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(tls: TlsOptions) -> ssl.SSLContext:
    """Of a member towards another one, over HTTP."""
    context = ssl.create_default_context(cafile=tls.trust_collection_file)
    if tls.is_mutual:
        _load_own(context, tls)
    return context


def check(tls: TlsOptions) -> ssl.SSLContext:
    """Whether the files hold what they should, and the key belongs to the certificate. Raises SettingError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load_own(context, tls)
    if tls.trust_collection_file is not None:
        try:
            context.load_verify_locations(tls.trust_collection_file)
        except ssl.SSLError as error:
            raise SettingError(f"{tls.trust_collection_file} holds no certificates in PEM: {error.reason}") from None
    return context


def _load_own(context: ssl.SSLContext, tls: TlsOptions) -> None:
    try:
        context.load_cert_chain(tls.cert_chain_file, tls.private_key_file, password=lambda: _password(tls))
    except ssl.SSLError as error:
        reason = "the password is not that of the key" if _is_encrypted(tls) else error.reason or error
        raise SettingError(
            f"{tls.cert_chain_file} and {tls.private_key_file} are no certificate and its key in PEM: {reason}"
        ) from None


def _password(tls: TlsOptions) -> str:
    if tls.key_password is None:
        raise SettingError(f"{tls.private_key_file} is encrypted, and no password is set for it")
    return tls.key_password


def _is_encrypted(tls: TlsOptions) -> bool:
    return b"ENCRYPTED" in tls.private_key_file.read_bytes()


def _private_key(tls: TlsOptions) -> bytes:
    """In plain PEM."""
    written = tls.private_key_file.read_bytes()
    if not _is_encrypted(tls):
        return written
    try:
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - of an extra
    except ImportError:
        raise SettingError(
            f"{tls.private_key_file} is encrypted, which gRPC does not read: install distrocheck[tls], or decrypt it"
        ) from None
    key = serialization.load_pem_private_key(written, _password(tls).encode())
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(pem, pkcs8, serialization.NoEncryption())


def _trusted(tls: TlsOptions) -> bytes | None:
    """None: the certificates that the system trusts."""
    return None if tls.trust_collection_file is None else tls.trust_collection_file.read_bytes()
