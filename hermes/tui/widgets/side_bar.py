"""Side bar: subagents and background processes of the session. Enter shows one, x ends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual.binding import Binding
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from hermes.tui.widgets.plain_text import duration, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType

_MAX_SHOWN = 30
_HINT = "Ctrl-B, Enter: show, x: end"


class SideBar(Vertical):
    DEFAULT_CSS = """
    SideBar { width: 34; height: 1fr; background: $surface; padding: 0 1; display: none; }
    SideBar.open { display: block; }
    SideBar.whole { width: 1fr; }
    SideBar > .title { height: auto; text-style: bold; margin: 0 0 1 0; }
    SideBar > OptionList {
        height: 1fr; border: none; background: $surface; padding: 0; scrollbar-size-vertical: 1;
    }
    SideBar > .hint { height: auto; color: $text-muted; }
    SideBar > OptionList:blur > .option-list--option-highlighted { background: $surface; color: $foreground; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("x,delete", "end", "end it")]

    class Opened(Message):
        """The person wants to see a process or a subagent."""

        def __init__(self, row: Mapping[str, Any], *, is_agent: bool) -> None:
            super().__init__()
            self.row = row
            self.is_agent = is_agent

        @property
        def id(self) -> str:
            return str(self.row["id"])

    class EndWanted(Opened):
        """The person wants to end it."""

    def __init__(self) -> None:
        super().__init__(id="side")
        self._given: tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]] | None = None
        self._agents: Sequence[Mapping[str, Any]] = ()
        self._shown: list[Mapping[str, Any]] = []  # subagents, then processes
        self._title = Static(classes="title", markup=False)
        self._list = OptionList(markup=False, compact=True)
        self._hint = Static(classes="hint", markup=False)

    def compose(self) -> ComposeResult:
        yield self._title
        yield self._list
        yield self._hint

    def show(self, processes: Sequence[Mapping[str, Any]], agents: Sequence[Mapping[str, Any]] = ()) -> None:
        if self._given is not None and processes is self._given[0] and agents is self._given[1]:
            return
        chosen, self._given = self.chosen, (processes, agents)
        self._agents = agents[:_MAX_SHOWN]
        self._shown = [*self._agents, *ordered(processes)]
        self._title.update(_title(bool(agents), bool(processes)))
        self._list.clear_options()
        texts = [*map(agent_text, self._agents), *map(process_text, self._shown[len(self._agents) :])]
        self._list.add_options(Option(text, id=str(row["id"])) for text, row in zip(texts, self._shown, strict=True))
        ids = [each["id"] for each in self._shown]
        if ids:
            self._list.highlighted = ids.index(chosen["id"]) if chosen is not None and chosen["id"] in ids else 0
        self._hint.update(_HINT if ids else "none")

    @property
    def is_empty(self) -> bool:
        return not self._shown

    @property
    def chosen(self) -> Mapping[str, Any] | None:
        at = self._list.highlighted
        return self._shown[at] if at is not None and at < len(self._shown) else None

    def focus_list(self) -> None:
        if self._shown:
            self._list.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        row = self._shown[event.option_index]
        self.post_message(self.Opened(row, is_agent=event.option_index < len(self._agents)))

    def action_end(self) -> None:
        at = self._list.highlighted
        if self.chosen is not None and at is not None:
            self.post_message(self.EndWanted(self.chosen, is_agent=at < len(self._agents)))


def _title(agents: bool, processes: bool) -> str:
    return " and ".join(
        word for word, has in (("Subagents", agents), ("Background processes", processes or not agents)) if has
    )


def agent_text(agent: Mapping[str, Any]) -> Text:
    phase = agent.get("phase")
    sign, style = ("◌", "dim") if phase is None else ("?", "yellow") if phase == "waiting" else ("●", "green")
    shown = Text(f"{sign} ", style)
    shown.append(one_line(str(agent.get("task") or agent["id"]), 60), "not dim")
    shown.append(f"\n  {agent_state(agent)}", "dim")
    return shown


def agent_state(agent: Mapping[str, Any]) -> str:
    """Return what a subagent does, with its tokens."""
    if agent.get("phase") is None:
        return "waits for a place"
    if agent["phase"] == "waiting":
        doing = f"waits: {agent.get('reason') or 'an answer'}"
    else:
        doing = ", ".join(map(str, agent.get("doing") or ())) or str(agent["phase"]).replace("_", " ")
    return f"{one_line(doing, 40)}, {int(agent.get('tokens') or 0):,} tokens"


def ordered(processes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the processes to show: running ones first, then the newest."""
    return sorted(processes, key=lambda each: (not each["running"], -float(each["started_at"])))[:_MAX_SHOWN]


def process_text(process: Mapping[str, Any]) -> Text:
    sign, style = ("●", "green") if process["running"] else ("○", "dim")
    shown = Text(f"{sign} ", style)
    shown.append(one_line(str(process["command"]), 60), "not dim")
    shown.append(f"\n  {process_state(process)}", "dim")
    return shown


def process_state(process: Mapping[str, Any]) -> str:
    age = duration(float(process["age_s"]))
    if process["running"]:
        ports = ", ".join(map(str, process.get("ports") or ()))
        return f"{process['id']}, {age}" + (f", port {ports}" if ports else "")
    code = process.get("exit_code")
    end = str(process.get("reason") or "ended") if code is None else f"exit {code}"
    return f"{process['id']}, {end}, {age}"
