"""Pages port: what a server for browsers beside the API provides, and how its errors look."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from aiohttp import web

from hermes.adapters.http.problem import Problem

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler

    from hermes.adapters.http.service import Service

ProblemPage = Callable[[Problem], web.Response]
PROBLEM_PAGE: web.RequestKey[ProblemPage] = web.RequestKey("problem_page")  # of a request for a page


class Pages(Protocol):
    """Pages for browsers, with logins of their own. Host is checked before."""

    def load(self, service: Service) -> Callable[[], list[web.RouteDef]]:
        """Import the pages, and return the function that makes their routes. Slow: call it in a thread."""

    def owns(self, path: str) -> bool:
        """Return whether requests for this path are admitted here, instead of by the API key."""

    async def prepare(self, request: web.Request) -> None:
        """Make errors of this request pages."""

    async def admit(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Check origin, login and form token, and answer."""
