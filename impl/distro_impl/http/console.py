"""`/v1/console`: is the node alive, is it ready, and how is it set up. Source: docs/protocol #http-admin."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from aiohttp import web

from distro_impl.config import NodeConfig
from distro_impl.http.filters import UP
from distro_impl.http.replies import json_reply, text
from distro_impl.remote.errors import SERVER_ERROR


def console_routes(config: NodeConfig, status: Callable[[], str]) -> Iterable[web.RouteDef]:
    async def liveness(_: web.Request) -> web.Response:
        return text("OK")

    async def readiness(_: web.Request) -> web.Response:
        return text("OK") if status() == UP else text("Naming is not in readiness", SERVER_ERROR)

    async def state(_: web.Request) -> web.Response:
        """All values are texts. The Distro settings are those of a cluster only."""
        profile, mode = config.profile, "standalone" if config.is_standalone else "cluster"
        distro = {
            "data_sync_delayMs": profile.sync_delay_ms,
            "data_sync_timeoutMs": profile.sync_timeout_ms,
            "data_sync_retryDelayMs": profile.sync_retry_delay_ms,
            "data_verify_intervalMs": profile.verify_interval_ms,
            "data_verify_timeoutMs": profile.verify_timeout_ms,
            "data_load_retryDelayMs": profile.load_retry_delay_ms,
        }
        shown = {name: str(value) for name, value in distro.items()} if mode == "cluster" else {}
        return json_reply(
            {
                "version": profile.version,
                "standalone_mode": mode,
                "function_mode": None,
                "auth_enabled": "true" if config.options.auth else "false",
            }
            | shown
        )

    yield web.get("/v1/console/health/liveness", liveness)
    yield web.get("/v1/console/health/readiness", readiness)
    yield web.get("/v1/console/server/state", state)
