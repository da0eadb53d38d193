"""Settings in force, and editing of those that can change while the daemon runs."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from hermes.services.setting_service import SettingView
from hermes.web.page_kit import LOGIN, PageKit, field

_MAX_VALUE = 10_000


class SettingPage:
    def __init__(self, kit: PageKit) -> None:
        self._kit = kit

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/ui/settings", self.show), web.post("/ui/settings", self.change)]

    async def show(self, request: web.Request) -> web.Response:
        return await self._page(request)

    async def change(self, request: web.Request) -> web.Response:
        self._kit.check_operator(request)
        name = field(request, "name")
        text = field(request, "value", most=_MAX_VALUE)
        report = await self._kit.parts.settings.change(name, text, who=request[LOGIN].who)
        return await self._page(request, changed=name, report=report)

    async def _page(self, request: web.Request, changed: str = "", report: Any = None) -> web.Response:
        text = request.query.get("q", "").strip().casefold()[:200]
        views = [each for each in await self._kit.parts.settings.all() if text in each.name]
        sections: dict[str, list[SettingView]] = {}
        for view in views:
            sections.setdefault(view.setting.section, []).append(view)
        return await self._kit.page(
            request,
            "settings.html",
            sections=sections,
            text=text,
            changed=changed,
            report=report,
            file=self._kit.parts.settings.file,
        )
