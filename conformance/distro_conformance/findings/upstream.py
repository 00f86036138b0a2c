"""Where bugs of releases were reported, or can be read in the code: one table.

The names are those of docs/reference/mutants.md and docs/protocol.

A requirement, a listed failure, a cause of a broken property and a mutant name their bug; whoever shows one asks here.
"""

from __future__ import annotations

from collections.abc import Mapping

_ISSUE = "https://github.com/alibaba/nacos/issues"
_CODE = "https://github.com/alibaba/nacos/blob"
_IN_NAMING = "naming/src/main/java/com/alibaba/nacos/naming"
_NAMING = f"{_CODE}/2.2.4/{_IN_NAMING}"

UPSTREAM: Mapping[str, str] = {
    "B01": f"{_ISSUE}/15857",
    "B02": f"{_ISSUE}/9210",
    "B03": f"{_ISSUE}/10509",
    "B05": f"{_ISSUE}/10056",
    "B06": f"{_NAMING}/healthcheck/heartbeat/UnhealthyInstanceChecker.java",
    "B07": "https://github.com/alibaba/nacos/commit/f56dedc7fe",
    "B08": f"{_ISSUE}/5918",
    "B10": f"{_ISSUE}/10056",
    "B11": f"{_ISSUE}/13390",
    "B12": f"{_ISSUE}/11895",
    "B13": f"{_ISSUE}/10556",
    "B15": f"{_NAMING}/core/DistroMapper.java",
    "B16": f"{_ISSUE}/12991",
    "B16-unhandled": f"{_NAMING}/remote/rpc/handler/DistroDataRequestHandler.java",
    "B17": f"{_ISSUE}/12299",
    "B18": f"{_ISSUE}/11192",
    "B19": f"{_ISSUE}/11701",
    "B22": f"{_NAMING}/consistency/ephemeral/distro/v2/DistroClientDataProcessor.java",
    "B23": f"{_ISSUE}/8090",
    "B24": f"{_ISSUE}/10809",
    "B25": f"{_NAMING}/remote/rpc/handler/InstanceRequestHandler.java",
    "B26": f"{_NAMING}/consistency/ephemeral/distro/v2/DistroClientDataProcessor.java",
    "B27": f"{_NAMING}/consistency/ephemeral/distro/v2/DistroClientDataProcessor.java",
    "B30": f"{_ISSUE}/6116",
    "B31": f"{_ISSUE}/6403",
    "B32": f"{_ISSUE}/9837",
    "B33": f"{_ISSUE}/12160",
    "B35": f"{_ISSUE}/5265",
    "B37": f"{_ISSUE}/14951",
    "B39": f"{_CODE}/2.3.2/core/src/main/java/com/alibaba/nacos/core/remote/NacosRuntimeConnectionEjector.java",
    "B40": f"{_CODE}/2.2.4/core/src/main/java/com/alibaba/nacos/core/remote/ConnectionManager.java",
    "B41": f"{_NAMING}/consistency/ephemeral/distro/v2/DistroClientDataProcessor.java",
    "B42": f"{_CODE}/2.2.4/common/src/main/java/com/alibaba/nacos/common/remote/client/grpc/GrpcConnection.java",
    "B44": f"{_CODE}/3.0.3/{_IN_NAMING}/core/v2/index/ClientServiceIndexesManager.java",
    "D4": "https://github.com/alibaba/nacos/pull/14754",
    "D7": f"{_ISSUE}/14992",
    "push-of-every-cluster": "https://github.com/alibaba/nacos/pull/9019",
    "native-connect-onto-synced": f"{_NAMING}/core/v2/client/manager/impl/ConnectionBasedClientManager.java",
    "revision-zero-wildcard": f"{_NAMING}/core/v2/client/manager/impl/ConnectionBasedClientManager.java",
}


def upstream_of(bug: str | None) -> str | None:
    """None where it is nobody's bug, or where nothing is to be read of it."""
    return None if bug is None else UPSTREAM.get(bug)
