"""Earlier messages of a long conversation: loaded page by page when a person scrolls to the top."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hermes.tui.chat.app import ChatApp, ChatOptions
from hermes.tui.chat.figures import LinkState
from hermes.tui.widgets.transcript import MAX_BLOCKS, TranscriptView
from tests.support.waiting import until
from tests.tui.fake_daemon import SESSION, FakeDaemon, session_json
from tests.tui.screen_text import screen_text

MESSAGES = 450


class LongDaemon(FakeDaemon):
    """Daemon with a long conversation, whose messages come in pages."""

    def __init__(self) -> None:
        super().__init__()
        self.session = session_json()
        self.all: list[dict[str, Any]] = [
            {"seq": seq, "turn": f"t{seq // 2}", "role": "assistant" if seq % 2 else "user", "content": f"said {seq}"}
            for seq in range(MESSAGES)
        ]
        self.all[350] = {"seq": 350, "turn": "t1", "role": "tool", "tool_call_id": "c", "content": "its result"}
        call = {"id": "c", "function": {"name": "terminal", "arguments": "{}"}}
        self.all[349] |= {"turn": "t1", "tool_calls": [call]}

    async def call(self, method: str, path: str, **options: Any) -> Any:
        if not path.endswith("/messages"):
            return await super().call(method, path, **options)
        asked = options["params"]
        found = [each for each in self.all if each["seq"] < int(asked.get("before", MESSAGES))]
        page = found[-int(asked["limit"]) :]
        return {"messages": page, "has_more": len(page) < len(found)}


async def test_scrolling_to_the_top_loads_earlier_messages_in_their_place(tmp_path: Path) -> None:
    app = ChatApp(ChatOptions(data_dir=tmp_path, session=SESSION), LongDaemon())
    async with app.run_test(size=(60, 20)) as pilot:
        await until(lambda: app.link.connection is LinkState.ONLINE and "said 449" in screen_text(app))
        transcript = app.screen.query_one(TranscriptView)
        assert "earlier" not in screen_text(app)
        transcript.scroll_to(y=2, animate=False)
        await until(lambda: "said 351" in screen_text(app))
        await pilot.press("pageup")
        await until(lambda: app.link.view.earliest == 250)
        await until(lambda: transcript.scroll_y > 2)
        await until(lambda: "said 351" in screen_text(app))
        assert next(each for each in app.link.view.blocks if each.name == "terminal").result == "its result"
        while app.link.view.earliest is not None:
            before = app.link.view.earliest
            transcript.scroll_to(y=0, animate=False)
            await pilot.press("pageup")
            await until(lambda before=before: app.link.view.earliest != before or transcript.scroll_y > 0)  # type: ignore[misc]
        transcript.scroll_to(y=0, animate=False)
        await pilot.press("pageup")
        await until(lambda: re.search(r"said 0\b", screen_text(app)) or _scrolls_up(transcript))
        await pilot.press("ctrl+end")
        app.link.notice("a new one")
        await until(lambda: "a new one" in screen_text(app))
        app.link.notice("another one")
        await until(lambda: len(transcript.children) <= MAX_BLOCKS + 1)


def _scrolls_up(transcript: TranscriptView) -> bool:
    transcript.scroll_to(y=0, animate=False)
    transcript.want_earlier()
    return False
