"""Greeting of an empty conversation: model, working directory, first keys, and the last conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text
from textual.widgets import Static

from hermes import __version__
from hermes.domain.values import dataclass
from hermes.tui.widgets.plain_text import age, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_TIPS: Final = (
    ("/", "commands"),
    ("@", "a file or a picture"),
    ("Ctrl-R", "earlier conversations"),
    ("F1", "all keys"),
)
_OFFLINE: Final = "offline"  # the built-in model


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    model: str = ""
    directory: str = ""
    recent: tuple[tuple[str, float], ...] = ()  # name and age in seconds


class Welcome(Static):
    DEFAULT_CSS = "Welcome { height: auto; padding: 1 1 0 1; display: none; } Welcome.open { display: block; }"

    def __init__(self) -> None:
        super().__init__(markup=False)
        self._greeting: Greeting | None = None

    def show(self, greeting: Greeting | None) -> None:
        """Show a greeting; None hides it."""
        if greeting != self._greeting:
            self._greeting = greeting
            self.set_class(greeting is not None, "open")
            if greeting is not None:
                self.update(greeting_text(greeting))


def greeting_text(greeting: Greeting) -> Text:
    text = Text()
    text.append("Hermes", "bold")
    text.append(f" {__version__}", "dim")
    text.append(f"\n{'model':<10}", "dim").append(one_line(greeting.model) or "-")
    if greeting.model == _OFFLINE:
        text.append(" (not an AI; `hermes setup` chooses a real model)", "dim")
    if greeting.directory:
        text.append(f"\n{'directory':<10}", "dim").append(one_line(greeting.directory))
    text.append("\n\n")
    for key, what in _TIPS:
        text.append(f"{key:<8}", "bold").append(f"{what}\n", "dim")
    if greeting.recent:
        text.append("\nLast conversations (hermes -r continues the first)\n", "dim")
        for name, seconds in greeting.recent:
            text.append(f"{age(seconds):>8}  ", "dim").append(f"{one_line(name, 60)}\n")
    text.right_crop()
    return text


def recent_of(sessions: Sequence[Mapping[str, Any]], now: float) -> tuple[tuple[str, float], ...]:
    named = ((str(each.get("title") or each.get("preview") or ""), each) for each in sessions)
    return tuple((name, now - float(each.get("active_at") or now)) for name, each in named if name)
