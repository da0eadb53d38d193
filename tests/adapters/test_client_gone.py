"""A client that leaves while the server writes to it is no error of the server."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from aiohttp.client_exceptions import ClientConnectionResetError
from aiohttp.test_utils import make_mocked_request

from hermes.adapters.http.service import answer_problems


class _Transport(asyncio.Transport):
    def is_closing(self) -> bool:
        return True


async def _write(_: web.Request) -> web.StreamResponse:
    raise ClientConnectionResetError("Cannot write to closing transport")


async def test_write_to_a_closing_transport_is_passed_on() -> None:
    request = make_mocked_request("GET", "/v1/runs/run_1/events", transport=_Transport())
    with pytest.raises(ClientConnectionResetError):
        await answer_problems(request, _write)
