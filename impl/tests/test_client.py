"""A client as Distro content, encoded and decoded, and as hosts in the lists of subscribers (docs/protocol
#naming-requests and #distro-content)."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from impl_lab import sync_data
from msgspec.structs import replace

import distro_impl
from distro_impl.naming.client import (
    Client,
    MalformedSyncDataError,
    PublishedBatch,
    PublishedInstance,
    Service,
    read_sync_data,
)
from distro_impl.naming.service_info import hosts_of, merged, published_instance, service_info, shown
from distro_impl.remote.payloads import Instance
from distro_protos import Json

WEB, API = Service("public", "DEFAULT_GROUP", "web"), Service("public", "DEFAULT_GROUP", "api")
ONE, OTHER = PublishedInstance("10.0.0.1", 80), PublishedInstance("10.0.0.1", 81)


def hosts_seen(*published: PublishedInstance, clusters: str = "", healthy_only: bool = False) -> list[Json]:
    chosen = shown(merged(published), clusters=clusters, healthy_only=healthy_only)
    info = service_info(WEB, hosts_of(WEB, chosen), clusters=clusters, last_ref_time=1)
    hosts: list[Json] = info["hosts"]
    return hosts


def test_a_client_is_the_same_after_encoding_and_decoding() -> None:
    client = Client("c1", native=True, renewed_ms=0, revision=7)
    client.publishers[WEB] = PublishedInstance("10.0.0.1", 80, extend_datum={"zone": "a"})
    client.publishers[API] = PublishedBatch((ONE, OTHER))
    read = read_sync_data(client.sync_data(with_revision=True))
    assert (read.client_id, read.revision, read.publishers) == ("c1", 7, client.publishers)
    assert client.sync_data(with_revision=False)["attributes"] == {"clientAttributes": {}}


def test_a_batch_is_encoded_in_a_field_beside_the_single_instances() -> None:
    """The encoding is that of docs/protocol #distro-content. A release without batches has no field for them."""
    client = Client("c1", native=True, renewed_ms=0)
    client.publishers[WEB] = PublishedBatch((ONE,))
    data = client.sync_data(with_revision=True)
    assert (data["serviceNames"], data["instancePublishInfos"]) == ([], [])
    assert data["batchInstanceData"] == {
        "namespaces": ["public"],
        "groupNames": ["DEFAULT_GROUP"],
        "serviceNames": ["web"],
        "batchInstancePublishInfos": [
            {"port": 0, "healthy": False, "metadataId": "null:0:null", "instancePublishInfos": [ONE.to_json()]}
        ],
    }
    assert "batchInstanceData" not in client.sync_data(with_revision=True, with_batches=False)
    assert read_sync_data(data, with_batches=False).publishers == {}


@pytest.mark.parametrize(
    ("instances", "equal"),
    [((ONE, OTHER), True), ((OTHER, ONE), True), ((ONE,), False), ((ONE, OTHER, OTHER), False), ((), False)],
)
def test_batches_are_compared_as_multisets(instances: tuple[PublishedInstance, ...], equal: bool) -> None:
    assert PublishedBatch((ONE, OTHER)).equals(PublishedBatch(instances), sees_cluster=True) is equal


def test_a_batch_of_one_instance_differs_from_that_instance() -> None:
    assert not PublishedBatch((ONE,)).equals(ONE, sees_cluster=False)
    assert not ONE.equals(PublishedBatch((ONE,)), sees_cluster=False)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"attributes": None}, "attributes"),
        ({"instancePublishInfos": [{"ip": "10.0.0.1", "port": 80}]}, "extendDatum"),
        ({"serviceNames": []}, "ClientSyncData"),
        ({"attributes": {"clientAttributes": {"revision": 2**31}}}, "32-bit"),
        ({"batchInstanceData": {"namespaces": ["public"]}}, "groupNames"),
    ],
)
def test_malformed_sync_data_is_refused_whole(change: dict[str, Any], names: str) -> None:
    with pytest.raises(MalformedSyncDataError, match=names):
        read_sync_data({**sync_data("c1", 1, web=80), **change})


def test_real_servers_do_not_compare_the_cluster_of_instances() -> None:
    """Defect D4; `strict` compares the cluster."""
    one, other = PublishedInstance("10.0.0.1", 80, cluster="A"), PublishedInstance("10.0.0.1", 80, cluster="B")
    assert one.equals(other, sees_cluster=False)
    assert not one.equals(other, sees_cluster=True)


def test_weight_enabled_and_id_travel_under_reserved_keys() -> None:
    instance = Instance(ip="10.0.0.1", port=80, weight=2, enabled=False, metadata={"zone": "a"})
    datum = published_instance(instance, "id-1").extend_datum
    assert datum == {
        "zone": "a",
        "customInstanceId": "id-1",
        "publishInstanceWeight": 2.0,
        "publishInstanceEnable": False,
    }
    assert isinstance(
        datum["publishInstanceWeight"], float
    )  # with an integer a real server can no longer list the service
    assert published_instance(Instance(ip="10.0.0.1", port=80), None).extend_datum == {}


