"""Factory of the tool image_generate. Without a configured endpoint it is not offered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.app.factories.api_files import shelving
from hermes.app.factories.media import media_store
from hermes.config.log import redact
from hermes.config.platforms import PLATFORMS
from hermes.tools.image_generate import ImageDelivery, ImageSettings, image_tool
from hermes.tools.web.fetch import FetchLimits, download
from hermes.tools.web.web_fetch import WebSettings, guard_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.config.home import Home
    from hermes.config.settings import Config
    from hermes.tools.tool import Tool


def picture_tool(config: Config, home: Home, environ: Mapping[str, str]) -> Tool:
    """Raises ConfigError if the endpoint's key is missing."""
    limits = FetchLimits(body_bytes=config.media.max_file_mb << 20)

    async def downloaded(url: str) -> bytes:
        body, _ = await download(
            url, guard_for(WebSettings(allow_private_urls=config.web.allow_private_urls)), limits
        )
        return body

    delivery = ImageDelivery(
        put_aside=media_store(config, home).put_aside,
        shelve=shelving(config, home),
        download=downloaded,
        platforms=frozenset(name for name, entry in PLATFORMS.items() if entry.sends_files),
    )
    return image_tool(_settings(config, environ), delivery)


def _settings(config: Config, environ: Mapping[str, str]) -> ImageSettings | None:
    given = config.image_gen
    if not given.base_url:
        return None
    key = given.api_key(environ)
    if key is not None:
        redact(key)
    return ImageSettings(
        base_url=given.base_url,
        model=given.model,
        key=key.reveal() if key else "",
        size=given.size,
        timeout_s=given.timeout_s,
    )
