"""What the handlers of all pages share: the services, the login of a request, and rendering."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiohttp import web

from hermes.adapters.http.problem import Problem, refusal
from hermes.adapters.http.service import Service
from hermes.config.secret import Secret
from hermes.domain.source import Source
from hermes.domain.values import dataclass, replace
from hermes.ports.memory import Memories
from hermes.ports.storage import Journal
from hermes.services.keys import KeyService
from hermes.services.learning.skill_service import SkillService
from hermes.services.live_figures import LiveFigures
from hermes.services.log_reader import LogReader
from hermes.services.setting_service import SettingService
from hermes.web.login_book import Login, LoginBook
from hermes.web.login_limit import LoginLimit
from hermes.web.template_set import TemplateSet

LOGIN = web.RequestKey("login", Login)
FORM: web.RequestKey[Mapping[str, list[str]]] = web.RequestKey("form", dict)
COOKIE = web.RequestKey("cookie", str)  # that the form token of this request belongs to
FORM_FIELD = "form_token"
FORM_HEADER = "X-Hermes-Form-Token"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Referrer-Policy": "same-origin",  # with no-referrer, forms would be sent with `Origin: null`
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardParts:
    logins: LoginBook
    login_limit: LoginLimit
    api_key: Secret
    keys: KeyService
    figures: LiveFigures
    settings: SettingService
    logs: LogReader
    journal: Journal
    memories: Memories
    skills: SkillService
    media: Path  # directory of the media store

    def is_owner_key(self, given: str) -> bool:
        return hmac.compare_digest(_hash(given), _hash(self.api_key.reveal()))


class PageKit:
    def __init__(self, service: Service, parts: DashboardParts, templates: TemplateSet) -> None:
        self.service = service
        self.parts = parts
        self._templates = templates

    async def page(self, request: web.Request, template: str, *, status: int = 200, **context: Any) -> web.Response:
        text = await self._templates.render(template, {**self._context(request), **context})
        return web.Response(text=text, status=status, content_type="text/html", headers=HEADERS)

    async def fragment(self, request: web.Request, template: str, **context: Any) -> str:
        return await self._templates.render(template, {**self._context(request), **context})

    def _context(self, request: web.Request) -> dict[str, Any]:
        cookie = request.get(COOKIE, "")
        return {
            "form_token": self.parts.logins.form_token(cookie) if cookie else "",
            "is_operator": LOGIN in request and request[LOGIN].is_operator,
            "now": self.service.clock(),
            "path": request.path,
            "version": self.service.operations.version(),
        }

    def source(self, request: web.Request) -> Source:
        """Return the owner as the source of what this request asks for."""
        return replace(self.service.source(request), user=request[LOGIN].who)

    def check_operator(self, request: web.Request) -> None:
        """Refuse what only the terminal's owner may do, and the API key may not."""
        if not request[LOGIN].is_operator:
            message = "The API key does not allow this. Log in by the link that `hermes dashboard` prints."
            raise refusal(403, "operator_only", message)


def problem_response(templates: TemplateSet, problem: Problem, version: str) -> web.Response:
    text = templates.render_now("problem.html", {"problem": problem, "version": version})
    headers = {**HEADERS, **problem.headers}
    response = web.Response(text=text, status=problem.status, content_type="text/html", headers=headers)
    if problem.close:
        response.force_close()
    return response


def field(request: web.Request, name: str, *, most: int = 200) -> str:
    """Return a field of a form; empty if there is none."""
    values = request[FORM].get(name, [""])
    if len(values) != 1 or len(values[0]) > most or "\0" in values[0]:
        raise refusal(400, "invalid_value", f"{name} must be given once, with at most {most} characters.")
    return values[0]


def number_in_path(request: web.Request, name: str) -> int:
    """Return the number of a change in the path. Raises a refusal if it is none."""
    text = request.match_info[name]
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise refusal(404, "not_found", "There is no such change.")
    return int(text)


def cookie_name(request: web.Request) -> str:
    """Return the name of the login cookie. Cookies ignore the port, so that the name contains it."""
    address = request.transport.get_extra_info("sockname") if request.transport is not None else None
    return f"hermes_login_{address[1] if isinstance(address, tuple) else 0}"


def set_cookie(request: web.Request, response: web.Response, cookie: str) -> None:
    secure = request.headers.get("X-Forwarded-Proto", "") == "https"
    response.set_cookie(cookie_name(request), cookie, path="/", httponly=True, samesite="Strict", secure=secure)


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def see(path: str) -> web.Response:
    """Return a redirect after a form."""
    return web.Response(status=303, headers={"Location": path})
