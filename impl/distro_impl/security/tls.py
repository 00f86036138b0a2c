"""Certificates, from the files of `TlsOptions` to what gRPC takes.

gRPC complains about a bad certificate at the first handshake only, and not to the user, so Python's own TLS reads the
files first. A port has TLS or plain text: upstream's `compatibility` looks at the first bytes of a connection and
takes both, which a gRPC port here cannot do. Source: wire-protocol.md section 1.3.
"""

from __future__ import annotations

import ssl

import grpc

from distro_impl.options import TlsOptions
from distro_impl.settings.errors import SettingError


def server_credentials(tls: TlsOptions) -> grpc.ServerCredentials:
    """Raises SettingError, or OSError naming the file."""
    check(tls)
    pair = (tls.private_key_file.read_bytes(), tls.cert_chain_file.read_bytes())
    return grpc.ssl_server_credentials([pair], _trusted(tls), require_client_auth=tls.is_mutual)


def channel_credentials(tls: TlsOptions) -> grpc.ChannelCredentials:
    """Of a member towards another one. It shows its certificate only where both sides have to."""
    if not tls.is_mutual:
        return grpc.ssl_channel_credentials(_trusted(tls))
    return grpc.ssl_channel_credentials(
        _trusted(tls), tls.private_key_file.read_bytes(), tls.cert_chain_file.read_bytes()
    )


def check(tls: TlsOptions) -> None:
    """Whether the files hold what they should, and the key belongs to the certificate. Raises SettingError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(tls.cert_chain_file, tls.private_key_file, password=_refuse_encrypted)
    except (ssl.SSLError, _EncryptedKeyError) as error:
        reason = getattr(error, "reason", None) or error
        raise SettingError(
            f"{tls.cert_chain_file} and {tls.private_key_file} are no certificate and its plain key in PEM: {reason}"
        ) from None
    if tls.trust_collection_file is not None:
        try:
            context.load_verify_locations(tls.trust_collection_file)
        except ssl.SSLError as error:
            raise SettingError(f"{tls.trust_collection_file} holds no certificates in PEM: {error.reason}") from None


class _EncryptedKeyError(Exception):
    pass


def _refuse_encrypted() -> str:
    raise _EncryptedKeyError("the key is encrypted")


def _trusted(tls: TlsOptions) -> bytes | None:
    """None: the certificates that the system trusts."""
    return None if tls.trust_collection_file is None else tls.trust_collection_file.read_bytes()
