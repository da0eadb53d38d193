"""Drawing of boxes and arrows as SVG that follows the light or dark scheme of its reader. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from html import escape

_STYLE = """
  text { font: 14px system-ui, sans-serif; fill: #1f2328; }
  .small { font-size: 12px; fill: #59636e; }
  .title { font-weight: 600; }
  rect { fill: #f6f8fa; stroke: #818b98; }
  .store { fill: #ddf4ff; stroke: #0969da; }
  .outside { fill: #fff8c5; stroke: #9a6700; }
  .danger { fill: #ffebe9; stroke: #cf222e; }
  .good { fill: #dafbe1; stroke: #1a7f37; }
  .group { fill: none; stroke-dasharray: 5 4; }
  path { fill: none; stroke: #59636e; stroke-width: 1.5; }
  .head { fill: #59636e; stroke: none; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .small { fill: #9198a1; }
    rect { fill: #212830; stroke: #656c76; }
    .store { fill: #12355b; stroke: #4493f8; }
    .outside { fill: #3b2e00; stroke: #d29922; }
    .danger { fill: #4b1113; stroke: #f85149; }
    .good { fill: #12331c; stroke: #3fb950; }
    .group { fill: none; }
    path { stroke: #9198a1; }
    .head { fill: #9198a1; }
  }
"""
_LINE = 17  # height of a line of text
_HEAD = 7


class Kind(StrEnum):
    PLAIN = "plain"
    STORE = "store"  # on disk
    OUTSIDE = "outside"  # people and other programs
    DANGER = "danger"
    GOOD = "good"
    GROUP = "group"


@dataclass(slots=True, kw_only=True)
class Drawing:
    width: int
    height: int
    about: str  # for people who do not see it
    _parts: list[str] = field(default_factory=list)

    def box(self, x: int, y: int, width: int, height: int, title: str, *lines: str, kind: Kind = Kind.PLAIN) -> None:
        self._parts.append(f'<rect class="{kind.value}" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>')
        if kind is Kind.GROUP:
            self.text(x + 12, y + 20, title, small=True)
            return
        top = y + (height - _LINE * (len(lines) + 1)) / 2 + 13
        centre = x + width / 2
        self._parts.append(
            f'<text class="title" x="{centre:g}" y="{top:g}" text-anchor="middle">{escape(title)}</text>'
        )
        for number, line in enumerate(lines, start=1):
            place = f'x="{centre:g}" y="{top + _LINE * number:g}"'
            self._parts.append(f'<text class="small" {place} text-anchor="middle">{escape(line)}</text>')

    def arrow(self, *points: tuple[int, int], label: str = "", at: tuple[int, int] | None = None) -> None:
        """Draw a line of horizontal and vertical parts, with a head at its end."""
        self.line(*points)
        (x0, y0), (x1, y1) = points[-2:]
        right, down = (x1 > x0) - (x1 < x0), (y1 > y0) - (y1 < y0)
        back_x, back_y = x1 - right * _HEAD * 1.4, y1 - down * _HEAD * 1.4
        side_x, side_y = down * _HEAD * 0.6, right * _HEAD * 0.6
        corners = f"{x1},{y1} {back_x + side_x:g},{back_y + side_y:g} {back_x - side_x:g},{back_y - side_y:g}"
        self._parts.append(f'<polygon class="head" points="{corners}"/>')
        if label:
            place = at or ((points[0][0] + points[1][0]) // 2, (points[0][1] + points[1][1]) // 2 - 6)
            self.text(*place, label, small=True, centred=True)

    def line(self, *points: tuple[int, int]) -> None:
        self._parts.append(f'<path d="M{" L".join(f"{x} {y}" for x, y in points)}"/>')

    def text(self, x: int, y: int, text: str, *, small: bool = False, centred: bool = False) -> None:
        kind = ' class="small"' if small else ""
        anchor = ' text-anchor="middle"' if centred else ""
        self._parts.append(f'<text{kind} x="{x}" y="{y}"{anchor}>{escape(text)}</text>')

    def svg(self) -> str:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}" role="img" aria-label="{escape(self.about)}">'
        )
        return "\n".join((head, f"<style>{_STYLE}</style>", *self._parts, "</svg>", ""))
