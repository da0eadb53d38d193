"""List of sessions with filters and cursor, and full-text search."""

from __future__ import annotations

from urllib.parse import urlencode

from aiohttp import web
from markupsafe import Markup, escape

from hermes.adapters.http.problem import refusal
from hermes.adapters.openai_api.sessions import session_list
from hermes.adapters.openai_api.sessions.session_list import SessionFilter, cursor_of, read_cursor
from hermes.domain.errors import BadInputError
from hermes.domain.session.state import Phase
from hermes.ports.search import SearchFilter
from hermes.web.page_kit import PageKit
from hermes.web.session_names import names_of

_PAGE = 50
_HITS = 50
_DAYS = {"1": 1, "7": 7, "30": 30}
_MAX_TEXT = 500


class SessionListPage:
    def __init__(self, kit: PageKit) -> None:
        self._kit = kit

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/ui/sessions", self.show)]

    async def show(self, request: web.Request) -> web.Response:
        text = request.query.get("q", "").strip()[:_MAX_TEXT]
        if text:
            return await self._found(request, text)
        service, asked = self._kit.service, _asked(request)
        wanted = _filter(asked, service.clock())
        cursor = request.query.get("cursor", "")
        after = read_cursor(cursor) if cursor else None
        page = await session_list.read_page(service.sessions, wanted, after=after, limit=_PAGE)
        following = "" if page.after is None else "?" + urlencode({**asked, "cursor": cursor_of(page.after)})
        return await self._kit.page(
            request,
            "sessions.html",
            sessions=page.sessions,
            names=await names_of(self._kit, page.sessions),
            asked=asked,
            text="",
            following=following,
            is_later=bool(cursor),
            phases=list(Phase),
            hits=None,
        )

    async def _found(self, request: web.Request, text: str) -> web.Response:
        since = _since(request.query.get("days", ""), self._kit.service.clock())
        search = self._kit.service.search
        if search is None:
            raise refusal(501, "no_search", "This daemon has no search index.")
        found = await search.search(text, limit=_HITS, only=SearchFilter(since=since))
        percent = 100 if found.index is None else found.index.percent
        hits = [{"hit": hit, "snippet": _marked(hit.snippet)} for hit in found.hits]
        return await self._kit.page(
            request,
            "sessions.html",
            sessions=[],
            names={},
            asked=_asked(request),
            text=text,
            following="",
            is_later=False,
            phases=list(Phase),
            hits=hits,
            percent=percent,
        )


def _asked(request: web.Request) -> dict[str, str]:
    return {name: request.query.get(name, "")[:_MAX_TEXT] for name in ("platform", "phase", "title", "days")}


def _filter(asked: dict[str, str], now: float) -> SessionFilter:
    if asked["phase"] and asked["phase"] not in list(Phase):
        raise BadInputError("There is no such phase.", param="phase")
    return SessionFilter(
        platform=asked["platform"],
        phase=Phase(asked["phase"]) if asked["phase"] else None,
        title=asked["title"],
        since=_since(asked["days"], now),
    )


def _since(days: str, now: float) -> float | None:
    return now - _DAYS[days] * 86_400 if days in _DAYS else None


def _marked(snippet: str) -> Markup:
    """Return a snippet with its matches marked. All of its text is escaped."""
    from hermes.search.snippet import CLOSE, OPEN  # noqa: PLC0415 - its tables take a while; no start needs them

    text = str(escape(snippet))
    opened = text.replace(str(escape(OPEN)), "<mark>").replace(str(escape(CLOSE)), "</mark>")
    return Markup(opened)  # noqa: S704 - escaped above
