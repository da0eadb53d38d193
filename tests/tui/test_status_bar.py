"""Status lines: what fits, and what is shown while no daemon runs."""

from __future__ import annotations

import pytest

from hermes.tui.chat.figures import Figures, LinkState
from hermes.tui.view_model import Block, BlockKind, ChatView, OpenPrompt
from hermes.tui.widgets.status_bar import connection_text, doing_of, figure_text, short_number, state_of

FIGURES = Figures(model="gpt-5", tokens=12_345, cost_usd=0.5, context_tokens=500, context_window=1000, title="Plan")
PROMPT = OpenPrompt(call="c", name="terminal", question="?", choices=(), approval=True)


def line(width: int) -> str:
    return figure_text(FIGURES, state="ready", session="s1", own=True, width=width)


def test_figures_are_cut_at_whole_parts() -> None:
    assert line(100) == (
        "ready · gpt-5 · context 50% · 12k tokens · $0.5000 · own daemon, ends with this chat · Plan"
    )
    assert line(40) == "ready · gpt-5 · context 50% · 12k tokens"
    assert line(10) == "ready"


@pytest.mark.parametrize(
    ("view", "doing"),
    [
        (ChatView(session="s"), ""),
        (ChatView(session="s", turn="t"), "thinking"),
        (ChatView(session="s", turn="t", prompt=PROMPT), "waiting for your answer"),
        (
            ChatView(
                session="s",
                turn="t",
                blocks=(Block(key="t.c", kind=BlockKind.TOOL, name="terminal", is_open=True),),
            ),
            "running terminal",
        ),
    ],
)
def test_activity_names_what_runs(view: ChatView, doing: str) -> None:
    assert doing_of(view) == doing


def test_states_of_the_connection() -> None:
    assert state_of(ChatView(session="s"), LinkState.AWAY) == "away"
    assert connection_text(LinkState.ONLINE, own=False, problem="") == ""
    assert "kept" in connection_text(LinkState.AWAY, own=False, problem="")
    assert "starting a daemon" in connection_text(LinkState.CONNECTING, own=True, problem="refused")
    ended = connection_text(LinkState.CONNECTING, own=True, problem="", ended="hermes: the configuration is invalid")
    assert ended == "the daemon of this chat did not start: the configuration is invalid"


def test_large_numbers_are_short() -> None:
    assert [short_number(each) for each in (999, 9_999, 10_000, 2_500_000)] == ["999", "9,999", "10k", "2.5M"]
