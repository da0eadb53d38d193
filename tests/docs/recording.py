"""Recording of a terminal: an asciicast file, and an animated SVG that needs no player. Pure but for the clock."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.text import Text

COLUMNS = 100
ROWS = 26
PROMPT = "$ "
_MAX_IDLE_S = 1.6  # longer pauses are shortened in the picture; the asciicast says so to its player
_LAST_S = 6.0  # the end stays that long
_CHAR, _LINE, _PAD = 8.4, 19, 18
_STYLE = """\
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#e6edf3;
animation-duration:TOTAL;animation-timing-function:step-end;animation-iteration-count:infinite}
.p{fill:#7ee787}
.t{font-family:system-ui,sans-serif;fill:#9198a1;animation:none}
@media (prefers-reduced-motion:reduce){text{animation:none!important}}"""
_COLOURS = {1: "#ff7b72", 2: "#7ee787", 3: "#e3b341", 4: "#79c0ff", 5: "#d2a8ff", 6: "#56d4dd"}  # of the ANSI numbers


@dataclass(slots=True, kw_only=True)
class Recording:
    title: str
    events: list[tuple[float, str]] = field(default_factory=list)  # seconds since the start, output
    _started: float = field(default_factory=time.monotonic)

    def add(self, output: str) -> None:
        self.events.append((time.monotonic() - self._started, output.replace("\r\n", "\n")))

    def clear(self) -> None:
        self.add("\x1b[2J\x1b[H")

    def asciicast(self) -> str:
        header = {"version": 2, "width": COLUMNS, "height": ROWS, "title": self.title, "idle_time_limit": _MAX_IDLE_S}
        rows = [header, *([round(at, 3), "o", text.replace("\n", "\r\n")] for at, text in self.events)]
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)

    def svg(self) -> str:
        return _svg(self.title, list(_scenes(self.events)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    at: float
    row: int
    text: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    lines: list[_Line]
    until: float


def _scenes(events: list[tuple[float, str]]) -> Iterator[_Scene]:
    """Split at each cleared screen. A line appears with its first character."""
    now = last = 0.0
    lines: list[tuple[float, str]] = [(0.0, "")]
    for at, text in events:
        now += min(at - last, _MAX_IDLE_S)
        last = at
        if text.startswith("\x1b[2J"):
            yield _Scene(lines=list(_shown(lines)), until=now)
            lines = [(now, "")]
            continue
        first, *others = text.split("\n")
        lines[-1] = (lines[-1][0] if lines[-1][1] else now, lines[-1][1] + first)
        lines += [(now, each) for each in others]
    yield _Scene(lines=list(_shown(lines)), until=now + _LAST_S)


def _shown(lines: list[tuple[float, str]]) -> Iterator[_Line]:
    """Wrap lines at the width, and keep those that fit."""
    console = Console(width=COLUMNS, file=None)
    row = 0
    for at, raw in lines:
        plain = Text.from_ansi(raw.rpartition("\r")[2])
        for part in plain.wrap(console, COLUMNS, no_wrap=False) or [Text("")]:
            if row < ROWS:
                yield _Line(at=at, row=row, text=part)
            row += 1


def _svg(title: str, scenes: list[_Scene]) -> str:
    total = scenes[-1].until
    height = max(line.row for scene in scenes for line in scene.lines if line.text.plain.strip()) + 1
    size = (round(COLUMNS * _CHAR + 2 * _PAD), height * _LINE + 2 * _PAD + 24)
    styles, groups = [], []
    begin, number = 0.0, 0
    for scene in scenes:
        is_last = scene is scenes[-1]
        for line in scene.lines:
            if not line.text.plain.strip():
                continue
            number += 1
            shown, gone = 100 * max(line.at, begin) / total, 100 * scene.until / total
            end = "" if is_last else f"{gone:.2f}%,100%{{opacity:0}}"
            styles.append(f"@keyframes k{number}{{0%{{opacity:0}}{shown:.2f}%{{opacity:1}}{end}}}")
            y = _PAD + 24 + _LINE * (line.row + 1) - 5
            still = 1 if is_last else 0
            groups.append(
                f'<text y="{y}" style="opacity:{still};animation-name:k{number}" xml:space="preserve">'
                f"{''.join(_spans(line.text))}</text>"
            )
        begin = scene.until
    dots = "".join(f'<circle cx="{_PAD + 18 * n}" cy="18" r="5" fill="#484f58"/>' for n in range(3))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" width="{size[0]}" '
        f'height="{size[1]}" role="img" aria-label="{escape(title)}">'
    )
    style = _STYLE.replace("TOTAL", f"{total:.1f}s")
    frame = f'<rect width="{size[0]}" height="{size[1]}" rx="10" fill="#0d1117"/>{dots}'
    name = f'<text class="t" x="{size[0] / 2:g}" y="23" text-anchor="middle">{escape(title)}</text>'
    return "\n".join((head, "<style>", style, *styles, "</style>", frame, name, *groups, "</svg>", ""))


def _spans(text: Text) -> Iterator[str]:
    column = 0
    for start, end, style in _runs(text):
        part = text.plain[start:end]
        kind = ' class="p"' if start == 0 and part.startswith(PROMPT) else _kind(style)
        yield f'<tspan x="{_PAD + column * _CHAR:g}"{kind}>{escape(part)}</tspan>'
        column += cell_len(part)


def _runs(text: Text) -> Iterator[tuple[int, int, Style]]:
    """Return the parts of equal style."""
    plain = text.plain
    bounds = {0, len(plain)} | {edge for span in text.spans for edge in (span.start, span.end)}
    if plain.startswith(PROMPT):
        bounds.add(len(PROMPT))
    edges = sorted(edge for edge in bounds if edge <= len(plain))
    for start, end in pairwise(edges):
        styles = [
            span.style for span in text.spans if span.start <= start < span.end and isinstance(span.style, Style)
        ]
        yield start, end, Style.combine([Style(), *styles])


def _kind(style: Style) -> str:
    number = (style.color.number or 0) % 8 if style.color is not None else 0
    colour = f' fill="{_COLOURS[number]}"' if number in _COLOURS else ""
    return colour + (' font-weight="600"' if style.bold else "")
