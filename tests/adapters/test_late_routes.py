"""Routes that are imported with the first request for one of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from http import HTTPStatus

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from hermes.adapters.http.late_routes import LateRoutes


class Loads:
    """Counts its loads, which must not happen in the thread of the event loop."""

    def __init__(self) -> None:
        self.count = 0
        self._loop_thread = threading.get_ident()

    def __call__(self) -> Callable[[], list[web.RouteDef]]:
        assert threading.get_ident() != self._loop_thread
        self.count += 1
        return lambda: [web.get("/late/{name}", self._greet), web.post("/form", self._greet)]

    async def _greet(self, request: web.Request) -> web.Response:
        return web.Response(text=request.match_info.get("name", "form"))


def client(loads: Loads, owns: Callable[[str], bool] = lambda _: True) -> TestClient[web.Request, web.Application]:
    async def early(_: web.Request) -> web.Response:
        return web.Response(text="early")

    app = web.Application()
    app.add_routes([web.get("/early", early)])
    app.router.register_resource(LateRoutes(loads, owns))
    return TestClient(TestServer(app))


async def test_early_route_loads_nothing() -> None:
    loads = Loads()
    async with client(loads) as session, session.get("/early") as response:
        assert await response.text() == "early"
    assert loads.count == 0


async def test_requests_at_the_same_time_load_once() -> None:
    loads = Loads()
    async with client(loads) as session:
        answers = await asyncio.gather(*(session.get(f"/late/{number}") for number in range(10)))
        assert [await answer.text() for answer in answers] == [str(number) for number in range(10)]
    assert loads.count == 1


async def test_unknown_path_and_wrong_method_are_refused() -> None:
    async with client(Loads()) as session:
        async with session.get("/nowhere") as response:
            assert response.status == HTTPStatus.NOT_FOUND
        async with session.get("/form") as response:
            assert response.status == HTTPStatus.METHOD_NOT_ALLOWED
            assert response.headers["Allow"] == "POST"


async def test_path_of_others_loads_nothing() -> None:
    loads = Loads()
    async with client(loads, lambda path: path.startswith("/ui/")) as session, session.get("/late/x") as response:
        assert response.status == HTTPStatus.NOT_FOUND
    assert loads.count == 0


async def test_failed_load_is_tried_again() -> None:
    loads = Loads()
    fails = [True]

    def load() -> Callable[[], list[web.RouteDef]]:
        if fails and fails.pop():
            raise ImportError
        return loads()

    app = web.Application()
    app.router.register_resource(LateRoutes(load))
    async with TestClient(TestServer(app)) as session:
        async with session.get("/late/x") as response:
            assert response.status == HTTPStatus.INTERNAL_SERVER_ERROR
        async with session.get("/late/x") as response:
            assert await response.text() == "x"
