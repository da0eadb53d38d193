"""Style sheet, scripts and icon of the pages, served from memory."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

from aiohttp import web

from hermes.domain.values import dataclass
from hermes.web.page_kit import HEADERS

FOLDER = Path(__file__).parent.parent / "assets"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    body: bytes
    media_type: str
    tag: str


class AssetRoute:
    def __init__(self) -> None:
        self._assets: dict[str, Asset] = {}

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/ui/assets/{name}", self.get)]

    async def get(self, request: web.Request) -> web.Response:
        self._assets = self._assets or await asyncio.to_thread(_read)
        asset = self._assets.get(request.match_info["name"])
        if asset is None:
            raise web.HTTPNotFound
        headers = {**HEADERS, "Cache-Control": "no-cache", "ETag": asset.tag}
        if request.headers.get("If-None-Match") == asset.tag:
            return web.Response(status=304, headers=headers)
        return web.Response(body=asset.body, content_type=asset.media_type, charset="utf-8", headers=headers)


def _read() -> dict[str, Asset]:
    found = {}
    for file in FOLDER.iterdir():
        if file.suffix in _TYPES:
            body = file.read_bytes()
            tag = f'"{hashlib.sha256(body).hexdigest()[:24]}"'
            found[file.name] = Asset(body=body, media_type=_TYPES[file.suffix], tag=tag)
    return found