def test_subscribers_see_enabled_instances_of_the_clusters_they_asked_for() -> None:
    published = [
        PublishedInstance("10.0.0.1", 1, cluster="A"),
        PublishedInstance("10.0.0.1", 2, cluster="B", healthy=False),
        PublishedInstance("10.0.0.1", 3, cluster="C"),
        PublishedInstance("10.0.0.1", 4, cluster="A", extend_datum={"publishInstanceEnable": False}),
    ]

    def ports(clusters: str, *, healthy_only: bool) -> list[int]:
        return [host["port"] for host in hosts_seen(*published, clusters=clusters, healthy_only=healthy_only)]

    assert ports("", healthy_only=False) == [1, 2, 3]
    assert ports("A,B", healthy_only=False) == [1, 2]
    assert ports("A,B", healthy_only=True) == [1]


def test_equal_instances_of_two_clients_are_one_host_and_different_ones_are_two() -> None:
    twin = PublishedInstance("10.0.0.1", 80)
    assert len(hosts_seen(ONE, twin)) == 1
    assert len(hosts_seen(ONE, replace(twin, cluster="B"))) == 2
    assert len(hosts_seen(ONE, replace(twin, extend_datum={"zone": "a"}))) == 2


@pytest.mark.parametrize(
    ("metadata", "beat"),
    [
        ({"preserved.heart.beat.timeout": "7000"}, (5000, 7000, 30000)),
        ({"preserved.heart.beat.timeout": "soon", "preserved.ip.delete.timeout": "-1"}, (5000, 15000, 30000)),
        ({"preserved.heart.beat.interval": "9" * 30}, (5000, 15000, 30000)),
        (
            {"preserved.heart.beat.interval": 1000},
            (1000, 15000, 30000),
        ),  # a number from a peer is read like a text
    ],
)
def test_heart_beat_times_come_from_metadata_that_are_numbers(
    metadata: dict[str, Any], beat: tuple[int, int, int]
) -> None:
    (host,) = hosts_seen(PublishedInstance("10.0.0.1", 80, extend_datum=metadata))
    assert (host["instanceHeartBeatInterval"], host["instanceHeartBeatTimeOut"], host["ipDeleteTimeout"]) == beat


def test_invalid_values_of_a_peer_under_reserved_keys_do_no_harm() -> None:
    """Defect D9: a real server can no longer list the service."""
    datum = {"publishInstanceWeight": "heavy", "publishInstanceEnable": "yes", "customInstanceId": 7, "zone": True}
    (host,) = hosts_seen(PublishedInstance("10.0.0.1", 80, extend_datum=datum))
    assert (host["weight"], host["enabled"], host["instanceId"], host["metadata"]) == (1.0, True, "7", {"zone": "true"})
    (host,) = hosts_seen(PublishedInstance("10.0.0.1", 80, extend_datum={"publishInstanceWeight": 2}))
    assert isinstance(host["weight"], float)


CHANGED_BY_THE_MANAGER = {"revision", "renewed_ms", "publishers", "subscribers", "heart_beats_ms", "accepted_here"}
CHANGING = {"renew", "asked", "pop", "popitem", "clear", "update", "setdefault"}
WHERE_CLIENTS_CHANGE = {"client_manager.py", "client.py", "ip_port_client.py"}


def changes_of_clients(source: str) -> list[int]:
    """The lines that change a client: that assign to a part of it, delete a part, or call a method that changes one."""
    found = []
    for part in ast.walk(ast.parse(source)):
        if isinstance(part, ast.Attribute | ast.Subscript) and not isinstance(part.ctx, ast.Load):
            held = part.value if isinstance(part, ast.Subscript) else part
            if isinstance(held, ast.Attribute) and held.attr in CHANGED_BY_THE_MANAGER and not is_own(held):
                found.append(part.lineno)
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in CHANGING:
            of = part.func.value
            is_held = isinstance(of, ast.Attribute) and of.attr in CHANGED_BY_THE_MANAGER and not is_own(of)
            if is_held or part.func.attr in ("renew", "asked"):
                found.append(part.lineno)
    return found


def is_own(held: ast.Attribute) -> bool:
    """Whether it is an attribute of `self`, which may be no client."""
    return isinstance(held.value, ast.Name) and held.value.id == "self"


def test_one_place_changes_a_client() -> None:
    """Only that place updates revision, index, events and observer, so no other code may change a client. Mutants are
    exempt."""
    source = Path(distro_impl.__file__).parent
    files = [path for path in source.rglob("*.py") if path.parent.name != "mutants"]
    changing = {path.name for path in files if changes_of_clients(path.read_text())}
    assert changing - WHERE_CLIENTS_CHANGE == set()
    assert "client_manager.py" in changing
    assert changes_of_clients("client.revision = 1\ndel client.publishers[web]\nclient.heart_beats_ms.pop(web)\n") == [
        1,
        2,
        3,
    ]
