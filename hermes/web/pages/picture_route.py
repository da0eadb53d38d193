"""Pictures of messages, from the media store."""

from __future__ import annotations

import asyncio
from pathlib import Path

from aiohttp import web

from hermes.domain.media.reference import named_by, picture
from hermes.media.picture import PICTURE_TYPES
from hermes.web.page_kit import HEADERS, PageKit

_TYPES = {suffix: kind for kind, suffix in PICTURE_TYPES.items()}


class PictureRoute:
    def __init__(self, kit: PageKit) -> None:
        self._kit = kit

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/ui/media/{name:.+}", self.get)]

    async def get(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        kind = _TYPES.get(Path(name).suffix)
        if not named_by(picture(name)) or kind is None:
            raise web.HTTPNotFound
        try:
            data = await asyncio.to_thread((self._kit.parts.media / name).read_bytes)
        except OSError:  # deleted after media.keep_days
            raise web.HTTPNotFound from None
        cached = {"Cache-Control": "private, max-age=86400, immutable", "X-Content-Type-Options": "nosniff"}
        return web.Response(body=data, content_type=kind, headers={**HEADERS, **cached})
