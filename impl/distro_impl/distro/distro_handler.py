"""DistroDataRequest as its receiver handles it.

Dispatched by the outer `dataOperation`; the inner `type` decides what a sync does. How a failure is answered differs
between releases, and decides whether the sender can notice it. Unreadable data is reported in the words of a real
server; an exception on readable data is a defect of this node, answered in the same way and logged as such. Source:
docs/protocol #receive-raised, #distro-query, #distro-unknown, #distro-snapshot, #distro-envelope, #distro-content,
#sync-result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec import to_builtins

from distro_impl.distro.data_processor import BatchOverSingleError, DistroClientDataProcessor
from distro_impl.distro.distro_log import DistroLog
from distro_impl.distro.transport_agent import DISTRO_DATA_RESPONSE, RESOURCE_TYPE, encode_content
from distro_impl.logs import logger
from distro_impl.naming.client import MalformedSyncDataError
from distro_impl.profiles import Profile
from distro_impl.remote.errors import SERVER_ERROR, failure, success
from distro_impl.remote.handlers import Reply, Request
from distro_impl.remote.payloads import (
    SENDER_HEADER,
    DataOperation,
    DistroDataFields,
    DistroDataRequest,
    DistroKeyFields,
)
from distro_protos import Json, read_json

T = TypeVar("T")

HANDLER_EXCEPTION = "handle distro request with exception"
NOT_HANDLED = "[DISTRO-FAILED] distro data handle failed"
REFUSED = "[DISTRO-FAILED] distro data refused: the client is connected here, or was deleted, or has changed since"
NOT_LOADED = "[DISTRO-FAILED] distro snapshot refused: this member has not loaded yet"
VERIFY_FAILED = "[DISTRO-FAILED] distro data verify failed"

log = logger(__name__)


class MalformedRequestError(ValueError):
    """A DistroDataRequest without what its operation needs; the message says what."""


class DistroDataRequestHandler:
    def __init__(
        self, profile: Profile, processor: DistroClientDataProcessor, log: DistroLog, is_loaded: Callable[[], bool]
    ) -> None:
        self._profile, self._processor, self._log, self._is_loaded = profile, processor, log, is_loaded

    def handle(self, request: Request) -> Reply:
        """Always a typed response; an operation that no release knows is not even read (payloads.py)."""
        try:
            return DISTRO_DATA_RESPONSE, self._answer(request.body, request)
        except (MalformedRequestError, MalformedSyncDataError, BatchOverSingleError) as error:
            self._log.handling_failed(error)
        except Exception as error:
            self._log.handling_failed(error)
            log.exception("a defect of this node: a request of %s failed", request.connection_id)
        return DISTRO_DATA_RESPONSE, _failure(HANDLER_EXCEPTION, visible=self._profile.exception_visible)

    def _answer(self, body: DistroDataRequest, request: Request) -> Json:
        """Each part is read where it is needed, as servers do."""
        operation = _needed(body.data_operation, "dataOperation")
        if operation is DataOperation.SNAPSHOT:
            if self._profile.snapshot_needs_load and not self._is_loaded():
                return failure(SERVER_ERROR, SERVER_ERROR, NOT_LOADED)
            key = {"resourceKey": "SNAPSHOT", "resourceType": RESOURCE_TYPE}
            return success(distroData={"distroKey": key, "content": encode_content(self._processor.snapshot())})
        data = _needed(body.distro_data, "distroData")
        if operation is DataOperation.VERIFY:
            return self._verify(data, request)
        if operation is DataOperation.QUERY:
            return self._query(_needed(data.distro_key, "distroKey"))
        return self._sync(data, _needed(data.distro_key, "distroKey"), request)

    def _verify(self, data: DistroDataFields, request: Request) -> Json:
        client_id, revision = _verified(_content(data))
        self._log.verify_received(client_id)
        if self._processor.process_verify(client_id, revision, _sender(request)):
            return success()
        self._log.verify_refused(client_id, reporter=request.client_ip)
        return failure(SERVER_ERROR, SERVER_ERROR, VERIFY_FAILED)

    def _query(self, key: DistroKeyFields) -> Json:
        """An unknown client is a success without data."""
        if key.resource_type != RESOURCE_TYPE:  # no processor has this type, so the content is empty
            return success(distroData={"distroKey": to_builtins(key), "content": ""})
        found = self._processor.data_of(_needed(key.resource_key, "resourceKey"))
        if found is None:
            return success()
        return success(distroData={"distroKey": to_builtins(key), "content": encode_content(found)})

    def _sync(self, data: DistroDataFields, key: DistroKeyFields, request: Request) -> Json:
        operation = _needed(data.type, "type")  # a sync without inner type makes the receiver throw
        self._log.received(operation, str(key.resource_key), key.target_server)
        if key.resource_type != RESOURCE_TYPE:
            return _failure(NOT_HANDLED, visible=self._profile.unhandled_visible)
        if operation in (DataOperation.ADD, DataOperation.CHANGE):
            applied = self._processor.process_change(_content(data), operation, _sender(request))
        elif operation is DataOperation.DELETE:
            applied = self._processor.process_delete(_needed(key.resource_key, "resourceKey"), _sender(request))
        else:
            return _failure(NOT_HANDLED, visible=self._profile.unhandled_visible)
        return success() if applied else failure(SERVER_ERROR, SERVER_ERROR, REFUSED)  # success would mean: applied


def _sender(request: Request) -> str | None:
    """The member that sends the request, where it says so: no release does."""
    return request.headers.get(SENDER_HEADER)


def _needed(value: T | None, name: str) -> T:
    if value is None:
        raise MalformedRequestError(f"the field '{name}' is missing")
    return value


def _content(data: DistroDataFields) -> Json:
    try:
        found = read_json(_needed(data.content, "content"))
    except ValueError as error:
        raise MalformedRequestError(f"the content cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise MalformedRequestError("the content is no JSON object")
    return found


def _verified(content: Json) -> tuple[str, int]:
    """(client id, revision) of a VERIFY."""
    try:
        return str(_needed(content.get("clientId"), "clientId")), int(content.get("revision", 0))
    except (TypeError, ValueError, OverflowError) as error:
        raise MalformedRequestError(f"the revision is no number: {error}") from error


def _failure(message: str, *, visible: bool) -> Json:
    """Where resultCode stays 200 the sender believes in a success (D5, D6)."""
    return failure(SERVER_ERROR if visible else 200, SERVER_ERROR, message)
