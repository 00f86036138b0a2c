"""`audit --follow --json --metrics` on servers with TLS, users and an identity, as a container runs it."""

from __future__ import annotations

import json
import ssl
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme
from programs import COMMAND, Call, two_ports

pytestmark = pytest.mark.wire
SECRET = "c2VjcmV0IG9mIGF0IGxlYXN0IHRoaXJ0eS10d28gYnl0ZXMuLi4u"


@dataclass(frozen=True)
class Served:
    """Two members that require all of it, and a client. `own`: a certificate of the authority and its key."""

    members: tuple[str, ...]
    authority: Path
    own: tuple[Path, Path]
    call: Call

    @property
    def trusting(self) -> tuple[str, ...]:
        return "--tls", "grpc", "--tls", "http", "--ca", str(self.authority)

    @property
    def showing(self) -> tuple[str, ...]:
        return "--cert", str(self.own[0]), "--key", str(self.own[1])

    def ask(self, member: str, path: str, data: bytes | None = None) -> str:
        context = ssl.create_default_context(cafile=self.authority)
        context.load_cert_chain(*self.own)
        with urllib.request.urlopen(f"https://{member}/nacos{path}", data, timeout=20, context=context) as answer:
            return str(answer.read().decode())

    def post(self, path: str, **parameters: str) -> str:
        return self.ask(self.members[0], path, urllib.parse.urlencode(parameters).encode())

    def audit(self, out: Path, *more: str, password: str = "opensesame") -> subprocess.CompletedProcess[str]:
        members = [word for address in self.members for word in ("--member", address)]
        how = ("--follow", "--json", "--interval-s", "0.4", "--for-s", "1", "--metrics", str(out))
        who = ("--username", "op", "--identity", "cluster=mine", "--password", password)
        return self.call("audit", *members, *how, *who, *more)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, call: Call) -> Iterator[Served]:
    with members(tmp_path_factory.mktemp("tls"), call, is_mutual=False) as found:
        yield found


@pytest.fixture(scope="module")
def mutual(tmp_path_factory: pytest.TempPathFactory, call: Call) -> Iterator[Served]:
    with members(tmp_path_factory.mktemp("mutual"), call, is_mutual=True) as found:
        yield found


@contextmanager
def members(directory: Path, call: Call, *, is_mutual: bool) -> Iterator[Served]:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    trusted, chain, key = (directory / name for name in ("ca.pem", "chain.pem", "key.pem"))
    authority.cert_pem.write_to_path(trusted)
    certificate.private_key_pem.write_to_path(key)
    for blob in certificate.cert_chain_pems:
        blob.write_to_path(chain, append=True)
    settings = {
        "nacos.core.auth.enabled": "true",
        "nacos.core.auth.plugin.nacos.token.secret.key": SECRET,
        "nacos.core.auth.server.identity.key": "cluster",
        "nacos.core.auth.server.identity.value": "mine",
        "distrocheck.auth.users": "op:opensesame",
        "server.ssl.enabled": "true",
        "server.ssl.certificate": chain,
        "server.ssl.certificate-private-key": key,
        "server.ssl.trust-certificate": trusted,
        "server.ssl.client-auth": "need" if is_mutual else "none",
    }
    for side in ("server", "peer"):
        settings |= {
            f"nacos.remote.{side}.rpc.tls.{name}": value
            for name, value in {
                "enableTls": "true",
                "compatibility": "false",
                "certChainFile": chain,
                "certPrivateKey": key,
                "trustCollectionCertFile": trusted,
                "mutualAuthEnable": str(is_mutual).lower(),
            }.items()
        }
    given = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    command = (
        *COMMAND,
        "serve",
        "--nodes",
        "2",
        "--port",
        str(two_ports()),
        "--profile",
        "nacos-2.5.1",
        *given,
    )
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as nodes:
        try:
            assert nodes.stdout is not None
            addresses = tuple(json.loads(nodes.stdout.readline())["address"] for _ in range(2))
            found = Served(addresses, trusted, (chain, key), call)
            token = json.loads(found.post("/v1/auth/login", username="op", password="opensesame"))["accessToken"]
            stays = {"preserved.heart.beat.timeout": 600_000, "preserved.ip.delete.timeout": 600_000}  # without beats
            instance = {"serviceName": "web", "ip": "10.0.0.9", "port": "8080", "accessToken": token}
            instance["metadata"] = json.dumps({key: str(ms) for key, ms in stays.items()})
            assert found.post("/v1/ns/instance", **instance) == "ok"
            list_of_web = f"/v1/ns/instance/list?serviceName=web&accessToken={token}"
            until_s = time.monotonic() + 20
            while not json.loads(found.ask(found.members[1], list_of_web))["hosts"]:
                assert time.monotonic() < until_s, "the copy does not come"
                time.sleep(0.1)
            yield found
        finally:
            nodes.terminate()


