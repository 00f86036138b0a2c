"""The service that an HTTP request is about: `serviceName` and `groupName` name it together, or `group@@name` alone.

As ServiceNameFilter makes it. Source: docs/protocol #http-v1.
"""

from __future__ import annotations

from distro_impl.http.parameters import Parameters
from distro_impl.http.replies import ApiError, ErrorCode, FilterError
from distro_impl.naming.client import DEFAULT_GROUP, DEFAULT_NAMESPACE, Service
from distro_impl.remote.errors import INVALID_PARAM

GROUP_SEPARATOR = "@@"
UNGROUPED = "Param 'serviceName' is illegal, it should be format as 'groupName@@serviceName'"


def service_of(parameters: Parameters) -> Service:
    """The service of a grouped or plain `serviceName`."""
    if parameters.as_given("serviceName").isspace():
        raise ApiError(ErrorCode.PARAMETER_VALIDATE_ERROR, UNGROUPED)
    return service_named(parameters.required("serviceName"), parameters)


def service_named(name: str, parameters: Parameters) -> Service:
    """`name` may be `group@@name`, and then the parameter `groupName` has no say."""
    group, separator, plain = name.partition(GROUP_SEPARATOR)
    if not separator:
        group, plain = parameters.text("groupName", default=DEFAULT_GROUP), name
    if not group.strip() or not plain.strip():
        raise FilterError(INVALID_PARAM, f"Param 'serviceName' is illegal: '{name}'")
    return Service(parameters.text("namespaceId", default=DEFAULT_NAMESPACE), group, plain)
