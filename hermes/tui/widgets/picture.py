"""Picture in the conversation, drawn with half blocks: two pixels in a cell. Works in each terminal with colours.

Pillow is an extra. Without it, without colours, or if the file cannot be read, a line names the picture.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

from rich.color import Color
from rich.style import Style
from rich.text import Text
from textual.widgets import Static

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

_COLUMNS: Final = 60
_ROWS: Final = 16
_FORMATS: Final = ("PNG", "JPEG", "WEBP", "GIF")
_UPPER_HALF: Final = "▀"


class Picture(Static):
    DEFAULT_CSS = "Picture { height: auto; color: $text-muted; }"

    def __init__(self, path: Path) -> None:
        super().__init__(Text(f"[picture {path.name}]"), markup=False)
        self._path = path

    async def on_mount(self) -> None:
        if "NO_COLOR" not in os.environ:
            self.run_worker(self._draw())

    async def _draw(self) -> None:
        background = self.app.get_css_variables().get("surface", "#000000")
        columns = max(1, min(_COLUMNS, self.app.size.width - 8))
        drawn = await asyncio.to_thread(half_blocks, self._path, columns, _ROWS, background)
        if drawn is not None:
            self.update(drawn)


def half_blocks(path: Path, columns: int, rows: int, background: str) -> Text | None:
    """Return a picture that fits into these cells; None if it cannot be drawn. Blocks: it decodes the file."""
    try:
        from PIL import Image  # noqa: PLC0415 - an extra, and only pictures need it
    except ImportError:
        return None
    try:
        with Image.open(path, formats=_FORMATS) as image:
            image.draft("RGB", (columns * 2, rows * 4))
            shown = image.convert("RGBA")
            shown.thumbnail((columns, rows * 2))
            canvas = Image.new("RGBA", shown.size, background)
            canvas.alpha_composite(shown)
            return _text(canvas.convert("RGB"))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Image.DecompressionBombWarning):
        return None  # the file is gone, damaged, or too large to be decoded


def _text(image: Any) -> Text:
    pixels = image.load()
    text = Text()
    for y in range(0, image.height, 2):
        for x in range(image.width):
            lower = Color.from_rgb(*pixels[x, y + 1]) if y + 1 < image.height else None
            text.append(_UPPER_HALF, Style(color=Color.from_rgb(*pixels[x, y]), bgcolor=lower))
        text.append("\n")
    text.right_crop()
    return text
