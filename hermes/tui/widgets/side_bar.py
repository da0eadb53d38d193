"""Side bar: background processes of the session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual.containers import VerticalScroll
from textual.widgets import Static

from hermes.tui.widgets.plain_text import duration, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual.app import ComposeResult


class SideBar(VerticalScroll, can_focus=False):
    DEFAULT_CSS = """
    SideBar { width: 34; background: $surface; padding: 0 1; display: none; scrollbar-size-vertical: 1; }
    SideBar.open { display: block; }
    """

    def __init__(self) -> None:
        super().__init__(id="side")
        self._text = Static(markup=False)

    def compose(self) -> ComposeResult:
        yield self._text

    def show(self, processes: Sequence[Mapping[str, Any]]) -> None:
        self._text.update(process_text(processes))


def process_text(processes: Sequence[Mapping[str, Any]]) -> Text:
    """Return the processes as text, running ones first."""
    shown = Text("Background processes\n", style="bold")
    ordered = sorted(processes, key=lambda each: (not each["running"], -float(each["started_at"])))
    for each in ordered[:30]:
        sign, style = ("●", "green") if each["running"] else ("○", "dim")
        shown.append(f"\n{sign} ", style)
        shown.append(one_line(str(each["command"]), 60), "not bold")
        shown.append(f"\n  {_state(each)}", "dim not bold")
    if not processes:
        shown.append("\nnone", "dim not bold")
    return shown


def _state(process: Mapping[str, Any]) -> str:
    age = duration(float(process["age_s"]))
    if process["running"]:
        ports = ", ".join(map(str, process.get("ports") or ()))
        return f"{process['id']}, {age}" + (f", port {ports}" if ports else "")
    return f"{process['id']}, exit {process['exit_code']}, {age}"
