"""An observation that no possible state explains, and the texts of requests and views in it."""

from __future__ import annotations

from collections.abc import Iterable

from distro_model.clock.cluster import View
from distro_model.messages import Change, Request, text_of
from distro_model.rules.watching import Refusal


class Unexplained(Exception):  # noqa: N818 - an observation, not an error of the program
    """An observation that no possible state explains. `rule` names the rule of the model that contradicts it."""

    def __init__(
        self, rule: str, client: str | None, seen: str, expected: str, refusals: Iterable[Refusal] = ()
    ) -> None:
        self.rule, self.client, self.seen, self.expected = rule, client, seen, expected
        self.refusals = tuple(refusals)
        why = "".join(f"; {refusal}" for refusal in self.refusals)
        super().__init__(f"{seen}; the model expects {expected} (rule {rule}){why}")


def request_text(request: Request) -> str:
    if isinstance(request, Change):
        return f"{request} with {text_of(request.content)}"
    return str(request)


def view_text(view: View | None) -> str:
    return "unknown" if view is None else f"revision {view.revision} with {text_of(view.content)}"
