"""How a client is written and read, and what subscribers see of it (wire-protocol.md sections 3.2 and 5.2)."""

from __future__ import annotations

from typing import Any

import pytest
from impl_lab import sync_data

from distro_impl.naming.client import Client, MalformedSyncDataError, PublishedInstance, Service, read_sync_data
from distro_impl.naming.service_info import published_instance, service_info

WEB = Service("public", "DEFAULT_GROUP", "web")


def test_a_client_survives_the_wire() -> None:
    client = Client("c1", native=True, renewed_ms=0, revision=7)
    client.publishers[WEB] = PublishedInstance("10.0.0.1", 80, extend_datum={"zone": "a"})
    read = read_sync_data(client.sync_data(with_revision=True))
    assert (read.client_id, read.revision, read.publishers) == ("c1", 7, client.publishers)
    assert client.sync_data(with_revision=False)["attributes"] == {"clientAttributes": {}}


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"attributes": None}, "AttributeError|TypeError"),
        ({"instancePublishInfos": [{"ip": "10.0.0.1", "port": 80}]}, "extendDatum"),
        ({"serviceNames": []}, "ClientSyncData"),
        ({"attributes": {"clientAttributes": {"revision": 2**31}}}, "32-bit"),
        ({"batchInstanceData": {"serviceNames": ["web"]}}, "batch"),
    ],
)
def test_malformed_sync_data_is_refused_whole(change: dict[str, Any], names: str) -> None:
    with pytest.raises(MalformedSyncDataError, match=names):
        read_sync_data({**sync_data("c1", 1, web=80), **change})


def test_the_servers_equality_forgets_the_cluster() -> None:
    """D4; `strict` looks at it."""
    one, other = PublishedInstance("10.0.0.1", 80, cluster="A"), PublishedInstance("10.0.0.1", 80, cluster="B")
    assert one.equals(other, sees_cluster=False)
    assert not one.equals(other, sees_cluster=True)


def test_weight_enabled_and_id_travel_under_reserved_keys() -> None:
    instance = {"ip": "10.0.0.1", "port": 80, "weight": 2, "enabled": False, "metadata": {"zone": "a"}}
    datum = published_instance(instance, WEB, generate_id=True).extend_datum
    assert datum == {
        "zone": "a",
        "customInstanceId": "10.0.0.1#80#null#DEFAULT_GROUP@@web",
        "publishInstanceWeight": 2.0,
        "publishInstanceEnable": False,
    }
    assert isinstance(datum["publishInstanceWeight"], float)  # an integer poisons the service on a real server
    assert published_instance({"ip": "10.0.0.1", "port": 80}, WEB, generate_id=False).extend_datum == {}


def test_subscribers_see_enabled_instances_of_the_clusters_they_asked_for() -> None:
    published = [
        PublishedInstance("10.0.0.1", 1, cluster="A"),
        PublishedInstance("10.0.0.1", 2, cluster="B", healthy=False),
        PublishedInstance("10.0.0.1", 3, cluster="C"),
        PublishedInstance("10.0.0.1", 4, cluster="A", extend_datum={"publishInstanceEnable": False}),
    ]

    def ports(clusters: str, *, healthy_only: bool) -> list[int]:
        info = service_info(WEB, published, clusters=clusters, healthy_only=healthy_only, last_ref_time=1)
        return [host["port"] for host in info["hosts"]]

    assert ports("", healthy_only=False) == [1, 2, 3]
    assert ports("A,B", healthy_only=False) == [1, 2]
    assert ports("A,B", healthy_only=True) == [1]


def test_heart_beat_numbers_come_from_the_metadata() -> None:
    instance = PublishedInstance("10.0.0.1", 80, extend_datum={"preserved.heart.beat.timeout": "7000"})
    info = service_info(WEB, [instance], clusters="", healthy_only=False, last_ref_time=1)
    host = info["hosts"][0]
    beat = (host["instanceHeartBeatInterval"], host["instanceHeartBeatTimeOut"], host["ipDeleteTimeout"])
    assert beat == (5000, 7000, 30000)
