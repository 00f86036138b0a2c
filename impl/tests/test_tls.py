"""TLS on the two gRPC ports and on the HTTP port, with certificates of an authority made for the test."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, replace
from pathlib import Path

import grpc
import pytest
import trustme
from aiohttp import ClientError, ClientSession
from cryptography.hazmat.primitives import serialization
from impl_lab import STRICT, Lab

from distro_impl import NodeOptions, SettingError
from distro_impl.options import GrpcServerOptions, TlsOptions
from distro_impl.profiles import ReportTransport
from distro_impl.transport.tls import client_context

pytestmark = pytest.mark.wire
OVER_GRPC = True


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
    return Authority.in_directory(tmp_path / "own")


async def test_a_client_with_tls_is_served_and_one_without_is_not(lab: Lab, authority: Authority):
    run = await lab.cluster(size=1, options=NodeOptions(sdk_server=GrpcServerOptions(tls=authority.tls)))
    target = run.cluster.nodes[0].config.sdk_target
    client = await lab.raw(target, authority.credentials(), module="naming", source="sdk").connect()
    assert (await client.register("orders", 8080)).succeeded
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await lab.raw(target).check()
    assert failed.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_client_that_trusts_another_authority_does_not_connect_to_the_node(
    lab: Lab, authority: Authority, tmp_path: Path
):
    other = Authority.in_directory(tmp_path / "other")
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
    other = Authority.in_directory(tmp_path / "other")
    tls = replace(authority.tls, private_key_file=other.tls.private_key_file)
    with pytest.raises(SettingError, match="KEY_VALUES_MISMATCH"):
        await lab.cluster(size=1, options=NodeOptions(sdk_server=GrpcServerOptions(tls=tls)))


# HTTP


def https(address: str, path: str) -> str:
    return f"https://{address}/nacos{path}"


async def test_logins_travel_over_https_where_it_is_on(lab: Lab, authority: Authority):
    run = await lab.cluster(size=1, options=NodeOptions(http_tls=authority.tls))
    address, trusting = run.cluster.addresses[0], ssl.create_default_context(cafile=authority.tls.trust_collection_file)
    async with ClientSession() as session:
        login = {"username": "nacos", "password": "nacos"}
        async with session.post(https(address, "/v1/auth/login"), data=login, ssl=trusting) as answer:
            assert answer.status == 200
        with pytest.raises(ClientError):
            await session.post(f"http://{address}/nacos/v1/auth/login", data=login)


@pytest.mark.parametrize("is_mutual", [False, True])
async def test_members_pass_requests_on_and_report_over_https(lab: Lab, authority: Authority, is_mutual: bool):
    tls = replace(authority.tls, is_mutual=is_mutual)
    over_http = replace(STRICT, report_transport=ReportTransport.HTTP)
    run = await lab.cluster(over_http, size=2, options=NodeOptions(http_tls=tls), strangers=True)
    first, second = run.cluster.nodes
    owned_port = next(port for port in range(1, 99) if second.parts.naming.mapper.responsible(f"10.0.0.9:{port}"))
    trusting = client_context(tls)
    async with ClientSession() as session:
        instance = {"serviceName": "web", "ip": "10.0.0.9", "port": owned_port}
        async with session.post(https(first.address, "/v1/ns/instance"), params=instance, ssl=trusting) as answer:
            assert (answer.status, await answer.text()) == (200, "ok")
    assert second.parts.naming.clients.get(f"10.0.0.9:{owned_port}#true") is not None
    await run.clock.advance(20_000)
    assert first.members.is_up(second.address)


async def test_https_may_ask_for_a_certificate(lab: Lab, authority: Authority):
    tls = replace(authority.tls, is_mutual=True)
    run = await lab.cluster(size=1, options=NodeOptions(http_tls=tls))
    url = https(run.cluster.addresses[0], "/v1/ns/operator/metrics")
    without = ssl.create_default_context(cafile=tls.trust_collection_file)
    async with ClientSession() as session:
        with pytest.raises(ClientError):
            await session.get(url, ssl=without)
        async with session.get(url, ssl=client_context(tls)) as answer:
            assert answer.status == 200


# Encrypted keys


@pytest.fixture
def encrypted(authority: Authority, tmp_path: Path) -> TlsOptions:
    key = serialization.load_pem_private_key(authority.tls.private_key_file.read_bytes(), None)
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    file = tmp_path / "encrypted.pem"
    file.write_bytes(key.private_bytes(pem, pkcs8, serialization.BestAvailableEncryption(b"secret")))
    return replace(authority.tls, private_key_file=file, key_password="secret")


async def test_an_encrypted_key_is_read_with_its_password(lab: Lab, authority: Authority, encrypted: TlsOptions):
    tls = GrpcServerOptions(tls=replace(encrypted, is_mutual=True))
    run = await lab.cluster(size=2, options=NodeOptions(cluster_server=tls, http_tls=encrypted))
    target = run.cluster.nodes[0].config.cluster_target
    assert (await lab.raw(target, authority.own_credentials()).check()).succeeded
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("orders", 8080)
    await run.clock.advance(STRICT.sync_delay_ms + 100)
    assert await (await lab.naming(run.cluster.nodes[1])).ports("orders") == [8080]


@pytest.mark.parametrize(
    ("password", "problem"), [(None, "no password is set for it"), ("wrong", "the password does not decrypt the key")]
)
@pytest.mark.parametrize("where", ["gRPC", "HTTP"])
async def test_without_its_password_it_is_named(
    lab: Lab, encrypted: TlsOptions, password: str | None, problem: str, where: str
):
    tls = replace(encrypted, key_password=password)
    options = NodeOptions(http_tls=tls) if where == "HTTP" else NodeOptions(sdk_server=GrpcServerOptions(tls=tls))
    with pytest.raises(SettingError, match=problem):
        await lab.cluster(size=1, options=options)
