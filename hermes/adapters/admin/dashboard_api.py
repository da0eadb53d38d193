"""Admin API for the dashboard: a link that logs in once."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit, urlunsplit

from aiohttp import web

from hermes.adapters.http.problem import refusal
from hermes.adapters.http.service import Service, json_response

_EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - what the API listens on


class DashboardApi:
    def __init__(self, service: Service, login_code: Callable[[], str] | None) -> None:
        self._service = service
        self._login_code = login_code

    def table(self) -> list[tuple[web.RouteDef, str]]:
        return [(web.post("/dashboard/links", self.link), "Create a link that logs in to the dashboard once")]

    async def link(self, _request: web.Request) -> web.Response:
        address = str(self._service.operations.info().get("address", ""))
        if self._login_code is None or not address:
            raise refusal(409, "no_dashboard", "The dashboard is off (api.enabled, dashboard.enabled).")
        base = reachable(address)
        return json_response({"address": base, "link": f"{base}/ui/login?code={self._login_code()}"}, status=201)


def reachable(address: str) -> str:
    """Return an address that a browser on this machine can open."""
    parts = urlsplit(address)
    host = _EVERY_ADDRESS.get(parts.hostname or "")
    return address if host is None else urlunsplit(parts._replace(netloc=f"{host}:{parts.port}"))
