"""Certificates: from the files of `TlsOptions` to the objects that gRPC and the HTTP server need.

gRPC reports an invalid certificate only at the first handshake, and not to the user. So Python's own TLS reads the
files first. gRPC reads no encrypted key either, so such a key is decrypted here. A port accepts either TLS or plain
text: the setting `compatibility` of Nacos accepts both, by the first bytes of a connection, but gRPC for Python cannot
do that. Source: docs/protocol #wire-tls.
"""

from __future__ import annotations

import ssl

import grpc

from distro_impl.options import TlsOptions
from distro_impl.settings.errors import SettingError


def server_credentials(tls: TlsOptions) -> grpc.ServerCredentials:
    """The credentials of a gRPC server. Raises SettingError, or OSError naming the file."""
    check(tls)
    pair = (_private_key(tls), tls.cert_chain_file.read_bytes())
    return grpc.ssl_server_credentials([pair], _trusted(tls), require_client_auth=tls.is_mutual)


def channel_credentials(tls: TlsOptions) -> grpc.ChannelCredentials:
    """The credentials of a member for calls to another one. It sends its certificate only if authentication is
    mutual."""
    if not tls.is_mutual:
        return grpc.ssl_channel_credentials(_trusted(tls))
    return grpc.ssl_channel_credentials(_trusted(tls), _private_key(tls), tls.cert_chain_file.read_bytes())


def server_context(tls: TlsOptions) -> ssl.SSLContext:
    """The context of the HTTP server. Raises SettingError, or OSError naming the file."""
    context = check(tls)
    if tls.is_mutual:
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(tls: TlsOptions) -> ssl.SSLContext:
    """The context of a member for HTTP requests to another one."""
    context = ssl.create_default_context(cafile=tls.trust_collection_file)
    if tls.is_mutual:
        _load_own(context, tls)
    return context


def check(tls: TlsOptions) -> ssl.SSLContext:
    """Read the files. Raises SettingError if one is invalid, or if the key does not belong to the certificate."""
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
        reason = "the password does not decrypt the key" if _is_encrypted(tls) else error.reason or error
        raise SettingError(
            f"{tls.cert_chain_file} and {tls.private_key_file} are not a certificate and its key in PEM: {reason}"
        ) from None


def _password(tls: TlsOptions) -> str:
    if tls.key_password is None:
        raise SettingError(f"{tls.private_key_file} is encrypted, and no password is set for it")
    return tls.key_password


def _is_encrypted(tls: TlsOptions) -> bool:
    return b"ENCRYPTED" in tls.private_key_file.read_bytes()


def _private_key(tls: TlsOptions) -> bytes:
    """The key in PEM, decrypted."""
    written = tls.private_key_file.read_bytes()
    if not _is_encrypted(tls):
        return written
    try:
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - an extra
    except ImportError:
        raise SettingError(
            f"{tls.private_key_file} is encrypted, which gRPC does not read: install distrocheck[tls], or decrypt it"
        ) from None
    key = serialization.load_pem_private_key(written, _password(tls).encode())
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(pem, pkcs8, serialization.NoEncryption())


def _trusted(tls: TlsOptions) -> bytes | None:
    """The trusted certificates in PEM; None: those that the system trusts."""
    return None if tls.trust_collection_file is None else tls.trust_collection_file.read_bytes()
