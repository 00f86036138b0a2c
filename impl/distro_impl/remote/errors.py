"""The errors that a node answers with, by their codes on the wire (docs/protocol #wire-errors)."""

from __future__ import annotations

from distro_protos import Json

SUCCESS = 200
CLIENT_DISCONNECT = -401
SERVER_ERROR = 500
INVALID_SERVER_STATUS = 300
UN_REGISTER = 301
NO_HANDLER = 302
INVALID_PARAM = 400
NO_RIGHT = 403
NOT_FOUND = 404
BAD_GATEWAY = 502


class NacosError(Exception):
    """Answered as `ErrorResponse` with this code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message

    def to_json(self) -> Json:
        return failure(SERVER_ERROR, self.code, self.message)


def success(**fields: object) -> Json:
    """The body of a successful response. The three families of SDKs look at three different fields of it."""
    return {"resultCode": 200, "errorCode": 0, **fields, "success": True}


def failure(result_code: int, error_code: int, message: str) -> Json:
    """The body of a response that reports a failure; `success` follows the result code, as it does upstream."""
    return {"resultCode": result_code, "errorCode": error_code, "message": message, "success": result_code == 200}
