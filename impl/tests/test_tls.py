"""TLS on the two gRPC ports, with certificates of an authority made for the test."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import grpc
import pytest
import trustme
from impl_lab import STRICT, Lab

from distro_impl import NodeOptions, SettingError
from distro_impl.options import GrpcServerOptions, TlsOptions

pytestmark = pytest.mark.wire


@dataclass(frozen=True)
class Authority:
    """A certificate authority, and the files of one certificate of it for 127.0.0.1."""

    ca: trustme.CA
    tls: TlsOptions

    @classmethod
    def in_directory(cls, directory: Path) -> Authority:
        ca = trustme.CA()
        certificate = ca.issue_cert("127.0.0.1")
        directory.mkdir(exist_ok=True)
        trusted, chain, key = (directory / name for name in ("ca.pem", "chain.pem", "key.pem"))
        ca.cert_pem.write_to_path(trusted)
        for blob in certificate.cert_chain_pems:
            blob.write_to_path(chain, append=True)
        certificate.private_key_pem.write_to_path(key)
        return cls(ca, TlsOptions(cert_chain_file=chain, private_key_file=key, trust_collection_file=trusted))

    def credentials(self) -> grpc.ChannelCredentials:
        """Of a client that trusts this authority and has no certificate."""
        return grpc.ssl_channel_credentials(self.ca.cert_pem.bytes())

    def own_credentials(self) -> grpc.ChannelCredentials:
        """Of a client that also has a certificate of it."""
        key, chain = self.tls.private_key_file.read_bytes(), self.tls.cert_chain_file.read_bytes()
        return grpc.ssl_channel_credentials(self.ca.cert_pem.bytes(), key, chain)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.in_directory(tmp_path / "ours")


async def test_a_client_with_tls_is_served_and_one_without_is_not(lab: Lab, authority: Authority):
    run = await lab.cluster(size=1, options=NodeOptions(sdk_server=GrpcServerOptions(tls=authority.tls)))
    target = run.cluster.nodes[0].config.sdk_target
    client = await lab.raw(target, authority.credentials(), module="naming", source="sdk").connect()
    assert (await client.register("orders", 8080)).succeeded
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await lab.raw(target).check()
    assert failed.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_who_trusts_another_authority_does_not_talk_to_the_node(lab: Lab, authority: Authority, tmp_path: Path):
    other = Authority.in_directory(tmp_path / "theirs")
    run = await lab.cluster(size=1, options=NodeOptions(sdk_server=GrpcServerOptions(tls=authority.tls)))
    with pytest.raises(grpc.aio.AioRpcError, match="CERTIFICATE_VERIFY_FAILED"):
        await lab.raw(run.cluster.nodes[0].config.sdk_target, other.credentials()).check()


@pytest.mark.parametrize("is_mutual", [False, True])
async def test_members_replicate_over_tls(lab: Lab, authority: Authority, is_mutual: bool):
    tls = replace(authority.tls, is_mutual=is_mutual)
    run = await lab.cluster(size=2, options=NodeOptions(cluster_server=GrpcServerOptions(tls=tls)))
    first, second = run.cluster.nodes
    client = await lab.naming(first)
    await client.register("orders", 8080)
    await run.clock.advance(STRICT.sync_delay_ms + 100)
    reader = await lab.naming(second)
    assert await reader.ports("orders") == [8080]


async def test_mutual_tls_asks_for_a_certificate(lab: Lab, authority: Authority):
    tls = replace(authority.tls, is_mutual=True)
    run = await lab.cluster(size=1, options=NodeOptions(cluster_server=GrpcServerOptions(tls=tls)))
    target = run.cluster.nodes[0].config.cluster_target
    with pytest.raises(grpc.aio.AioRpcError):
        await lab.raw(target, authority.credentials()).check()
    assert (await lab.raw(target, authority.own_credentials()).check()).succeeded


@pytest.mark.parametrize("broken", ["cert_chain_file", "private_key_file", "trust_collection_file"])
async def test_a_file_that_holds_something_else_is_named_at_start(
    lab: Lab, authority: Authority, tmp_path: Path, broken: str
):
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("no certificate")
    tls = replace(authority.tls, **{broken: nonsense})
    with pytest.raises(SettingError, match=r"nonsense\.pem"):
        await lab.cluster(size=1, options=NodeOptions(sdk_server=GrpcServerOptions(tls=tls)))


async def test_the_key_of_another_certificate_is_refused(lab: Lab, authority: Authority, tmp_path: Path):
    other = Authority.in_directory(tmp_path / "theirs")
    tls = replace(authority.tls, private_key_file=other.tls.private_key_file)
    with pytest.raises(SettingError, match="KEY_VALUES_MISMATCH"):
        await lab.cluster(size=1, options=NodeOptions(sdk_server=GrpcServerOptions(tls=tls)))
