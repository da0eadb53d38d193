"""Factory of the tool web_search."""

from __future__ import annotations

from hermes.app.factories.work.web_search import search_tool
from hermes.config.log import redacted
from hermes.config.settings import Config
from hermes.config.work_settings import WebConfig


def test_the_key_is_masked_in_logs() -> None:
    key = "exa-ordinary-looking-words"
    assert key in redacted(f"asked with {key}")
    search_tool(Config(web=WebConfig(search_provider="exa")), {"EXA_API_KEY": key})
    assert key not in redacted(f"asked with {key}")
