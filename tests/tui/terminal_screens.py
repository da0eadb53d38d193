"""Writes the screenshots of docs/terminal.md: the terminal interface with scripted events.

python -m tests.tui.terminal_screens
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.pilot import Pilot

from hermes.tui.chat.app import ChatApp, ChatOptions
from hermes.tui.chat.figures import LinkState
from hermes.tui.chat.keys import LOCAL_COMMANDS
from hermes.tui.themes import LIGHT
from hermes.tui.widgets.input_area import InputArea
from tests.support.waiting import until
from tests.tui.fake_daemon import SESSION, FakeDaemon, session_json
from tests.tui.screen_text import screen_text

FOLDER = Path(__file__).parents[2] / "docs" / "terminal"
SIZE = (100, 32)
PICTURES = ("approval", "commands")  # of docs/terminal.md
ANSWER = """\
The retry loop never waits: `sleep_s` is read before the first failure sets it.

1. Move the assignment into the `except` block.
2. Double it up to a limit.

```python
for attempt in range(MAX_ATTEMPTS):
    try:
        return fetch(url)
    except TimeoutError:
        sleep_s = min(2 ** attempt, LIMIT_S)
        time.sleep(sleep_s)
```
"""
PATCH = """\
--- fetcher.py
+++ fetcher.py
@@ -12,4 +12,5 @@
     except TimeoutError:
-        time.sleep(sleep_s)
+        sleep_s = min(2 ** attempt, LIMIT_S)
+        time.sleep(sleep_s)
"""
PROCESS = {
    "id": "proc_4f2a",
    "command": "npm run dev",
    "running": True,
    "started_at": 1.0,
    "age_s": 754.0,
    "ports": [3000],
}
SCENES: dict[str, Callable[[FakeDaemon, ChatApp, Pilot[None]], Awaitable[None]]] = {}


def scene(function: Callable[[FakeDaemon, ChatApp, Pilot[None]], Awaitable[None]]) -> None:
    SCENES[function.__name__] = function


@scene
async def answer(daemon: FakeDaemon, app: ChatApp, pilot: Pilot[None]) -> None:
    await _ask(daemon, app, "Why does @fetcher.py hang after the first timeout?")
    _call(daemon, "c1", "read_file", "fetcher.py", "1 import time")
    daemon.emit("t1", "message.delta", text=ANSWER)
    daemon.emit("t1", "run.completed", stored="9", output=ANSWER)
    await until(lambda: not app.link.view.turn)


@scene
async def approval(daemon: FakeDaemon, app: ChatApp, pilot: Pilot[None]) -> None:
    daemon.processes = [PROCESS]
    await _ask(daemon, app, "Fix it, run the tests, and clean up the build directory.")
    _call(daemon, "c1", "patch", "fetcher.py", PATCH)
    await until(lambda: app.link.view.blocks[-1].result)
    _call(daemon, "c2", "terminal", "pytest -q tests/test_fetcher.py", "12 passed")
    asked = "rm -rf build\nIt deletes a directory tree."
    choices = ["once", "session", "always", "deny"]
    daemon.emit("t1", "approval.request", stored="8", call_id="c3", name="terminal", question=asked, choices=choices)
    await until(lambda: app.link.view.prompt is not None)
    await app.link.refresh()


@scene
async def commands(daemon: FakeDaemon, app: ChatApp, pilot: Pilot[None]) -> None:
    app.theme = LIGHT
    await _ask(daemon, app, "Summarise the open issues.")
    daemon.emit("t1", "tool.started", stored="3", call_id="c1", name="terminal", summary="gh issue list")
    daemon.emit(
        "t1", "tool.progress", call_id="c1", text="#41  Retry hangs after the first timeout\n#39  Typo in the docs"
    )
    await until(lambda: app.link.view.blocks[-1].text)
    await until(lambda: len(app.screen.query_one(InputArea).commands) > len(LOCAL_COMMANDS))
    await pilot.press("/", "s")


async def _ask(daemon: FakeDaemon, app: ChatApp, text: str) -> None:
    app.link.send(text)
    await until(lambda: daemon.is_followed("t1"))
    daemon.emit("t1", "run.started", stored="2")


def _call(daemon: FakeDaemon, call: str, name: str, title: str, result: str) -> None:
    stored = {"seq": len(daemon.messages) + 2, "turn": "t1", "role": "tool", "tool_call_id": call, "content": result}
    daemon.messages = [*daemon.messages, stored]
    daemon.emit("t1", "tool.started", stored="3", call_id=call, name=name, summary=title)
    daemon.emit("t1", "tool.completed", stored="4", call_id=call, name=name, outcome="ok", took_s=0.4)


async def record(name: str) -> tuple[str, str]:
    """Return the screen of a scene as text and as SVG."""
    daemon = FakeDaemon()
    daemon.session = session_json(title="Retry loop", context_tokens=180)
    daemon.commands = COMMANDS
    with tempfile.TemporaryDirectory() as home:
        app = ChatApp(ChatOptions(data_dir=Path(home), session=SESSION), daemon)
        async with app.run_test(size=SIZE) as pilot:
            await until(lambda: app.link.connection is LinkState.ONLINE)
            await SCENES[name](daemon, app, pilot)
            await until(lambda: SHOWN[name] in screen_text(app))
            await pilot.pause()
            return screen_text(app), _without_foreign_fonts(app.export_screenshot(title="hermes"))


def _without_foreign_fonts(picture: str) -> str:
    """Return the picture without fonts that a browser would fetch from another host."""
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    return picture.replace("Fira Code", "DejaVu Sans Mono, Menlo, Consolas")


# Text that is on the screen once the scene is complete.
SHOWN = {"answer": "ready", "approval": "proc_4f2a", "commands": "/steer"}
COMMANDS = [
    {"name": name, "aliases": [], "help": text, "choices": []}
    for name, text in {
        "sessions": "List recent conversations",
        "status": "Show a summary of this conversation's state",
        "steer": "Send a message that the running turn takes into account",
        "stop": "Stop the running turn and drop queued messages",
    }.items()
]


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in PICTURES:
        _, picture = asyncio.run(record(name))
        (FOLDER / f"{name}.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
