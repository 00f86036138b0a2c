"""The server of the explorer: one walk, or one recorded run, for one person, on loopback, behind a token.

A browser that opens the page with the token of the URL gets it as a cookie, and every other request needs that cookie.
Each form carries the token too, and a request from another origin is refused: browsers send the cookie to every port of
this machine, also from a page that another program serves there. A change of the walk is a POST and is answered with
the part of the page that changed; without JavaScript the same forms work and are answered with the whole page.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from aiohttp import web
from markupsafe import Markup

from distro_conformance.diagrams.svg import svg
from distro_conformance.errors import exit_code_of
from distro_conformance.extras import missing_extra
from distro_conformance.report.write import templates_of
from distro_conformance.ui.recorded import Recorded, opened, played
from distro_conformance.ui.stories import STORIES, Story, begin, meaning, next_story
from distro_conformance.ui.walk import Setting, Walk, grouped
from distro_conformance.verdict import UsageError
from distro_model.bounded.bounds import Bounds
from distro_model.mutants import MUTANTS
from distro_model.profiles import PROFILES

COOKIE = "distrocheck-ui"
BOUNDS_SHOWN = ("nodes", "clients", "changes", "crashes", "drops", "swallows", "in_flight")
BOUND_MAX = 9
TARGETS = ("embedded", "nacos:2.2.4", "mixed:2.2.4")
"""The targets on the page. A browser may name no command, path or address: other targets must match RUNNABLE."""
RUNNABLE = re.compile(r"embedded|(nacos|mixed):\d+(\.\d+)*")
ITEMS_SHOWN = 40
"""The newest items of the diagram; earlier ones are counted above it."""

_STATIC = Path(__file__).parent / "static"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Given = Mapping[str, str]
"""The content of a request: the parts of its path, and its form."""


class Explorer:
    """The routes. `token` is the secret of the URL."""

    def __init__(self, setting: Setting, file: Path | None = None) -> None:
        """`file`: a scenario or a trace to begin with. Raises the errors of `recorded.opened`."""
        self.token = secrets.token_urlsafe(16)
        self.walk = Walk.begin(setting)
        self.story = ""
        self._kept = ExitStack()
        self.recorded: Recorded | None = opened(file, self._kept) if file else None
        self.problem = ""
        self.text = ""
        self._busy = asyncio.Lock()
        self._pages = templates_of("distro_conformance.ui")

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._authenticated])
        app.add_routes(
            [
                web.get("/", self._page),
                web.get("/htmx.min.js", self._script),
                web.post("/take/{choice:\\d+}", self._walking(lambda walk, given: walk.take(int(given["choice"])))),
                web.post("/back", self._walking(lambda walk, _: walk.move(-1))),
                web.post("/forth", self._walking(lambda walk, _: walk.move(1))),
                web.post("/start", self._walking(lambda walk, _: walk.move(-len(walk.path)))),
                web.post("/find/{property}", self._walking(lambda walk, given: walk.find(given["property"]))),
                web.post("/restart", self._changing(self._restart)),
                web.post("/scenario", self._changing(self._write)),
                web.post("/story/{story}", self._changing(self._begin_story)),
                web.post("/model", self._changing(self._back_to_the_model)),
                web.post("/open", self._changing(self._open)),
                web.post("/play", self._changing(self._play)),
                web.post("/rows/{steps:-?\\d+}", self._along(lambda run, given: run.move(int(given["steps"])))),
                web.post("/row", self._along(lambda run, given: run.go(int(given.get("row") or 0)))),
                web.post("/fault", self._along(lambda run, _: run.to_next_fault())),
            ]
        )
        app.on_cleanup.append(self._close)
        return app

    async def _close(self, _: web.Application) -> None:
        self._kept.close()

    @web.middleware
    async def _authenticated(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        host = (request.host or "").rpartition(":")[0]
        if host not in ("127.0.0.1", "localhost", "[::1]"):  # a foreign host name that resolves to this machine
            raise web.HTTPForbidden(text="this page is served on loopback only")
        if request.headers.get("Origin", f"http://{request.host}") != f"http://{request.host}":
            raise web.HTTPForbidden(text="this request comes from another page")
        if request.method == "GET" and self._is_token(request.query.get("token")):
            granted = web.HTTPSeeOther("/")
            granted.set_cookie(COOKIE, self.token, httponly=True, samesite="Strict")
            raise granted
        if not self._is_token(request.cookies.get(COOKIE)):
            raise web.HTTPForbidden(text="open the address that 'distrocheck ui' printed: it carries the token")
        if request.method == "POST" and not self._is_token(str((await request.post()).get("token", ""))):
            raise web.HTTPForbidden(text="this form is not of this page: load the page again")
        return await handler(request)

    def _is_token(self, offered: str | None) -> bool:
        return secrets.compare_digest((offered or "").encode(errors="replace"), self.token.encode())

    async def _page(self, _: web.Request) -> web.Response:
        return self._answer("page.html.j2")

    async def _script(self, _: web.Request) -> web.FileResponse:
        return web.FileResponse(_STATIC / "htmx.min.js")

    def _changing(self, change: Callable[[Given], None]) -> Handler:
        """Handles one change at a time, in a thread. An error that the user can correct is shown on the page."""

        async def handle(request: web.Request) -> web.StreamResponse:
            form = {name: str(value) for name, value in (await request.post()).items()}
            async with self._busy:
                self.problem, self.text = "", ""
                try:
                    await asyncio.to_thread(change, {**form, **request.match_info})
                except Exception as error:
                    lacking = missing_extra(error) if isinstance(error, ModuleNotFoundError) else None
                    if lacking is None and exit_code_of(error) is None:
                        raise
                    self.problem = lacking or str(error)
            if "HX-Request" in request.headers:
                return self._answer("part.html.j2")
            raise web.HTTPSeeOther("/")

        return handle

    def _walking(self, step: Callable[[Walk, Given], Walk]) -> Handler:
        def change(given: Given) -> None:
            self.walk = step(self.walk, given)

        return self._changing(change)

    def _along(self, move: Callable[[Recorded, Given], Recorded]) -> Handler:
        def change(given: Given) -> None:
            try:
                self.recorded = self.recorded and move(self.recorded, given)
            except ValueError as error:
                raise UsageError(str(error)) from error

        return self._changing(change)

    def _restart(self, given: Given) -> None:
        self.walk, self.story, self.recorded = Walk.begin(setting_of(given, self.walk.setting)), "", None

    def _begin_story(self, given: Given) -> None:
        if given["story"] not in STORIES:
            raise web.HTTPNotFound
        self.walk, self.story, self.recorded = begin(given["story"]), given["story"], None

    def _back_to_the_model(self, _: Given) -> None:
        self.recorded = None

    def _open(self, given: Given) -> None:
        """Opens the file at the given path: a browser with the token may read every file that this process may read."""
        self.recorded = opened(Path(given.get("file", "").strip()).expanduser(), self._kept)

    def _play(self, given: Given) -> None:
        """Plays the walk so far, or the open scenario, on the requested target."""
        open_scenario = self.recorded.scenario if self.recorded else None
        target = given.get("target", "").strip() or "embedded"
        if not RUNNABLE.fullmatch(target):
            raise UsageError(
                "from the browser a run goes to embedded, nacos:VERSION or mixed:VERSION; for another target save the "
                "scenario and run 'distrocheck replay FILE --target TARGET'"
            )
        self.recorded = played(open_scenario or self.walk.scenario(), target, self._kept)

    def _write(self, _: Given) -> None:
        self.text = self.walk.scenario()

    def _story(self) -> Story | None:
        """The story, as long as the walk follows its path."""
        story, sought = STORIES.get(self.story), self.walk.sought
        return story if story and sought and sought.property_id == story.property_id else None

    def _answer(self, template: str) -> web.Response:
        walk, story = self.walk, self._story()
        diagram = walk.diagram() if self.recorded is None else self.recorded.diagram()
        hidden = max(0, len(diagram.items) - ITEMS_SHOWN)
        html = self._pages.get_template(template).render(
            walk=walk,
            recorded=self.recorded,
            story=story,
            next_story=next_story(self.story) if story else None,
            stories=STORIES,
            meaning=meaning(walk),
            groups=grouped(walk.choices()),
            standings=walk.standings(),
            diagram=Markup(svg(diagram.window(hidden, ITEMS_SHOWN))),
            problem=self.problem,
            text=self.text,
            profiles=list(PROFILES),
            mutants=list(MUTANTS),
            bounds_shown=BOUNDS_SHOWN,
            bound_max=BOUND_MAX,
            targets=TARGETS,
            token=self.token,
        )
        return web.Response(text=html, content_type="text/html", headers={"Cache-Control": "no-store"})


def setting_of(form: Mapping[str, str], now: Setting) -> Setting:
    """The setting in the form. Raises UsageError; bounds that the form does not show are unchanged."""
    numbers = {}
    for name in BOUNDS_SHOWN:
        text = form.get(name, "")
        if not text.isascii() or not text.isdigit() or int(text) > BOUND_MAX:
            raise UsageError(f"{name.replace('_', ' ')} takes a number from 0 to {BOUND_MAX}, not '{text}'")
        numbers[name] = int(text)
    try:
        bounds: Bounds = replace(now.bounds, **numbers)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return Setting(form.get("profile", now.profile), form.get("mutant") or None, bounds)
