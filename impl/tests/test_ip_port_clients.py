"""Clients without connection: registered over HTTP, kept alive by beats, owned by hash (sections 6.1, 6.5 to 6.7).

The node is asked through its InstanceOperator, which is what its HTTP side calls; between the nodes it is real gRPC.
"""

from __future__ import annotations

import pytest
from impl_lab import Lab

from distro_impl.naming.client import Service
from distro_impl.naming.instance_operator import BeatCode, BeatInfo
from distro_impl.remote.errors import INVALID_PARAM, NacosError

pytestmark = pytest.mark.wire

WEB = Service("public", "DEFAULT_GROUP", "web")
BEAT = BeatInfo("10.0.0.1", 80)


async def test_a_light_beat_of_an_unknown_instance_asks_for_a_full_one_which_registers_it(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    operator = run.cluster.nodes[0]._instances
    assert operator.beat(WEB, "10.0.0.1", 80, None) == (BeatCode.RESOURCE_NOT_FOUND, 5000)
    assert operator.beat(WEB, "10.0.0.1", 80, BEAT) == (BeatCode.OK, 5000)
    assert operator.beat(WEB, "10.0.0.1", 80, None) == (BeatCode.OK, 5000)
    found = operator.instance(WEB, "10.0.0.1", 80, "DEFAULT")
    assert found is not None
    assert found["instanceId"] == "10.0.0.1#80#DEFAULT#DEFAULT_GROUP@@web"


async def test_the_next_beat_is_expected_when_the_metadata_says(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    operator = run.cluster.nodes[0]._instances
    for text, interval_ms in [("2000", 2000), ("soon", 5000)]:
        beat = BeatInfo("10.0.0.1", 80, metadata={"preserved.heart.beat.interval": text})
        operator.deregister(WEB, "10.0.0.1", 80)
        assert operator.beat(WEB, "10.0.0.1", 80, beat) == (BeatCode.OK, interval_ms)


@pytest.mark.parametrize(
    "instance",
    [
        {"ip": "10.0.0.1"},
        {"ip": "", "port": 80},
        {"ip": "10.0.0.1", "port": 65536},
        {"ip": "10.0.0.1", "port": 80, "weight": 10001},
        {"ip": "10.0.0.1", "port": 80, "weight": "heavy"},
        {"ip": "10.0.0.1", "port": 80, "weight": float("nan")},
        {"ip": "10.0.0.1", "port": 80, "ephemeral": False},
    ],
    ids=str,
)
async def test_an_illegal_instance_is_refused_and_leaves_nothing(lab: Lab, instance: dict[str, object]) -> None:
    run = await lab.cluster(size=1)
    operator = run.cluster.nodes[0]._instances
    with pytest.raises(NacosError) as refusal:
        operator.register(WEB, instance)
    assert refusal.value.code == INVALID_PARAM
    assert operator.instances(WEB)["hosts"] == []
    assert run.events == []
