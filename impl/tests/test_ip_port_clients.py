"""Clients without connection: registered over HTTP, owned by hash, replicated (sections 6.1, 6.5 to 6.7).

The node is asked through its InstanceOperator, which is what its HTTP side calls; between the nodes it is real gRPC.
"""

from __future__ import annotations

import pytest
from impl_lab import NACOS_2_2_4, STRICT, Lab, Run, sync_data

from distro_impl import PROFILES, Profile
from distro_impl.distro.distro_handler import DistroDataRequestHandler
from distro_impl.distro.transport_agent import decode_content
from distro_impl.naming.client import Service
from distro_impl.naming.instance_operator import BeatCode, BeatInfo, InstanceOperator
from distro_impl.remote.errors import INVALID_PARAM, NacosError
from distro_impl.remote.handlers import Reply, Request
from distro_impl.remote.payloads import SENDER_HEADER, Instance

pytestmark = pytest.mark.wire

WEB, API = Service("public", "DEFAULT_GROUP", "web"), Service("public", "DEFAULT_GROUP", "api")
IP = "10.0.0.1"
PATIENT = {"preserved.heart.beat.timeout": "100000", "preserved.ip.delete.timeout": "100000"}
"""Metadata of an instance that is taken for dead only after long."""
IN_RELEASE_AND_STRICT = pytest.mark.parametrize("profile", [NACOS_2_2_4, STRICT], ids=lambda profile: profile.name)


def operator(run: Run, node: int) -> InstanceOperator:
    return run.cluster.nodes[node].parts.naming.instances


def port_owned_by(run: Run, node: int) -> int:
    """A port whose `ip:port` hashes to that node."""
    return next(
        port for port in range(1, 1000) if run.cluster.nodes[node].parts.naming.mapper.responsible(f"{IP}:{port}")
    )


def health(run: Run, node: int, service: Service = WEB) -> list[bool]:
    """Of each instance of the service that this node knows."""
    return [instance.healthy for instance in run.cluster.nodes[node].parts.naming.clients.publishers_of(service)]


