"""Latency that the daemon adds when 500 people write in one burst, and then one after the other.

The daemon is real. Telegram and Slack are the fakes of the tests, which record each delivered message, each call and
each exceeded limit. The model answers after a short delay.

- Inbound: from the delivery of a message to the model call.
- Outbound: from the last byte of the answer to the call that sends it, without the wait of our rate limiter. That
  allows 28 calls per second on Telegram. On Slack, in each of five workspaces, it allows a burst of twenty messages
  and then one every 0.15 s.
- Acknowledgement on Slack: from the delivery of an envelope to its acknowledgement.
"""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from aiohttp import web

from bench.harness import memory_mb
from hermes.adapters.slack import rate_limiter as slack_pace
from hermes.adapters.telegram import rate_limiter as telegram_pace
from tests.support import slack_server, telegram_server
from tests.support.daemon_process import DaemonProcess
from tests.support.slack_server import SlackServer
from tests.support.telegram_server import TelegramServer

CHATS = 500
STEADY_EVERY_S = 0.045
ANSWER_AFTER_S = 0.1
WITHIN_S = 120.0
WORKSPACES = 5
STALL_MS = 250


def run() -> dict[str, float]:
    figures: dict[str, float] = {}
    for name, people in {"telegram": TelegramPeople, "slack": SlackPeople}.items():
        figures |= {f"{name}_{figure}": value for figure, value in _measure(people).items()}
    return figures


def _measure(kind: Callable[[], People]) -> dict[str, float]:
    people = kind()
    with (
        tempfile.TemporaryDirectory(prefix="hermes-bench-", dir=Path.cwd()) as folder,
        Model() as model,
        people.server,
        _daemon(Path(folder, "h"), model, people) as daemon,
        Watch(daemon.address) as watch,
    ):
        assert daemon.process is not None
        before = memory_mb(daemon.process.pid)
        burst = Round(model, people, name="burst", every_s=0.0)
        held = memory_mb(daemon.process.pid)
        steady = Round(model, people, name="steady", every_s=STEADY_EVERY_S)
        after = memory_mb(daemon.process.pid)
        acknowledged = people.acknowledged_s()
        stalls = [int(ms) for ms in re.findall(r"held up the event loop for (\d+) ms", daemon.stderr())]
    breaches = [*people.server.violations, *(f"a stall of {ms} ms" for ms in stalls if ms > STALL_MS)]
    for breach in breaches[:5]:
        print(breach, file=sys.stderr)
    return {
        "burst_s": burst.took_s,
        "burst_in_p50_ms": burst.inwards_p50_ms,
        "burst_out_p50_ms": burst.outwards_p50_ms,
        **({"burst_ack_p99_ms": _p99(acknowledged[:CHATS]) * 1000} if acknowledged else {}),
        **({"ack_p99_ms": _p99(acknowledged[CHATS:]) * 1000} if acknowledged else {}),
        "in_p50_ms": steady.inwards_p50_ms,
        "out_p50_ms": steady.outwards_p50_ms,
        "slowest_look_ms": watch.slowest_s * 1000,
        "longest_stall_ms": max(stalls, default=0),
        "breaches": len(breaches),
        "kb_per_chat": (held - before) / CHATS * 1024,
        "second_round_mb": after - held,
    }


