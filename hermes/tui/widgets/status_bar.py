"""Lines at the bottom: what the agent does and for how long, and model, tokens, context, cost and state."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from rich.text import Text
from textual.widgets import Static

from hermes.tui.chat.figures import LinkState
from hermes.tui.view_model import BlockKind, Delivery
from hermes.tui.widgets.plain_text import duration, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.tui.chat.figures import Figures
    from hermes.tui.view_model import ChatView, PendingMessage

SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_STATES: Final = {
    Delivery.SENDING: "sending",
    Delivery.KEPT: "kept, sent when a daemon is back",
    Delivery.QUEUED: "queued, answered after this turn",
    Delivery.STEERING: "steering, added to this turn at its next step",
    Delivery.INTERRUPTING: "interrupting this answer",
}
_MAX_PENDING: Final = 5  # lines
_RECENT: Final = 10  # blocks; replies to commands can follow the open one
_FRAMES_A_SECOND: Final = 8
_IDLE: Final = "Enter sends · Alt-Enter new line · / commands · @ files · F1 help"


class ActivityLine(Static):
    """What happens now and for how long; else the most important keys."""

    DEFAULT_CSS = """
    ActivityLine { height: 1; padding: 0 1; color: $text-muted; }
    ActivityLine.away { height: auto; max-height: 4; color: $text-warning; }
    """

    def __init__(self) -> None:
        super().__init__("starting", markup=False)
        self._doing, self._since = "", 0.0

    def show(self, doing: str, away: str) -> None:
        """`away`: why nothing can be done, instead of what is done."""
        now = time.monotonic()
        if doing != self._doing:
            self._doing, self._since = doing, now
        self.set_class(bool(away), "away")
        _put(self, away or (activity(doing, now - self._since) if doing else _IDLE))


class PendingLines(Static):
    """Messages that wait."""

    DEFAULT_CSS = """
    PendingLines { height: auto; padding: 0 1; color: $text-muted; display: none; border-left: outer $secondary; }
    PendingLines.open { display: block; }
    """

    def show(self, pending: Sequence[PendingMessage]) -> None:
        self.set_class(bool(pending), "open")
        lines = [
            f"⋯ {one_line(each.text, 60) or 'message from elsewhere'} ({_STATES[each.state]})"
            for each in pending[:_MAX_PENDING]
        ]
        if len(pending) > _MAX_PENDING:
            lines.append(f"⋯ and {len(pending) - _MAX_PENDING} more")
        self.update(Text("\n".join(lines), overflow="ellipsis"))


class FigureLine(Static):
    DEFAULT_CSS = "FigureLine { height: 1; padding: 0 1; background: $panel; color: $text-muted; }"

    def show(self, text: str) -> None:
        _put(self, text)


def _put(line: Static, text: str) -> None:
    """Show a text; an unchanged one is not painted again."""
    if line.content != text:
        line.update(text)


def activity(doing: str, seconds: float) -> str:
    frame = SPINNER[int(seconds * _FRAMES_A_SECOND) % len(SPINNER)]
    return f"{frame} {doing} {duration(seconds)}  ·  Esc stops"


def doing_of(view: ChatView) -> str:
    """Return what the running turn does; empty if none runs."""
    if view.prompt is not None:
        return "waiting for your answer"
    if not view.turn:
        return ""
    last = next((each for each in reversed(view.blocks[-_RECENT:]) if each.is_open), None)
    if last is None:
        return "thinking"
    return f"running {one_line(last.name)}" if last.kind is BlockKind.TOOL else "writing"


def state_of(view: ChatView, connection: LinkState) -> str:
    if connection is not LinkState.ONLINE:
        return connection.value
    if view.prompt is not None:
        return "waiting for you"
    return "working" if view.turn else "ready"


def connection_text(connection: LinkState, *, own: bool, problem: str, ended: str = "") -> str:
    """Return what the activity line says about the daemon; empty if it runs. `ended`: why an own daemon did."""
    why = f" ({one_line(problem, 120)})" if problem else ""
    match connection:
        case LinkState.ONLINE:
            return ""
        case LinkState.CONNECTING if ended:
            return f"the daemon of this chat did not start: {one_line(ended.removeprefix('hermes: '), 300)}"
        case LinkState.CONNECTING if own:
            return "starting a daemon for this chat"
        case LinkState.CONNECTING:
            return f"connecting to the daemon{why}"
        case LinkState.AWAY:
            return "daemon away: what is stored continues when it is back; what you type is kept"


def figure_text(figures: Figures, *, state: str, session: str, own: bool, width: int) -> str:
    """Return the last line: the most important parts first, as many as fit."""
    parts = [state, figures.model or "no model yet"]
    if figures.context_percent is not None:
        parts.append(f"context {figures.context_percent}%")
    parts.append(f"{short_number(figures.tokens)} tokens")
    if figures.cost_usd:
        parts.append(f"${figures.cost_usd:.4f}" if figures.cost_usd < 1 else f"${figures.cost_usd:.2f}")
    parts.append("own daemon, ends with this chat" if own else "")
    parts.append(one_line(figures.title, 40) or session)
    shown = ""
    for part in filter(None, parts):
        longer = f"{shown} · {part}" if shown else part
        if len(longer) > max(width, 12):
            break
        shown = longer
    return shown or state[:width]


def short_number(number: int) -> str:
    if number < 10_000:
        return f"{number:,}"
    return f"{number / 1000:.0f}k" if number < 1_000_000 else f"{number / 1_000_000:.1f}M"