async def beat_for(run: Run, node: int, port: int, duration_ms: int) -> None:
    for _ in range(duration_ms // 5000):
        assert operator(run, node).beat(WEB, IP, port, None)[0] is BeatCode.OK
        await run.clock.advance(5000)


# Registering


async def test_a_light_beat_of_an_unknown_instance_asks_for_a_full_one_which_registers_it(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    assert operator(run, 0).beat(WEB, IP, 80, None) == (BeatCode.RESOURCE_NOT_FOUND, 5000)
    assert operator(run, 0).beat(WEB, IP, 80, BeatInfo(WEB, IP, 80)) == (BeatCode.OK, 5000)
    assert operator(run, 0).beat(WEB, IP, 80, None) == (BeatCode.OK, 5000)
    assert operator(run, 0).beat(API, IP, 80, None) == (BeatCode.RESOURCE_NOT_FOUND, 5000)
    found = operator(run, 0).instance(WEB, IP, 80, "DEFAULT")
    assert found is not None
    assert found["instanceId"] == f"{IP}#80#DEFAULT#DEFAULT_GROUP@@web"


async def test_the_next_beat_is_expected_when_the_metadata_says(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    for text, interval_ms in [("2000", 2000), ("soon", 5000)]:
        beat = BeatInfo(WEB, IP, 80, metadata={"preserved.heart.beat.interval": text})
        operator(run, 0).deregister(WEB, IP, 80)
        assert operator(run, 0).beat(WEB, IP, 80, beat) == (BeatCode.OK, interval_ms)


@pytest.mark.parametrize(
    "instance",
    [
        {"ip": IP},
        {"ip": "", "port": 80},
        {"ip": IP, "port": 65536},
        {"ip": IP, "port": 80, "weight": 10001},
        {"ip": IP, "port": 80, "weight": float("nan")},
        {"ip": IP, "port": 80, "ephemeral": False},
    ],
    ids=str,
)
async def test_an_illegal_instance_is_refused_and_leaves_nothing(lab: Lab, instance: dict[str, object]) -> None:
    run = await lab.cluster(size=1)
    with pytest.raises(NacosError) as refusal:
        operator(run, 0).register(WEB, Instance(**instance))
    assert refusal.value.code == INVALID_PARAM
    assert operator(run, 0).instances(WEB)["hosts"] == []
    assert run.events == []


async def test_deregistering_what_is_unknown_is_fine(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    operator(run, 0).deregister(WEB, IP, 80)
    operator(run, 0).register(API, Instance(ip=IP, port=80))
    operator(run, 0).deregister(WEB, IP, 80)
    assert health(run, 0, API) == [True]


# Replication


async def test_owners_that_loaded_without_the_holder_learn_of_a_client_by_its_next_beat(lab: Lab) -> None:
    """No node verifies a client whose owner has lost it, so its copy alone would not spread."""
    run = await lab.cluster(STRICT)
    port = port_owned_by(run, 0)
    operator(run, 0).register(WEB, Instance(ip=IP, port=port, metadata=PATIENT))
    await run.clock.advance(1500)
    far = await run.restart_two_without_the_third()
    await run.clock.advance(20_000)  # the third has taken over the client, and receives its beats
    await beat_for(run, 2, port, 30_000)
    assert [node.parts.distro.is_loaded for node in run.cluster.nodes] == [True] * 3
    for link in far:
        link.cut = False
    await run.clock.advance(10_000)
    assert [health(run, node) for node in range(3)] == [[], [], [True]]
    assert operator(run, 0).beat(WEB, IP, port, None)[0] is BeatCode.RESOURCE_NOT_FOUND
    assert operator(run, 0).beat(WEB, IP, port, BeatInfo(WEB, IP, port))[0] is BeatCode.OK
    await run.clock.advance(1500)
    assert [health(run, node) for node in range(3)] == [[True]] * 3


@IN_RELEASE_AND_STRICT
async def test_the_owner_spreads_and_verifies_its_client(lab: Lab, profile: Profile) -> None:
    run = await lab.cluster(profile)
    port, owner = port_owned_by(run, 1), run.cluster.addresses[1]
    client = f"{IP}:{port}#true"
    operator(run, 1).register(WEB, Instance(ip=IP, port=port))
    await run.clock.advance(1500)
    assert [health(run, node) for node in range(3)] == [[True]] * 3
    assert run.last(0, client).revision == run.last(1, client).revision != 0
    assert [run.last(node, client).native for node in range(3)] == [False, True, False]
    await beat_for(run, 1, port, 20_000)
    assert {sent.sender for sent in run.links.sent if sent.client == client} == {owner}
    assert run.links.operations(client, peer=run.cluster.addresses[0]) == ["CHANGE", *["VERIFY"] * 4]


async def test_d7_what_is_registered_elsewhere_than_at_the_owner_stays_there(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4)
    port = port_owned_by(run, 1)
    operator(run, 0).register(WEB, Instance(ip=IP, port=port))
    await run.clock.advance(12_000)
    assert [health(run, node) for node in range(3)] == [[True], [], []]
    assert run.links.operations(f"{IP}:{port}#true") == []


@pytest.mark.parametrize(("profile", "sent"), [(NACOS_2_2_4, ["CHANGE"]), (STRICT, [])])
async def test_an_owner_announces_what_a_peer_has_sent_of_its_client_in_a_release_and_verifies_it(
    lab: Lab, profile: Profile, sent: list[str]
) -> None:
    """In `strict` the node that accepted the change announces it to all."""
    run = await lab.cluster(profile, size=2)
    port = port_owned_by(run, 0)
    client, peer = f"{IP}:{port}#true", await lab.member(run.cluster.nodes[0])
    await peer.distro("CHANGE", client, sync_data(client, 7, web=port))
    await run.clock.advance(1500)
    assert run.links.operations(client) == sent
    await run.clock.advance(5000)
    assert run.last(1, client).revision == 7


async def test_it_travels_with_the_time_of_its_last_beat_and_a_copy_begins_its_own_count(lab: Lab) -> None:
    run = await lab.cluster(size=2)
    port = port_owned_by(run, 0)
    client = f"{IP}:{port}#true"
    operator(run, 0).register(WEB, Instance(ip=IP, port=port, weight=2, metadata={"zone": "a"}))
    await run.clock.advance(1500)
    heard_ms = []
    for node in run.cluster.nodes:
        reply = await (await lab.member(node)).distro("QUERY", client)
        (info,) = decode_content(reply.body["distroData"])["instancePublishInfos"]
        heard_ms.append(info.pop("lastHeartBeatTime") - run.start_ms)
        assert info == {
            "ip": IP,
            "port": port,
            "healthy": True,
            "cluster": "DEFAULT",
            "extendDatum": {
                "zone": "a",
                "customInstanceId": f"{IP}#{port}#DEFAULT#DEFAULT_GROUP@@web",
                "publishInstanceWeight": 2.0,
            },
            "metadataId": f"{IP}:{port}:DEFAULT",
        }
    assert heard_ms == [0, 1000]


async def test_a_restarted_owner_loads_its_clients_and_owns_them_again(lab: Lab) -> None:
    run = await lab.cluster()
    port = port_owned_by(run, 0)
    client = f"{IP}:{port}#true"
    operator(run, 0).register(WEB, Instance(ip=IP, port=port))
    await run.clock.advance(2000)
    await run.cluster.crash(0)
    await run.cluster.restart(0)
    await run.clock.settle()
    assert health(run, 0) == [True]
    run.links.sent.clear()
    await beat_for(run, 0, port, 10_000)
    assert run.links.operations(client, peer=run.cluster.addresses[1]) == ["VERIFY", "VERIFY"]
    assert [health(run, node) for node in range(3)] == [[True]] * 3


async def test_up_to_2_0_2_a_copy_stays_for_ever(lab: Lab) -> None:
    run = await lab.cluster(PROFILES["nacos-2.0.2"], size=2)
    port = port_owned_by(run, 1)
    client, peer = f"{IP}:{port}#true", await lab.member(run.cluster.nodes[0])
    await peer.distro("CHANGE", client, sync_data(client, 7, web=port))
    await run.clock.advance(400_000)
    assert health(run, 0) == [True]


async def test_a_copy_that_no_node_verifies_ends_with_the_lease(lab: Lab) -> None:
    run = await lab.cluster(size=2)
    port = port_owned_by(run, 1)
    client, peer = f"{IP}:{port}#true", await lab.member(run.cluster.nodes[0])
    await peer.distro("CHANGE", client, sync_data(client, 7, web=port))
    await run.clock.advance(180_000)
    assert health(run, 0) == [True]  # neither unhealthy nor removed: only the owner judges
    await run.clock.advance(5000)
    assert (run.last(0, client).kind, run.last(0, client).reason) == ("replica_removed", "lease")


@pytest.mark.parametrize(("profile", "result_code"), [(NACOS_2_2_4, 200), (STRICT, 500)])
async def test_a_persistent_client_is_not_taken(lab: Lab, profile: Profile, result_code: int) -> None:
    """An exception in the handler, which releases hide (D5)."""
    run = await lab.cluster(profile, size=1)
    peer = await lab.member(run.cluster.nodes[0])
    for operation in ("CHANGE", "VERIFY"):
        reply = await peer.distro(operation, f"{IP}:80#false", sync_data(f"{IP}:80#false", 1, web=80))
        assert (reply.body["resultCode"], reply.body["errorCode"]) == (result_code, 500)
    assert (await peer.distro("DELETE", f"{IP}:80#false")).succeeded
    assert health(run, 0) == []


async def test_an_id_that_was_deleted_may_come_back(lab: Lab) -> None:
    """Unlike that of a connection (B26)."""
    run = await lab.cluster(size=2)
    port = port_owned_by(run, 1)
    client, peer = f"{IP}:{port}#true", await lab.member(run.cluster.nodes[0])
    await peer.distro("DELETE", client)
    assert (await peer.distro("CHANGE", client, sync_data(client, 7, web=port))).succeeded
    assert health(run, 0) == [True]


# Another owner


async def test_the_clients_of_a_member_that_is_down_pass_to_another_one(lab: Lab) -> None:
    run = await lab.cluster()
    port = port_owned_by(run, 0)
    client, tag = f"{IP}:{port}#true", f"{IP}:{port}"
    operator(run, 0).register(WEB, Instance(ip=IP, port=port))
    await beat_for(run, 0, port, 10_000)
    await run.cluster.crash(0)
    run.links.sent.clear()
    await run.clock.advance(20_000)
    heir_address = run.cluster.nodes[1].parts.naming.mapper.map_server(tag)
    heir = run.cluster.addresses.index(heir_address)
    assert heir in (1, 2)
    assert run.cluster.nodes[2].parts.naming.mapper.map_server(tag) == heir_address
    await beat_for(run, heir, port, 200_000)
    assert [health(run, node) for node in (1, 2)] == [[True], [True]]
    assert {sent.sender for sent in run.links.sent if sent.client == client} == {heir_address}
    await run.clock.advance(41_000)
    assert [health(run, node) for node in (1, 2)] == [[], []]


async def test_a_new_owner_counts_from_the_last_verify(lab: Lab) -> None:
    """Otherwise all clients that it takes over would be removed at once (`m-ipport-verify-no-beat-renew`)."""
    run = await lab.cluster(size=2)
    port = port_owned_by(run, 0)
    operator(run, 0).register(WEB, Instance(ip=IP, port=port))
    await beat_for(run, 0, port, 100_000)
    await run.cluster.crash(0)
    await run.clock.advance(20_000)
    assert run.cluster.nodes[1].parts.naming.mapper.responsible(f"{IP}:{port}")
    assert health(run, 1) == [False]
    await run.clock.advance(9_000)
    assert health(run, 1) == [False]
    await run.clock.advance(6_000)
    assert health(run, 1) == []


@pytest.mark.parametrize(("profile", "survives"), [(NACOS_2_2_4, False), (STRICT, True)])
async def test_b22_what_an_interim_owner_accepted_survives_the_return_of_the_owner_in_strict(
    lab: Lab, profile: Profile, survives: bool
) -> None:
    run = await lab.cluster(profile, size=2)
    port = port_owned_by(run, 1)
    operator(run, 1).register(WEB, Instance(ip=IP, port=port, metadata=PATIENT))
    await run.clock.advance(5_500)
    run.link(0, 1).cut = run.link(1, 0).cut = True
    await run.clock.advance(19_000)
    operator(run, 0).register(API, Instance(ip=IP, port=port, metadata=PATIENT))
    await run.clock.advance(4_250)
    run.link(0, 1).cut = run.link(1, 0).cut = False
    await run.clock.advance(31_250)
    assert [health(run, node, WEB) for node in (0, 1)] == [[True], [True]]
    assert [health(run, node, API) for node in (0, 1)] == ([[True], [True]] if survives else [[], []])


@pytest.mark.parametrize(("profile", "removed"), [(NACOS_2_2_4, True), (STRICT, False)])
async def test_b41_a_delete_of_an_earlier_owner_removes_the_client_of_the_present_one_but_not_in_strict(
    lab: Lab, profile: Profile, removed: bool
) -> None:
    """Until the earlier owner has acknowledged what the present one accepted."""
    run = await lab.cluster(profile, size=2)
    port = port_owned_by(run, 0)
    operator(run, 0).register(WEB, Instance(ip=IP, port=port))
    earlier = await lab.member(run.cluster.nodes[0])
    earlier.headers[SENDER_HEADER] = run.cluster.addresses[1]
    assert (await earlier.distro("DELETE", f"{IP}:{port}#true")).succeeded is removed
    assert health(run, 0) == ([] if removed else [True])
    await run.clock.advance(1500)
    assert (await earlier.distro("DELETE", f"{IP}:{port}#true")).succeeded
    assert health(run, 0) == []


async def sends_replaced_content(lab: Lab, run: Run, sender: str | None) -> tuple[bool, bool, list[bool]]:
    """Whether the member may send the old content of a client before it acknowledges the new one, and after; and the
    instances of `api`, which only the new content has, in between."""
    port = port_owned_by(run, 0)
    client, peer = f"{IP}:{port}#true", await lab.member(run.cluster.nodes[0])
    if sender is not None:
        peer.headers[SENDER_HEADER] = sender
    operator(run, 0).register(WEB, Instance(ip=IP, port=port, metadata=PATIENT))
    await run.clock.advance(1500)
    old = decode_content((await peer.distro("QUERY", client)).body["distroData"])
    run.link(0, 1).cut = True
    operator(run, 0).register(API, Instance(ip=IP, port=port, metadata=PATIENT))
    await run.clock.advance(1500)
    before, between = (await peer.distro("CHANGE", client, old)).succeeded, health(run, 0, API)
    operator(run, 0).register(API, Instance(ip=IP, port=port, metadata=PATIENT))
    run.link(0, 1).cut = False
    await run.clock.advance(4500)
    return before, (await peer.distro("CHANGE", client, old)).succeeded, between


async def test_replaced_content_is_refused_also_from_a_member_that_has_acknowledged_the_change(lab: Lab) -> None:
    """An older CHANGE of the member may have been under way then."""
    run = await lab.cluster(STRICT, size=2)
    assert await sends_replaced_content(lab, run, run.cluster.addresses[1]) == (False, False, [True])


async def test_replaced_content_that_names_the_held_revision_as_superseded_is_accepted(lab: Lab) -> None:
    run = await lab.cluster(STRICT, size=2)
    port = port_owned_by(run, 0)
    client, peer = f"{IP}:{port}#true", await lab.member(run.cluster.nodes[0])
    peer.headers[SENDER_HEADER] = run.cluster.addresses[1]
    contents = []
    for service in (WEB, API):
        operator(run, 0).register(service, Instance(ip=IP, port=port, metadata=PATIENT))
        contents.append(decode_content((await peer.distro("QUERY", client)).body["distroData"]))
    old, new = (each["attributes"]["clientAttributes"] for each in contents)
    assert new["superseded"] == [old["revision"]]
    old["superseded"] = [new["revision"]]
    assert (await peer.distro("CHANGE", client, contents[0])).succeeded
    assert health(run, 0, API) == []


async def test_a_member_that_sends_superseded_content_is_sent_the_change_again(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    operations: list[str | None] = []
    handle = DistroDataRequestHandler.handle

    def noted(self: DistroDataRequestHandler, request: Request) -> Reply:
        operations.append(request.body.data_operation)
        return handle(self, request)

    monkeypatch.setattr(DistroDataRequestHandler, "handle", noted)
    run = await lab.cluster(STRICT, size=2)
    await sends_replaced_content(lab, run, run.cluster.addresses[1])
    operations.clear()
    await run.clock.advance(3500)
    assert operations.count("CHANGE") == 1


@pytest.mark.parametrize(
    ("profile", "names_itself"), [(STRICT, False), (NACOS_2_2_4, True)], ids=["without the header", "to a release"]
)
async def test_a_request_that_names_no_sender_is_handled_as_in_a_release(
    lab: Lab, profile: Profile, names_itself: bool
) -> None:
    """A release does not send the header, and does not read it."""
    run = await lab.cluster(profile, size=2)
    sender = run.cluster.addresses[1] if names_itself else None
    assert await sends_replaced_content(lab, run, sender) == (True, True, [])


@pytest.mark.parametrize(("profile", "is_named"), [(NACOS_2_2_4, False), (STRICT, True)], ids=["nacos-2.2.4", "strict"])
async def test_a_node_names_itself_in_what_it_sends_to_members_in_strict(
    lab: Lab, profile: Profile, is_named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    senders: list[str | None] = []
    handle = DistroDataRequestHandler.handle

    def noted(self: DistroDataRequestHandler, request: Request) -> Reply:
        if request.body.data_operation in ("CHANGE", "VERIFY"):
            senders.append(request.headers.get(SENDER_HEADER))
        return handle(self, request)

    monkeypatch.setattr(DistroDataRequestHandler, "handle", noted)
    run = await lab.cluster(profile, size=2)
    operator(run, 0).register(WEB, Instance(ip=IP, port=port_owned_by(run, 0)))
    await run.clock.advance(6500)
    assert senders == [run.cluster.addresses[0] if is_named else None] * 2


@pytest.mark.parametrize(("first", "is_kept"), [(True, False), (False, True)], ids=["the first", "the second"])
async def test_a_verify_without_a_sender_counts_at_an_owner_that_is_not_the_first_of_the_ring(
    lab: Lab, first: bool, is_kept: bool
) -> None:
    """It may come from the first."""
    run = await lab.cluster(STRICT, size=2)
    port = port_owned_by(run, 0 if first else 1)
    await run.cluster.crash(1)
    await run.clock.advance(25_000)
    operator(run, 0).register(WEB, Instance(ip=IP, port=port))
    held = run.cluster.nodes[0].parts.naming.clients.get(f"{IP}:{port}#true")
    rival = await lab.member(run.cluster.nodes[0])
    assert held is not None
    for _ in range(13):
        await run.clock.advance(5_000)
        await rival.verify(held.id, held.revision)
    assert health(run, 0) == ([True] if is_kept else [])


@pytest.mark.parametrize(("cut_s", "judgement"), [(40, [False]), (70, [])], ids=["unhealthy", "gone"])
async def test_conclusions_of_an_interim_owner_from_missing_beats_are_not_sent_to_the_owner(
    lab: Lab, cut_s: int, judgement: list[bool]
) -> None:
    """In strict: they went to the owner all the time."""
    run = await lab.cluster(size=2)
    port = port_owned_by(run, 1)
    client, patient = f"{IP}:{port}#true", {"preserved.ip.delete.timeout": "50000"}
    operator(run, 1).register(WEB, Instance(ip=IP, port=port, metadata=patient))
    await run.clock.advance(2_000)
    run.link(0, 1).cut = run.link(1, 0).cut = True
    await beat_for(run, 1, port, 1000 * cut_s)
    assert health(run, 0) == judgement
    run.link(0, 1).cut = run.link(1, 0).cut = False
    run.links.sent.clear()
    await run.clock.advance(10_000)
    assert run.links.operations(client, sender=run.cluster.addresses[0]) == []
    assert [health(run, node) for node in (0, 1)] == [[True], [True]]


@pytest.mark.parametrize(("profile", "is_kept"), [(STRICT, False), (NACOS_2_2_4, True)])
async def test_an_owner_judges_by_beats_even_if_another_node_verifies_its_client(
    lab: Lab, profile: Profile, is_kept: bool
) -> None:
    """Another member that takes itself for the owner verifies it; in releases both keep what is dead for each other."""
    run = await lab.cluster(profile, size=1)
    node = run.cluster.nodes[0]
    rival = await lab.member(node)
    operator(run, 0).register(WEB, Instance(ip=IP, port=80))
    held = node.parts.naming.clients.get(f"{IP}:80#true")
    assert held is not None
    for _ in range(13):  # 65 s after its only registration
        await run.clock.advance(5_000)
        await rival.verify(held.id, held.revision)
    assert health(run, 0) == ([True] if is_kept else [])
