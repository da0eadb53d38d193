"""Dashboard: pages for browsers on the API's port, admitted by login cookie, origin and form token."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote

from aiohttp import web

from hermes.adapters.http import body
from hermes.adapters.http.connection import connection_of
from hermes.adapters.http.pages import PROBLEM_PAGE, Pages
from hermes.adapters.http.problem import Problem, refusal
from hermes.adapters.http.service import Service
from hermes.domain.errors import BadInputError
from hermes.web.page_kit import (
    COOKIE,
    FORM,
    FORM_FIELD,
    FORM_HEADER,
    LOGIN,
    DashboardParts,
    PageKit,
    cookie_name,
    problem_response,
)
from hermes.web.template_set import TemplateSet

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler

HOME = "/"
PREFIX = "/ui/"
_OPEN = re.compile(r"/|/ui/login|/ui/assets/[^/]+")
_FORM_BYTES = 1 << 20
_FORM_TYPE = "application/x-www-form-urlencoded"


class Dashboard(Pages):
    def __init__(self, parts: DashboardParts) -> None:
        self._parts = parts
        self._templates = TemplateSet()
        self._service: Service | None = None

    def load(self, service: Service) -> Callable[[], list[web.RouteDef]]:
        from hermes.web.page_list import page_routes  # noqa: PLC0415

        self._service = service
        return partial(page_routes, PageKit(service, self._parts, self._templates))

    def owns(self, path: str) -> bool:
        return path == HOME or path.startswith(PREFIX)

    async def prepare(self, request: web.Request) -> None:
        await self._templates.load()
        if "text/html" in request.headers.get("Accept", ""):  # a script gets errors as JSON
            request[PROBLEM_PAGE] = self._problem_page

    def _problem_page(self, problem: Problem) -> web.Response:
        assert self._service is not None
        return problem_response(self._templates, problem, self._service.operations.version())

    async def admit(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if isinstance(request.match_info.http_exception, web.HTTPMethodNotAllowed):
            return await handler(request)  # 405: no page has this method, so there is nothing to protect
        is_change = request.method not in ("GET", "HEAD")
        if is_change:
            _check_origin(request)
        cookie = request.cookies.get(cookie_name(request), "")
        login = self._parts.logins.find(cookie) if cookie else None
        if login is None and not _OPEN.fullmatch(request.path):
            return self._to_login(request)
        request[COOKIE] = cookie
        if is_change:
            await self._check_form(request, cookie)
        if login is not None:
            request[LOGIN] = login
            connection_of(request).is_known()
        return await handler(request)

    def _to_login(self, request: web.Request) -> web.Response:
        if request.method == "GET" and PROBLEM_PAGE in request:
            place = quote(request.path_qs, safe="")
            return web.Response(status=303, headers={"Location": f"/ui/login?next={place}"})
        raise refusal(401, "not_logged_in", "You are not logged in. Open the page / to log in.")

    async def _check_form(self, request: web.Request, cookie: str) -> None:
        """Read a form and check its token. A request with a body of its own kind carries the token in a header."""
        given = request.headers.get(FORM_HEADER, "")
        request[FORM] = {}
        if request.content_type == _FORM_TYPE:
            assert self._service is not None
            read = await body.read(request, limit_bytes=_FORM_BYTES, timeout_s=self._service.body_timeout_s)
            try:
                request[FORM] = parse_qs(read.decode(), keep_blank_values=True, max_num_fields=200)
            except ValueError as error:
                raise BadInputError("The form is not valid.", code="invalid_body") from error
            given = given or request[FORM].get(FORM_FIELD, [""])[0]
        if not cookie or not self._parts.logins.is_form_token(cookie, given):
            message = "This form is out of date: go back, reload the page, and send it again. Nothing was changed."
            raise refusal(403, "wrong_form_token", message)


def _check_origin(request: web.Request) -> None:
    """Refuse a change that another site's page sent."""
    origin, site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site", "same-origin")
    own = {f"{scheme}://{request.headers.get('Host', '')}" for scheme in ("http", "https")}
    if (origin is not None and origin not in own) or site not in ("same-origin", "none"):
        raise refusal(403, "origin_not_allowed", "Another page sent this form. Nothing was changed.")
