"""Pictures of the terminal interface and the live view, from the real programs and a real daemon.

    python -m tests.docs.screenshots

The model plays a part. A test cannot compare the pictures, because times and ids differ.
"""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

from textual.app import App
from textual.pilot import Pilot

from hermes.cli.inspection.live_source import DaemonSource
from hermes.system.random_id import new_session_id
from hermes.tui.chat.app import ChatApp, ChatOptions
from hermes.tui.chat.figures import LinkState
from hermes.tui.top.source import SampleWish
from hermes.tui.top.top_app import TopApp
from hermes.tui.widgets.question_menu import QuestionMenu
from tests.support.daemon_process import DaemonProcess
from tests.support.model_server import Reply
from tests.support.scripted_model import ScriptedModel, answered, calling
from tests.support.waiting import until
from tests.tui.screen_text import screen_text

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
SIZE = (104, 32)
TOP_SIZE = (104, 16)
_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_ANSWER = """\
The log names **one** cause: the disk of the build machine is full.

| when | what |
| --- | --- |
| 02:10 | the nightly build began |
| 02:14 | `No space left on device` |

This frees it, and I can do it for you:

```bash
rm -rf build/cache
```
"""
_ASKED = "Why did the nightly build fail?"
_LOG = "printf '02:10 build began\\n02:14 error: No space left on device\\n'"


def part(body: dict[str, Any]) -> Reply | None:
    """Answer of the model to each request."""
    messages = body["messages"]
    texts = [str(each["content"]) for each in messages if each["role"] == "user"]
    asked = texts[-1] if texts else ""
    has_result = messages[-1]["role"] == "tool"
    if _ASKED in asked:
        return answered(_ANSWER, 4200) if has_result else calling(4100, ("terminal", {"command": _LOG}))
    if "do it" in asked and not has_result:
        return calling(4300, ("terminal", {"command": "rm -rf build/cache"}))
    return None


async def shows(pilot: Pilot[Any], app: App[Any], text: str) -> None:
    await until(lambda: text in screen_text(app), within_s=60)
    await pilot.pause()


def save(app: App[Any], name: str, title: str) -> None:
    picture = _FONT.sub("", app.export_screenshot(title=title, simplify=True))
    (FOLDER / f"{name}.svg").write_text("\n".join(line.rstrip() for line in picture.splitlines()) + "\n", "utf-8")


async def chat(daemon: DaemonProcess) -> None:
    app = ChatApp(ChatOptions(data_dir=daemon.home, session=new_session_id(0.0)))
    async with app.run_test(size=SIZE) as pilot:
        await until(lambda: app.link.connection is LinkState.ONLINE, within_s=60)
        await pilot.press(*_ASKED, "enter")
        await shows(pilot, app, "ready")
        await shows(pilot, app, "rm -rf build/cache")
        save(app, "terminal", "hermes")
        await pilot.press(*"Please do it.", "enter")
        menu = app.screen.query_one(QuestionMenu)
        await until(lambda: menu.display, within_s=60)
        await pilot.pause(0.5)
        save(app, "terminal-approval", "hermes")


async def top(daemon: DaemonProcess) -> None:
    source = DaemonSource(daemon.admin)
    app = TopApp(source, wish=SampleWish(), every_s=0.5)
    async with app.run_test(size=TOP_SIZE) as pilot:
        await shows(pilot, app, "approve?")
        await pilot.pause(4)
        save(app, "top", "hermes top")


def main() -> int:
    with ScriptedModel() as model:
        model.on_request = part
        with DaemonProcess(config=model.config.replace("name: scripted", "name: gpt-5-mini")) as daemon:
            for text in ("say The backup is complete.", "say Your flight leaves at 9:40."):
                daemon.ask(text)

            asyncio.run(chat(daemon))
            asyncio.run(top(daemon))
    return 0


if __name__ == "__main__":
    sys.exit(main())
