"""The answer to a request of a client, over gRPC, over HTTP, or by the model, in one form.

The code is the one that a client reads: that in the body if there is one (a beat is answered `{"code": 20404}`
with status 200), else the HTTP status; over gRPC the error code, else the result code.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from distro_model.actions import Action, HttpBeat, HttpLightBeat, OverHttp
from distro_model.messages import NO_SUCH_API, NOT_THE_OWNER, UNKNOWN_INSTANCE, Answer, CallResult
from distro_protos import Message

OK, BAD_REQUEST, NOT_FOUND, SERVER_ERROR = 200, 400, 404, 500
BEAT_TAKEN, BEAT_UNKNOWN = 10200, 20404
WRAPPED_OK, WRAPPED_UNKNOWN, WRAPPED_SERVER_ERROR = 0, 21003, 30000
"""In the wrapper of versions 2 and 3 of the HTTP API; the beat of version 2 has none."""
UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class ClientAnswer:
    """`code`: None when no node answered. `is_refused`: the request is not carried out. `detail`: the answer's own
    text."""

    code: int | None
    is_refused: bool
    detail: str = field(default="", compare=False)

    def __str__(self) -> str:
        return UNREACHABLE if self.code is None else str(self.code)

    @property
    def asks_to_register(self) -> bool:
        """A beat found no instance: part of the protocol, and no failure."""
        return self.code in (BEAT_UNKNOWN, WRAPPED_UNKNOWN)


def not_reached(why: str) -> ClientAnswer:
    return ClientAnswer(None, is_refused=True, detail=why)


def answer_over_http(status: int, text: str) -> ClientAnswer:
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    coded = body.get("code") if isinstance(body, dict) else None
    code = coded if isinstance(coded, int) else status
    is_done = status == OK and code in (OK, WRAPPED_OK, BEAT_TAKEN)
    return ClientAnswer(code, not is_done, f"{status} {text!r}")


def answer_over_grpc(reply: Message) -> ClientAnswer:
    code = reply.body.get("errorCode") or reply.body.get("resultCode", OK)
    return ClientAnswer(int(code), not reply.succeeded, str(reply))


def answer_of_model(action: Action, answer: Answer, later_api: str) -> ClientAnswer:
    """`later_api`: the version of the HTTP API that the release has beside version 1, v2 or v3."""
    api = later_api if isinstance(action, OverHttp) and action.by_v2 else "v1"
    is_refused = answer.result is not CallResult.SUCCESS
    return ClientAnswer(_code(action, answer, api), is_refused, answer.reason or str(answer.result))


def _code(action: Action, answer: Answer, api: str) -> int:
    is_beat = isinstance(action, HttpBeat | HttpLightBeat) and api != "v3"
    if answer.result is CallResult.SUCCESS:
        return BEAT_TAKEN if is_beat else WRAPPED_OK if api != "v1" else OK
    codes = {
        NOT_THE_OWNER: BAD_REQUEST,
        NO_SUCH_API: NOT_FOUND,
        UNKNOWN_INSTANCE: WRAPPED_UNKNOWN if api == "v3" else BEAT_UNKNOWN,
    }
    return codes.get(answer, SERVER_ERROR if api == "v1" else WRAPPED_SERVER_ERROR)
