"""Login by one-time link or by the API key, and logout."""

from __future__ import annotations

import re
import secrets

from aiohttp import web
from loguru import logger

from hermes.web.page_kit import COOKIE, LOGIN, PageKit, cookie_name, field, see, set_cookie

_MAX_SECRET = 500
_WRONG_LINK = (
    "This link does not work any more: a link logs in once, within 5 minutes, and ends with the daemon. "
    "Run `hermes dashboard` in a terminal for a new one."
)
_WRONG_KEY = "The key is wrong. It is in the file api.key of Hermes' home."
_NAMED_KEY = (
    "This is the key of another person or program. The dashboard is for the owner; this key works with the API."
)


_TOO_MANY = (
    "Too many wrong logins came from your address. The key is not checked for another {minutes} min. "
    "A link that `hermes dashboard` prints in a terminal works at any time."
)


class LoginPage:
    def __init__(self, kit: PageKit) -> None:
        self._kit = kit

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/ui/login", self.show),
            web.post("/ui/login", self.log_in),
            web.post("/ui/logout", self.log_out),
        ]

    async def show(self, request: web.Request) -> web.Response:
        """Show the form. The code of a link is sent by the form, so that a preview of the link does not use it up."""
        code, place = request.query.get("code", "")[:_MAX_SECRET], _local(request.query.get("next", ""))
        if code and self._kit.parts.logins.is_code(code):
            return await login_page(self._kit, request, code=code)
        if LOGIN in request:
            return see(place)
        return await login_page(self._kit, request, problem=_WRONG_LINK if code else "")

    async def log_in(self, request: web.Request) -> web.Response:
        """Log in. A code cannot be guessed, so that one from the terminal is taken in spite of the limit."""
        logins, limit, peer = self._kit.parts.logins, self._kit.parts.login_limit, request.remote or ""
        place = _local(field(request, "next", most=2000))
        code, key = field(request, "code", most=_MAX_SECRET), field(request, "key", most=_MAX_SECRET).strip()
        if code and logins.use_code(code):
            return self._logged_in(request, place, is_operator=True)
        if wait_s := limit.wait_s(peer):
            return await self._too_many(request, wait_s)
        if not code and self._kit.parts.is_owner_key(key):
            return self._logged_in(request, place, is_operator=False)
        limit.count(peer)
        if code:
            return await login_page(self._kit, request, problem=_WRONG_LINK, status=403)
        is_named = bool(key) and await self._kit.parts.keys.find(key) is not None
        logger.warning("dashboard: login from {} refused, {} key", peer, "named" if is_named else "wrong")
        return await login_page(self._kit, request, problem=_NAMED_KEY if is_named else _WRONG_KEY, status=403)

    async def _too_many(self, request: web.Request, wait_s: int) -> web.Response:
        problem = _TOO_MANY.format(minutes=-(-wait_s // 60))
        page = await login_page(self._kit, request, problem=problem, status=429)
        page.headers["Retry-After"] = str(wait_s)
        return page

    def _logged_in(self, request: web.Request, place: str, *, is_operator: bool) -> web.Response:
        self._kit.parts.logins.close(request[COOKIE])  # the browser forgets its cookie
        response = see(place)
        set_cookie(request, response, self._kit.parts.logins.open(is_operator=is_operator))
        logger.info("dashboard: login by {}", "link" if is_operator else "key")
        return response

    async def log_out(self, request: web.Request) -> web.Response:
        self._kit.parts.logins.close(request[COOKIE])
        response = see("/")
        response.del_cookie(cookie_name(request), path="/")
        logger.info("dashboard: logout")
        return response


async def login_page(
    kit: PageKit, request: web.Request, *, problem: str = "", status: int = 200, code: str = ""
) -> web.Response:
    """Return the form. A browser without a cookie gets one, which its form token belongs to."""
    cookie, is_new = request.get(COOKIE, ""), False
    if not cookie:
        request[COOKIE], is_new = secrets.token_urlsafe(24), True
    place = _local(request.query.get("next", ""))
    response = await kit.page(request, "login.html", status=status, code=code, next=place, problem=problem)
    if is_new:
        set_cookie(request, response, request[COOKIE])
    return response


def _local(place: str) -> str:
    """Return the path of a page of ours; the first page for anything else."""
    return place if re.fullmatch(r"/(?:ui/[!-\[\]-~]*)?", place) else "/"