def test_members_with_tls_users_and_an_identity_are_compared(served: Served, tmp_path: Path) -> None:
    out = tmp_path / "audit.prom"
    found = served.audit(out, *served.trusting)
    assert found.returncode == 0, (found.stdout, found.stderr)
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    assert [(line["what"], line["text"]) for line in lines if line["what"] == "verdict"][-1] == ("verdict", "conforms")
    metrics = dict(line.rsplit(" ", 1) for line in out.read_text().splitlines() if line[0] != "#")
    for member in served.members:
        assert metrics[f'distrocheck_member_up{{member="{member}"}}'] == "1"
        assert metrics[f'distrocheck_member_clients{{member="{member}"}}'] == "1"
    assert metrics["distrocheck_audit_exit_code"] == "0"
    assert "opensesame" not in found.stdout + found.stderr + out.read_text()
    assert "mine" not in found.stdout + found.stderr


def test_members_with_tls_cannot_be_read_without_it(served: Served, tmp_path: Path) -> None:
    found = served.audit(tmp_path / "audit.prom")
    assert found.returncode == 4
    assert "distrocheck_audit_exit_code 4" in (tmp_path / "audit.prom").read_text()


def test_another_authority_is_not_trusted(served: Served, tmp_path: Path) -> None:
    trustme.CA().cert_pem.write_to_path(tmp_path / "other.pem")
    more = ("--tls", "grpc", "--tls", "http", "--ca", str(tmp_path / "other.pem"))
    assert served.audit(tmp_path / "audit.prom", *more).returncode == 4


def test_members_that_require_a_certificate_are_compared_with_one_only(mutual: Served, tmp_path: Path) -> None:
    assert mutual.audit(tmp_path / "without.prom", *mutual.trusting).returncode == 4
    found = mutual.audit(tmp_path / "with.prom", *mutual.trusting, *mutual.showing)
    assert found.returncode == 0, (found.stdout, found.stderr)
    metrics = (tmp_path / "with.prom").read_text()
    assert all(f'distrocheck_member_clients{{member="{member}"}} 1' in metrics for member in mutual.members)


def test_a_certificate_of_another_authority_is_refused(mutual: Served, tmp_path: Path) -> None:
    other = trustme.CA().issue_cert("127.0.0.1")
    other.private_key_pem.write_to_path(tmp_path / "key.pem")
    other.cert_chain_pems[0].write_to_path(tmp_path / "chain.pem")
    showing = ("--cert", str(tmp_path / "chain.pem"), "--key", str(tmp_path / "key.pem"))
    assert mutual.audit(tmp_path / "audit.prom", *mutual.trusting, *showing).returncode == 4


def test_a_wrong_password_is_a_mistake_of_the_user(served: Served, tmp_path: Path) -> None:
    found = served.audit(tmp_path / "audit.prom", *served.trusting, password="guessed")
    assert (found.returncode, "refuses user op; check name and password" in found.stderr) == (2, True)
    assert "guessed" not in found.stdout + found.stderr


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (("--tls", "sdk"), "--tls names the ports with TLS, each with its own --tls: grpc, http"),
        (("--ca", "/etc/hostname"), "--ca, --cert and --key are for TLS; name the ports"),
        (("--tls", "http", "--ca", "/etc/hostname"), "--ca /etc/hostname: no certificates in PEM"),
        (("--tls", "http", "--ca", "/no/such.pem"), "--ca /no/such.pem: no certificates in PEM"),
        (("--cert", "/etc/hostname", "--key", "/etc/hostname"), "--ca, --cert and --key are for TLS; name the ports"),
        (("--tls", "http", "--cert", "/etc/hostname"), "--cert and --key are a certificate and its key; give both"),
        (("--tls", "http", "--cert", "/etc/hostname", "--key", "/no/such.pem"), "--cert and --key: "),
    ],
)
def test_options_of_tls_that_cannot_be_are_refused(call: Call, more: tuple[str, ...], problem: str) -> None:
    found = call("audit", "--member", "127.0.0.1:1", "--member", "127.0.0.1:2", *more)
    assert (found.returncode, problem in found.stderr) == (2, True), found.stderr
