"""Factory of the tool web_search. Without a configured provider it is not offered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.config.log import redact
from hermes.tools.web.web_search import WebSearchSettings, web_search_tool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.config.settings import Config
    from hermes.tools.tool import Tool


def search_tool(config: Config, environ: Mapping[str, str]) -> Tool:
    """Raises ConfigError if the provider's key or address is missing."""
    web = config.web
    if (provider := web.search) is None:
        return web_search_tool(None)
    key = web.search_key(environ)
    if key is not None:
        redact(key)
    settings = WebSearchSettings(
        provider=provider,
        base_url=web.search_base_url,
        key=key.reveal() if key else "",
        max_results=web.search_max_results,
        timeout_s=web.search_timeout_s,
    )
    return web_search_tool(settings)
