"""JSON that differs from its declaration and that Jackson reads all the same, and the refusal of other JSON."""

from __future__ import annotations

import pytest

from distro_impl.jackson import FieldError, convert
from distro_impl.remote.payloads import BatchInstanceRequest, InstanceRequest
from distro_protos import Json


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"instance": {"port": "eighty"}}, r"\$\.instance\.port is not a whole number"),
        ({"instance": {"metadata": {"a": []}}}, r"\$\.instance\.metadata\.a is not text"),
        ({"instance": {"weight": "1e999"}}, r"\$\.instance\.weight is not finite"),
        ({"instance": 7}, r"\$\.instance is not an object"),
    ],
)
def test_a_field_that_cannot_be_read_is_named_by_its_path(body: Json, message: str) -> None:
    with pytest.raises(FieldError, match=message):
        convert(InstanceRequest, body)


def test_a_list_is_read_item_by_item() -> None:
    body = {"instances": [{"port": "80"}, None, {"port": 81.0, "healthy": "false"}]}
    read_instances = convert(BatchInstanceRequest, body).instances
    assert [(each.port, each.healthy) for each in read_instances] == [(80, True), (81, False)]
    with pytest.raises(FieldError, match=r"\$\.instances\[1\]\.healthy is neither true nor false"):
        convert(BatchInstanceRequest, {"instances": [{}, {"healthy": "perhaps"}]})
