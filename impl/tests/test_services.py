"""Services: when one is created, how they are listed, and when an empty one is removed (docs/protocol #naming-requests,
#receive-change and #settings-keys)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from impl_lab import NACOS_2_2_4, STRICT, Lab, RawClient

pytestmark = pytest.mark.wire


async def registered(lab: Lab) -> RawClient:
    """A client with three services, on a single node."""
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    for name in ("web", "api", "db"):
        await client.register(name, 80)
    return client


@pytest.mark.parametrize(
    ("page_no", "page_size", "page"),
    [
        (1, 2, ["api", "db"]),
        (2, 2, ["web"]),
        (3, 2, []),
        (0, 2, ["api", "db"]),
        (-5, 2, ["api", "db"]),
        (1, 0, []),
        (2, -1, None),
        (9, 10**9, []),
    ],
)
async def test_services_are_listed_by_page_with_plain_names(
    lab: Lab, page_no: int, page_size: int, page: list[str] | None
) -> None:
    """None: the request is refused. A page with a negative number begins at the start of the list."""
    client = await registered(lab)
    query = {"namespace": "public", "groupName": "DEFAULT_GROUP", "pageNo": page_no, "pageSize": page_size}
    reply = await client.ask("ServiceListRequest", query)
    if page is None:
        assert (reply.type, reply.body["errorCode"]) == ("ErrorResponse", 500)
    else:
        assert (reply.body["count"], reply.body["serviceNames"]) == (3, page)


@pytest.mark.parametrize("where", [{"groupName": "other"}, {"namespace": "dev"}, {"groupName": None}])
async def test_a_list_is_that_of_one_namespace_and_group(lab: Lab, where: dict[str, str | None]) -> None:
    client = await registered(lab)
    assert await client.services(**where) == (0, [])


async def test_a_subscription_creates_no_service_and_a_copy_of_a_peer_does(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    await client.subscribe("web")
    assert await client.services() == (0, [])
    await (await lab.member(run.cluster.nodes[0])).change("c1", 1, web=80)
    assert await client.services() == (1, ["web"])


async def test_a_registration_without_effect_creates_a_service_too(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=1)
    client = await lab.raw(run.cluster.nodes[0].config.sdk_target, source="sdk").connect()
    await client.register("web", 80)
    assert await client.services() == (1, ["web"])


async def test_an_empty_service_is_listed_until_it_has_been_empty_for_a_minute(lab: Lab) -> None:
    """The cleaner runs at 30, 90 and 150 s. Subscribers do not keep a service."""
    run = await lab.cluster(NACOS_2_2_4, size=1)
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("web", 80)
    await client.register("api", 80)
    await client.subscribe("web")
    await run.clock.advance(31_000)
    await client.deregister("web")
    await run.clock.advance(60_000)
    assert await client.services() == (2, ["api", "web"])  # the service was empty for 59 s when the cleaner ran
    await run.clock.advance(60_000)
    assert await client.services() == (1, ["api"])
    assert await client.ports("web") == []
    revision = run.last(0, client.id).revision
    await client.deregister("web")
    assert run.last(0, client.id).revision == revision  # no service refers to it any more
    await client.register("web", 81)  # again the first registration of the service, so it is listed at once
    assert (await client.services(), await client.ports("web")) == ((2, ["api", "web"]), [81])


async def test_settings_of_the_cleaner_shorten_its_period_and_the_time_a_service_may_be_empty(lab: Lab) -> None:
    profile = replace(STRICT, empty_service_clean_period_ms=5_000, empty_service_expired_ms=1_000)
    run = await lab.cluster(profile, size=1)
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("web", 80)
    await run.clock.advance(31_000)
    await client.deregister("web")
    await run.clock.advance(4_000)
    assert await client.services() == (0, [])
