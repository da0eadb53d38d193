"""Templates of the dashboard: loaded and compiled once, in a thread. Everything they print is escaped."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.web import display
from hermes.web.message_html import message_html

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent / "templates"


class TemplateSet:
    def __init__(self) -> None:
        self._environment: Environment | None = None
        self._loading = asyncio.Lock()

    async def load(self) -> None:
        if self._environment is None:
            async with self._loading:
                self._environment = await asyncio.to_thread(_environment)

    async def render(self, template: str, context: Mapping[str, Any]) -> str:
        """Render in a thread: a long conversation takes a while."""
        await self.load()
        return await asyncio.to_thread(self.render_now, template, context)

    def render_now(self, template: str, context: Mapping[str, Any]) -> str:
        """Render a short page. `load` must have run."""
        assert self._environment is not None
        text = self._environment.get_template(template).render(context)
        return text.encode("utf-8", "replace").decode()  # a lone surrogate of a message cannot be sent


def _environment() -> Environment:
    from jinja2 import DictLoader, Environment, StrictUndefined  # noqa: PLC0415 - for the first page only

    texts = {file.name: file.read_text("utf-8") for file in sorted(FOLDER.glob("*.html"))}
    environment = Environment(
        loader=DictLoader(texts), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        amount=display.amount,
        bytes=display.size,
        clock=display.clock,
        iso=display.iso,
        markdown=message_html,
        money=display.money,
        span=display.span,
        value=display.setting_value,
    )
    for name in texts:
        environment.get_template(name)
    return environment
