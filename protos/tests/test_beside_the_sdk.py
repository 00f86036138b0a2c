"""Our generated messages and those of the official SDK live in one process.

The proto file of the SDK has no package, so both sides would register `Payload` in the one descriptor pool without one
here. Each order of imports runs in an interpreter of its own, because an import cannot be undone.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

NODE = "from distro_protos import Payload as node"
SDK = "from v2.nacos.transport.grpcauto.nacos_grpc_service_pb2 import Payload as sdk"
COMPARE = """
sent = node(); sent.metadata.type = "HealthCheckRequest"; sent.body.value = b"{}"
read = sdk.FromString(sent.SerializeToString())
assert (read.metadata.type, read.body.value) == ("HealthCheckRequest", b"{}")
assert node.DESCRIPTOR.full_name != sdk.DESCRIPTOR.full_name
"""


@pytest.mark.parametrize("imports", [(NODE, SDK), (SDK, NODE)], ids=["node first", "sdk first"])
def test_both_payloads_exist_and_understand_each_other(imports: tuple[str, str]) -> None:
    program = "\n".join([*imports, COMPARE])
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 0, run.stderr
