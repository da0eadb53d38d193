"""Diagrams of docs/concepts.md.

python -m tests.docs.diagrams
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.docs.drawing import Drawing, Kind

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"


def overview() -> Drawing:
    d = Drawing(
        width=760, height=300, about="People and programs reach sessions through adapters; the journal stores all"
    )
    for number, (title, line) in enumerate(
        (("Telegram, Slack", "chats"), ("OpenAI clients", "HTTP"), ("hermes", "terminal"))
    ):
        d.box(10, 20 + 90 * number, 150, 64, title, line, kind=Kind.OUTSIDE)
        d.arrow((160, 52 + 90 * number), (230, 52 + 90 * number))
    d.box(200, 4, 550, 288, "the daemon: one process", kind=Kind.GROUP)
    d.box(230, 30, 110, 240, "Adapters", "no state")
    for number in range(3):
        d.box(400, 30 + 66 * number, 150, 50, f"Session {number + 1}", "an actor")
        d.arrow((340, 55 + 66 * number), (400, 55 + 66 * number))
    d.box(400, 228, 340, 48, "Journal", "every record, on disk", kind=Kind.STORE)
    d.arrow((475, 212), (475, 228))
    d.box(610, 30, 130, 50, "Model", "a stream of text", kind=Kind.OUTSIDE)
    d.box(610, 96, 130, 50, "Tools", "in a sandbox")
    d.box(610, 162, 130, 50, "Outbox", "to chats")
    for y in (55, 121, 187):
        d.arrow((550, y), (610, y))
    d.line((580, 55), (580, 187))
    return d


def turn() -> Drawing:
    d = Drawing(
        width=760,
        height=250,
        about="A turn: message, model call, tool call, answer; each step is stored before it acts",
    )
    steps: tuple[tuple[str, ...], ...] = (
        ("Message", "stored, then", "acknowledged"),
        ("Model call", "streams text"),
        ("Tool call", "intent stored,", "then it runs"),
        ("Model call", "sees the result"),
        ("Answer", "stored, then", "delivered"),
    )
    for number, (title, *lines) in enumerate(steps):
        x = 10 + 150 * number
        d.box(x, 30, 130, 78, title, *lines)
        if number:
            d.arrow((x - 20, 69), (x, 69))
        d.arrow((x + 65, 108), (x + 65, 170))
    records = ("MessageReceived", "TurnStarted", "ToolStarted", "ToolFinished", "TurnFinished")
    d.box(10, 170, 730, 56, "", kind=Kind.STORE)
    for number, record in enumerate(records):
        d.text(75 + 150 * number, 203, record, centred=True)
    d.text(375, 244, "the journal, in this order", small=True, centred=True)
    d.arrow((525, 30), (525, 20), (375, 20), (375, 30), label="as often as the model asks", at=(450, 14))
    return d


def journal() -> Drawing:
    d = Drawing(
        width=760,
        height=240,
        about="The journal commits records of many sessions together; a fold rebuilds the state",
    )
    for number in range(3):
        d.box(10, 16 + 72 * number, 150, 54, f"Session {number + 1}", "next state + records")
        d.arrow((160, 43 + 72 * number), (250, 43 + 72 * number))
    d.box(250, 16, 150, 198, "Group commit", "one transaction,", "one sync", "for all that wait")
    d.arrow((400, 115), (470, 115))
    d.box(
        470,
        16,
        120,
        198,
        "Log",
        "1 message",
        "2 turn started",
        "3 tool started",
        "4 tool finished",
        "5 turn finished",
        kind=Kind.STORE,
    )
    d.arrow((590, 115), (640, 115), label="fold", at=(615, 106))
    d.box(640, 75, 110, 80, "State", "in memory,", "may be lost")
    return d


def restart() -> Drawing:
    d = Drawing(width=760, height=200, about="A kill in the middle of a turn, and the same turn after the start")
    d.box(10, 40, 320, 130, "first run", kind=Kind.GROUP)
    d.box(26, 76, 90, 64, "Message", "on disk", kind=Kind.STORE)
    d.box(140, 76, 90, 64, "Tool", "finished", kind=Kind.STORE)
    d.box(252, 76, 66, 64, "Model", "half")
    d.arrow((116, 108), (140, 108))
    d.arrow((230, 108), (252, 108))
    d.box(350, 76, 70, 64, "kill -9", kind=Kind.DANGER)
    d.box(440, 40, 310, 130, "next run: the same turn, attempt 2", kind=Kind.GROUP)
    d.box(456, 76, 84, 64, "Load", "open turns")
    d.box(560, 76, 80, 64, "Model", "again")
    d.box(660, 76, 76, 64, "Answer", kind=Kind.GOOD)
    for x in (420, 540, 640):
        d.arrow((x, 108), (x + (36 if x == 420 else 20), 108))
    told = "The finished tool does not run again. A tool that was running is reported as “no recorded outcome”."
    d.text(380, 192, told, small=True, centred=True)
    return d


def sandbox() -> Drawing:
    d = Drawing(width=760, height=260, about="Commands run inside a sandbox; leaving it waits for a person")
    d.box(10, 90, 120, 70, "Model", "asks for a tool", kind=Kind.OUTSIDE)
    d.arrow((130, 125), (190, 125))
    d.box(190, 80, 130, 90, "Rules", "inside?", "dangerous?", "blocked?")
    d.arrow((320, 100), (350, 100), (350, 50), (420, 50), label="inside", at=(385, 42))
    d.box(
        420,
        16,
        330,
        68,
        "Sandbox",
        "the conversation's directory, home and /tmp;",
        "listed hosts only",
        kind=Kind.GOOD,
    )
    d.arrow((320, 125), (420, 125), label="leaves it", at=(372, 118))
    d.box(420, 96, 150, 60, "Approval", "also over restarts")
    d.arrow((570, 126), (620, 126), label="yes", at=(594, 118))
    d.box(620, 96, 130, 60, "Outside", "as your user", kind=Kind.OUTSIDE)
    d.arrow((320, 150), (350, 150), (350, 200), (420, 200), label="blocked", at=(388, 192))
    d.box(420, 170, 330, 60, "Never runs", "the model gets the reason as its result", kind=Kind.DANGER)
    return d


def compression() -> Drawing:
    d = Drawing(width=760, height=210, about="A full session ends; its child continues from a summary")
    d.box(10, 30, 220, 120, "Session A: complete", "messages 1 to 400", "searchable for ever", kind=Kind.STORE)
    d.arrow((230, 90), (300, 90), label="full", at=(265, 82))
    d.box(300, 50, 120, 80, "Summary", "by a model")
    d.arrow((420, 90), (490, 90))
    d.box(
        490,
        30,
        260,
        120,
        "Session B: goes on",
        "first messages, summary,",
        "the latest messages, new ones",
        kind=Kind.GOOD,
    )
    d.arrow((120, 150), (120, 185), (620, 185), (620, 150), label="the id of A leads to B", at=(370, 178))
    return d


def processes() -> Drawing:
    d = Drawing(width=760, height=210, about="A shim keeps a background process while daemons come and go")
    d.box(10, 20, 200, 70, "Daemon, first run", "starts the process")
    d.box(280, 20, 200, 70, "no daemon", "stopped or killed", kind=Kind.DANGER)
    d.box(550, 20, 200, 70, "Daemon, next run", "finds it again", kind=Kind.GOOD)
    d.arrow((210, 55), (280, 55))
    d.arrow((480, 55), (550, 55))
    d.box(10, 130, 740, 56, "Shim and process", "run on; output and exit code go to disk", kind=Kind.STORE)
    d.arrow((110, 90), (110, 130))
    d.arrow((650, 130), (650, 90), label="output, exit code", at=(590, 116))
    return d


def outbox() -> Drawing:
    d = Drawing(
        width=760,
        height=240,
        about="An answer goes to the outbox with its turn, and is delivered until the platform confirms it",
    )
    d.box(10, 60, 150, 80, "Turn ends", "answer and message", "in one transaction", kind=Kind.STORE)
    d.arrow((160, 100), (220, 100))
    d.box(220, 60, 130, 80, "Outbox", "on disk", kind=Kind.STORE)
    d.arrow((350, 100), (420, 100), label="attempt", at=(385, 92))
    d.box(420, 60, 120, 80, "Platform", "Telegram, Slack", kind=Kind.OUTSIDE)
    d.arrow((540, 80), (610, 80), (610, 40), (640, 40), label="confirmed", at=(590, 32))
    d.box(640, 14, 110, 50, "Delivered", kind=Kind.GOOD)
    d.arrow(
        (480, 140),
        (480, 180),
        (285, 180),
        (285, 140),
        label="try later; look it up or mark a possible repeat",
        at=(385, 196),
    )
    d.arrow((540, 120), (610, 120), (610, 160), (640, 160), label="never", at=(590, 152))
    d.box(640, 134, 110, 54, "Dead letter", "kept whole", kind=Kind.DANGER)
    return d


DIAGRAMS: Mapping[str, Callable[[], Drawing]] = {
    each.__name__: each for each in (overview, turn, journal, restart, sandbox, compression, processes, outbox)
}


def write() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, draw in DIAGRAMS.items():
        (FOLDER / f"{name}.svg").write_text(draw().svg(), encoding="utf-8")


if __name__ == "__main__":
    write()
