"""DistroDataRequest as its receiver handles it.

Dispatched by the outer `dataOperation`; the inner `type` decides what a sync does. How a failure is answered differs
between releases, and decides whether the sender ever learns of it. Source: wire-protocol.md sections 5.1, 5.3, 5.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from distro_impl.distro.data_processor import DistroClientDataProcessor
from distro_impl.distro.distro_log import DistroLog
from distro_impl.distro.transport_agent import (
    DISTRO_DATA_RESPONSE,
    RESOURCE_TYPE,
    DataOperation,
    decode_content,
    encode_content,
)
from distro_impl.profiles import Profile
from distro_impl.remote.errors import SERVER_ERROR, failure, success
from distro_impl.remote.handlers import Reply, Request
from distro_protos import Json

HANDLER_EXCEPTION = "handle distro request with exception"
NOT_HANDLED = "[DISTRO-FAILED] distro data handle failed"
REFUSED = "[DISTRO-FAILED] distro data refused: the client is connected here, or was deleted"
NOT_LOADED = "[DISTRO-FAILED] distro snapshot refused: this member has not loaded yet"
VERIFY_FAILED = "[DISTRO-FAILED] distro data verify failed"


class DistroDataRequestHandler:
    def __init__(
        self, profile: Profile, processor: DistroClientDataProcessor, log: DistroLog, is_loaded: Callable[[], bool]
    ) -> None:
        self._profile, self._processor, self._log, self._is_loaded = profile, processor, log, is_loaded

    def handle(self, request: Request) -> Reply:
        """Always a typed response; an operation that no release knows is not even read (request_fields.py)."""
        try:
            return DISTRO_DATA_RESPONSE, self._answer(DataOperation(request.body["dataOperation"]), request)
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError):
            return DISTRO_DATA_RESPONSE, _failure(HANDLER_EXCEPTION, visible=self._profile.exception_visible)

    def _answer(self, operation: DataOperation, request: Request) -> Json:
        if operation is DataOperation.SNAPSHOT:
            if self._profile.snapshot_needs_load and not self._is_loaded():
                return failure(SERVER_ERROR, SERVER_ERROR, NOT_LOADED)
            key = {"resourceKey": "SNAPSHOT", "resourceType": RESOURCE_TYPE}
            return success(distroData={"distroKey": key, "content": encode_content(self._processor.snapshot())})
        data = request.body["distroData"]
        if operation is DataOperation.VERIFY:
            return self._verify(data, request)
        if operation is DataOperation.QUERY:
            return self._query(data)
        return self._sync(data)

    def _verify(self, data: Mapping[str, Any], request: Request) -> Json:
        info = decode_content(data)
        self._log.verify_received(info["clientId"])
        if self._processor.process_verify(info["clientId"], int(info.get("revision", 0))):
            return success()
        self._log.verify_refused(info["clientId"], reporter=request.connection_id.split("_")[1])
        return failure(SERVER_ERROR, SERVER_ERROR, VERIFY_FAILED)

    def _query(self, data: Mapping[str, Any]) -> Json:
        """An unknown client is a success without data."""
        if data["distroKey"].get("resourceType") != RESOURCE_TYPE:  # nobody looks, and nothing is what is found
            return success(distroData={"distroKey": data["distroKey"], "content": ""})
        found = self._processor.data_of(data["distroKey"]["resourceKey"])
        if found is None:
            return success()
        return success(distroData={"distroKey": data["distroKey"], "content": encode_content(found)})

    def _sync(self, data: Mapping[str, Any]) -> Json:
        self._log.received(data)
        operation = data["type"]  # a sync without inner type makes the receiver throw
        if data["distroKey"].get("resourceType") != RESOURCE_TYPE:
            return _failure(NOT_HANDLED, visible=self._profile.unhandled_visible)
        if operation in (DataOperation.ADD, DataOperation.CHANGE):
            applied = self._processor.process_change(decode_content(data), operation)
        elif operation == DataOperation.DELETE:
            applied = self._processor.process_delete(data["distroKey"]["resourceKey"])
        else:
            return _failure(NOT_HANDLED, visible=self._profile.unhandled_visible)
        return success() if applied else failure(SERVER_ERROR, SERVER_ERROR, REFUSED)  # success would mean: applied


def _failure(message: str, *, visible: bool) -> Json:
    """Where resultCode stays 200 the sender believes in a success (D5, D6)."""
    return failure(SERVER_ERROR if visible else 200, SERVER_ERROR, message)