def _p99(values: Sequence[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]


def _daemon(home: Path, model: Model, people: People) -> DaemonProcess:
    config = (
        f'model: {{provider: openai, base_url: "{model.base_url}", name: bench, api_key_env: ""}}\n'
        f'{people.name}: {{enabled: true, base_url: "{people.server.base_url}", allowed_users: ["*"]}}\n'
        f"turns: {{max_concurrent: {CHATS}}}\n"
        "budget: {guest_day_tokens: 0}\n"
    )
    return DaemonProcess(config=config, environ=dict(people.secrets), home=home)


class Round:
    """One round: each person writes one message and gets one answer."""

    def __init__(self, model: Model, people: People, *, name: str, every_s: float) -> None:
        time.sleep(1.5)  # all messages are delivered, and the rate limits have recovered
        first_call = len(people.server.calls)
        spoken = people.server.count(people.speaks)
        began = time.monotonic()
        texts = {chat: f"{name} {chat}" for chat in range(1, CHATS + 1)}
        for chat, text in texts.items():
            time.sleep(max(0.0, began + chat * every_s - time.monotonic()))
            people.say(chat, text)
        people.server.until(lambda: people.server.count(people.speaks) >= spoken + CHATS, WITHIN_S)
        self.took_s = time.monotonic() - began
        given = people.given_out()
        self.inwards_p50_ms = statistics.median(model.asked[text] - given[text] for text in texts.values()) * 1000
        outwards = _added(people, people.server.calls[first_call:], lambda chat: model.answered[texts[chat]])
        self.outwards_p50_ms = statistics.median(outwards) * 1000


def _added(people: People, calls: list[Any], answered: Callable[[int], float]) -> Iterator[float]:
    """Yield the delay of each answer beyond what the rate limiter requires."""
    full_at: dict[str, float] = {}  # when a lane has its full burst again
    for call in calls:
        if call.method not in people.paced:
            continue
        spoken = people.spoken(call.about)
        full = full_at.get(spoken.lane, 0.0)
        if call.method == people.speaks:
            yield max(0.0, call.at - max(answered(spoken.chat), full - people.every_s * (people.at_once - 1)))
        full_at[spoken.lane] = max(call.at, full) + people.every_s


# ---------------------------------------------------------------- people and their platforms


class Spoken(NamedTuple):
    chat: int
    lane: str  # its calls share a rate limit


class People(ABC):
    name: str
    secrets: Mapping[str, str]
    server: Any  # a fake platform; all have the same methods except `say`
    speaks: str  # the call that sends a message
    paced: frozenset[str]  # the calls that share its rate limit
    every_s: float
    at_once: int = 1

    @abstractmethod
    def say(self, chat: int, text: str) -> None: ...

    @abstractmethod
    def given_out(self) -> Mapping[str, float]:
        """Return the time at which the daemon got each text."""

    def acknowledged_s(self) -> Sequence[float]:
        """Return the time until each acknowledgement; empty if the platform has none."""
        return ()

    @abstractmethod
    def spoken(self, about: Mapping[str, Any]) -> Spoken: ...


class TelegramPeople(People):
    name = "telegram"
    secrets: Mapping[str, str] = MappingProxyType({"TELEGRAM_BOT_TOKEN": telegram_server.TOKEN})
    speaks = "sendMessage"
    paced = frozenset({"sendMessage", "editMessageText", "sendChatAction"})
    every_s = telegram_pace.TelegramLimits().every_s

    def __init__(self) -> None:
        self.server = TelegramServer()
        self._said: list[str] = []

    def say(self, chat: int, text: str) -> None:
        self._said.append(text)
        self.server.say(chat, chat, text)

    def given_out(self) -> Mapping[str, float]:
        return dict(zip(self._said, (at for _, at in sorted(self.server.fetched.items())), strict=True))

    def spoken(self, about: Mapping[str, Any]) -> Spoken:
        return Spoken(int(about["chat_id"]), "")


class SlackPeople(People):
    name = "slack"
    secrets: Mapping[str, str] = MappingProxyType(
        {
            "SLACK_BOT_TOKEN": ",".join(f"{slack_server.BOT_TOKEN}-{n}" for n in range(WORKSPACES)),
            "SLACK_APP_TOKEN": slack_server.APP_TOKEN,
        }
    )
    speaks = "chat.postMessage"
    paced = frozenset({speaks})
    every_s = slack_pace.SlackLimits().every_s
    at_once = slack_pace.SlackLimits().at_once

    def __init__(self) -> None:
        self.server = SlackServer()
        self.server.tokens = {token: f"T{n}" for n, token in enumerate(self.secrets["SLACK_BOT_TOKEN"].split(","))}

    def say(self, chat: int, text: str) -> None:
        self.server.say(f"D{chat}", f"U{chat}", text, team=f"T{chat % WORKSPACES}")

    def given_out(self) -> Mapping[str, float]:
        found: dict[str, float] = {}
        self.server.change(
            lambda world: found.update(
                {each.payload["event"]["text"]: each.first_at for each in (*world.acknowledged, *world.waiting)}
            )
        )
        return found

    def acknowledged_s(self) -> Sequence[float]:
        found: list[float] = []
        self.server.change(lambda world: found.extend(each.waited_s for each in world.acknowledged))
        return found

    def spoken(self, about: Mapping[str, Any]) -> Spoken:
        chat = int(about["channel"].removeprefix("D"))
        return Spoken(chat, f"T{chat % WORKSPACES}")


class Watch:
    """Health probe: requests /health repeatedly and records the longest response time."""

    def __init__(self, address: str) -> None:
        self.slowest_s = 0.0
        self._url = f"{address}/health"
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="watch")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.05):
            began = time.monotonic()
            with urllib.request.urlopen(self._url, timeout=20) as answer:
                answer.read()
            self.slowest_s = max(self.slowest_s, time.monotonic() - began)


class Model:
    """Model that echoes the message after a short delay and records the time of request and answer."""

    def __init__(self) -> None:
        self.base_url = ""
        self.asked: dict[str, float] = {}
        self.answered: dict[str, float] = {}
        self._ready = threading.Event()
        self._stop: Callable[[], object] = lambda: None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="model")

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._thread.join()

    async def _serve(self) -> None:
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        self._stop = lambda: loop.call_soon_threadsafe(over.set)
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/v1/chat/completions", self._complete)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=CHATS).start()
        self.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        self._ready.set()
        await over.wait()
        await runner.cleanup()

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        at = time.monotonic()
        said = json.loads(await request.read())["messages"][-1]["content"]
        self.asked[said] = at
        await asyncio.sleep(ANSWER_AFTER_S)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        chunk = {"id": "c", "object": "chat.completion.chunk", "model": "bench"}
        said_again = {**chunk, "choices": [{"index": 0, "delta": {"content": f"you said {said}"}}]}
        usage = {"prompt_tokens": 100, "completion_tokens": 5}
        end = {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage}
        await response.write(b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in (said_again, end)))
        await response.write(b"data: [DONE]\n\n")
        self.answered[said] = time.monotonic()
        return response


if __name__ == "__main__":
    wanted = {"telegram": lambda: _measure(TelegramPeople), "slack": lambda: _measure(SlackPeople)}
    print(json.dumps(wanted[sys.argv[1]]() if len(sys.argv) > 1 else run(), indent=2))
