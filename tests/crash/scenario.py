"""One conversation over HTTP and one on a chat platform, with a daemon that a signal hits at a named point.

A turn with a tool runs in each. Depending on the point the signal hits the start (of a daemon that finds open turns),
the turns, a session that leaves memory, or the stop (while turns are open). Where the point is about leave, the tools
want some, and get it. Then a daemon is left alone with what there is, and the judge is asked.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import threading
import time
import urllib.error
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from tests.crash.people import ADMIN, PLATFORMS, SECRETS, unmarked
from tests.crash.survey import survey
from tests.support.daemon_process import DaemonProcess
from tests.support.judge import (
    Accepted,
    Acknowledged,
    Complaint,
    Crashed,
    Delivered,
    Effect,
    History,
    ReplyExpected,
    Sent,
    Shown,
    Uncertain,
    Violation,
    judge,
)
from tests.support.model_server import STALL, stream
from tests.support.scripted_model import ScriptedModel, check_valid
from tests.support.waiting import eventually

RECORDS: Final = (
    "MessageReceived",
    "TurnStarted",
    "ModelReplied",
    "Asked",
    "Answered",
    "ToolStarted",
    "ToolFinished",
    "TurnFinished",
    "MarkDelivered",
    "MarkedResumePending",
)
POINTS: Final = (
    "start: locked",
    "start: store open",
    "start: actors there",
    "start: serving",
    "start: ready",
    "http: received",
    "chat: received",
    "chat: taken, not confirmed",
    "turn: about to ask the model",
    "turn: in the middle of an answer",
    "turn: about to run a tool",
    "turn: a tool has run",
    "reply: about to be sent",
    "reply: sent",
    "reply: shown, not noted",
    "session: about to leave memory",
    "session: gone from memory",
    "stop: asked",
    "stop: intake closed",
    "stop: marked",
    "stop: drained",
    "stop: servers closed",
    "stop: actors gone",
    "stop: clean",
    "stop: over",
)  # of hermes.system.crash_point
ALL_POINTS: Final = (*(f"{when} {record}" for record in RECORDS for when in ("before", "after")), *POINTS)
CHAT_POINTS: Final = (  # where it matters which platform it is
    "chat: received",
    "chat: taken, not confirmed",
    "reply: about to be sent",
    "reply: sent",
    "reply: shown, not noted",
    "before MarkDelivered",
    "after MarkDelivered",
)
CHAT: Final = 7
_SHUTDOWN: Final = "shutdown: {drain_s: 1}\n"
_GONE: Final = (urllib.error.URLError, http.client.HTTPException, ConnectionError)
_ASIDE: Final = ("Hermes is stopping", "I was interrupted", "May I run this?", "⚙")  # not the reply of a turn


class CrashScenario:
    def __init__(
        self,
        point: str,
        strikes: signal.Signals,
        folder: Path,
        *,
        platform: str = "telegram",
        streams: bool = False,
        stopped_s: float = 30.0,
    ) -> None:
        """`streams`: the client over HTTP wants its answer bit by bit; leave is then asked for in the chat alone."""
        self.point = point
        self._name = platform
        self._streams = streams
        self._strikes = strikes
        self._stopped_s = stopped_s
        self._ran = folder / "ran"
        self._history = History(surveyed=True)
        self._during = "stop" if "MarkedResumePending" in point else point.split(":", maxsplit=1)[0]
        self._wants_leave = point.endswith(("Asked", "Answered"))
        then = f"rm -rf {folder}/nothing-there" if self._wants_leave else "echo made"
        self._http = f"run echo http >> {self._ran}; {'echo made' if streams else then}"
        self._chat = f"run echo chat >> {self._ran}; {then}"
        self._answers: dict[str, str] = {}  # that the client got
        self._said: list[tuple[str, str]] = []  # over HTTP, and in the chat
        self._stopped = False  # it was, for a while
        self._over = threading.Event()

    def run(self) -> list[Violation]:
        with ExitStack() as stack:
            self._model = stack.enter_context(ScriptedModel())
            self._platform = PLATFORMS[self._name]()
            stack.enter_context(self._platform)
            config = self._model.config + self._platform.config + _SHUTDOWN
            if self._during == "session":
                config += "sessions: {idle_after_s: 0.01}\n"
            self._daemon = DaemonProcess(config=config, environ=SECRETS)
            stack.enter_context(suppress_exit(self._daemon))
            stack.callback(self._over.set)
            self._go_through()
            assert self._stopped == (self._strikes is signal.SIGSTOP), "the point was not reached"
            self._finish()
            self._stop()
            found = list(survey(self._daemon.home))
            self._history.add(*found)
            self._take_down({each.inbound: each.turn for each in found if isinstance(each, Accepted)})
        return judge(self._history)

    # ------------------------------------------------------------ the blow

    def _go_through(self) -> None:
        armed = {"HERMES_TEST_CRASH": self.point, "HERMES_TEST_CRASH_SIGNAL": self._strikes.name[3:]}
        if self._during == "start":
            self._daemon.start()
            self._talk(stalled=True)
            self._daemon.kill()
            self._history.add(Crashed(at=time.monotonic()))
            self._model.on_request = lambda _: None
            watch = self._watch()
            with suppress(AssertionError):  # it does not get as far as being ready
                self._daemon.start(armed)
            watch.join(30)
        elif self._during == "stop":
            self._daemon.start(armed)
            self._talk(stalled=True)
            watch = self._watch()
            assert self._daemon.process is not None
            self._daemon.process.send_signal(signal.SIGTERM)
            watch.join(30)
            self._await_end()
            self._model.on_request = lambda _: None
        else:
            self._daemon.start(armed)
            watch = self._watch()
            self._talk(stalled=False)
            watch.join(30)
        if self._strikes is not signal.SIGSTOP or self._during == "stop":
            self._await_end()
            self._history.add(Crashed(at=time.monotonic()))
            self._daemon.start({"HERMES_TEST_CRASH": ""})

    def _watch(self) -> threading.Thread:
        """Waits until the signal has struck; a stopped process is left so for a while, then goes on."""
        watch = threading.Thread(target=self._see_it_strike, name=f"watch {self.point}")
        watch.start()
        return watch

    def _see_it_strike(self) -> None:
        if self._strikes is not signal.SIGSTOP:
            return
        process = eventually(lambda: self._daemon.process)
        with suppress(AssertionError):  # then the end of the test says that the point was not reached
            self._stopped = (
                eventually(lambda: _state(process.pid) in "TZ", within_s=60) and _state(process.pid) == "T"
            )
            time.sleep(self._stopped_s)
            # A message that was on its way when the process stopped has run into its timeout since.
            self._history.add(Uncertain(at=time.monotonic()))
            process.send_signal(signal.SIGCONT)

    def _await_end(self) -> None:
        if self._daemon.process is None:
            return
        code = self._daemon.process.wait(60)
        expected = {
            signal.SIGKILL: (-signal.SIGKILL,),
            signal.SIGTERM: (0,),
            signal.SIGSTOP: (0, 75),  # what was stopped for longer than a stop may take leaves by force
        }
        assert code in expected[self._strikes], f"exit code {code}: {self._daemon.stderr()[-1500:]}"
        self._daemon.kill()

    def _stop(self) -> None:
        """In order, however busy the machine is with the others."""
        assert self._daemon.process is not None
        self._daemon.process.send_signal(signal.SIGTERM)
        self._daemon.process.wait(60)
        self._daemon.kill()

    # ------------------------------------------------------------ the people

    def _talk(self, *, stalled: bool) -> None:
        if stalled:
            self._model.on_request = lambda _: stream(STALL)
        if self._wants_leave:
            self._platform.say(ADMIN, "/status")  # so that their private chat is known
            self._platform.until(lambda: bool(self._platform.replies(ADMIN)), within_s=30)
            threading.Thread(target=self._give_leave, name=f"leave {self.point}").start()
        self._say(self._http, self._chat)
        if stalled:
            eventually(lambda: len(self._model.requests) >= 2, within_s=60)

    def _give_leave(self) -> None:
        """In the admin's chat, once for each question that is shown."""
        while not self._over.wait(0.02):
            self._platform.press(ADMIN, "once")

    def _say(self, over_http: str, in_chat: str) -> None:
        now = time.monotonic()
        self._history.add(Sent(inbound=over_http, at=now), Sent(inbound=in_chat, at=now))
        self._said.append((over_http, in_chat))
        self._platform.say(CHAT, in_chat)
        self._client = threading.Thread(
            target=self._ask_until_answered, args=(over_http,), name=f"client {self.point}"
        )
        self._client.start()

    def _ask_until_answered(self, text: str) -> None:
        """As a patient client does: the same again, under the same key, until there is an answer."""
        key = f"key-{len(self._said)}"
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            with suppress(*_GONE, OSError):
                if (answer := self._ask(text, key)) is not None:
                    self._answers[text] = answer
                    return
            time.sleep(0.05)

    def _ask(self, text: str, key: str) -> str | None:
        body = {"model": "hermes", "stream": self._streams, "messages": [{"role": "user", "content": text}]}
        headers = {"X_Hermes_Session_Id": "s", "Idempotency_Key": key}
        answer = self._daemon.request("POST", "/v1/chat/completions", body, **headers)
        if answer.status != 200:
            return None
        if self._streams:
            return _streamed(answer.body)
        return self._ask("yes", "leave") if "pending" in answer.json()["hermes"] else answer.text

    def _hear(self) -> None:
        """What both are told."""
        self._client.join(130)
        assert len(self._answers) == len(self._said), "the client never got its answer"
        self._platform.until(lambda: len(set(map(unmarked, self._replies()))) >= len(self._said), within_s=60)

    def _finish(self) -> None:
        self._hear()
        if self._during == "session":  # they come back to conversations that are on disk only
            self._say("say more here", "say more there")
            self._hear()
        self._platform.until(lambda: not self._platform.unconfirmed, within_s=30)
        eventually(lambda: self._daemon.admin.get("/store")["outbox"] == 0, within_s=30)

    def _take_down(self, turns: dict[str, str]) -> None:
        history = self._history
        now = time.monotonic()
        for over_http, in_chat in self._said:
            history.add(Acknowledged(inbound=over_http, at=now), Acknowledged(inbound=in_chat, at=now))
            history.add(Delivered(to="client", turn=turns[over_http], text=self._answers[over_http]))
            history.add(ReplyExpected(to="chat", turn=turns[in_chat]))
        ran = self._ran.read_text().split() if self._ran.exists() else []
        history.add(*(Effect(call=line) for line in ran))
        for text in self._replies():
            asked = next((said for _, said in self._said if said == f"say {unmarked(text)}"), self._chat)
            marked = unmarked(text) != text
            if marked and not self._platform.may_repeat:
                history.add(Complaint(problem=f"{self._name} could have been asked whether this is there: {text}"))
            history.add(Delivered(to="chat", turn=turns[asked], text=unmarked(text), marked=marked))
        history.add(*(Complaint(problem=each) for each in self._platform.violations))
        for request in self._model.requests:
            check_valid(request["messages"])
            said = tuple(
                m["content"] for m in request["messages"] if m["role"] == "user" and "[Note" not in m["content"]
            )
            history.add(Shown(session=said[0], inbounds=said))

    def _replies(self) -> list[str]:
        """What the chat shows in the end, without what is said aside and without what is still growing."""
        return [
            text
            for text in self._platform.replies(CHAT)
            if not unmarked(text).startswith(_ASIDE) and not text.endswith("▌")
        ]


def _streamed(body: bytes) -> str | None:
    """What a stream said, if it was said to its end."""
    events = [line.removeprefix(b"data: ") for line in body.splitlines() if line.startswith(b"data: ")]
    if not events or events.pop() != b"[DONE]":
        return None
    chunks = [json.loads(each) for each in events]
    if any("error" in each for each in chunks):
        return None
    return "".join(each["choices"][0]["delta"].get("content") or "" for each in chunks if each["choices"])


def _state(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return "Z"


class suppress_exit:  # noqa: N801 - reads as what it does
    """The daemon is started by hand; whatever became of it, nothing is left of it in the end."""

    def __init__(self, daemon: DaemonProcess) -> None:
        self._daemon = daemon

    def __enter__(self) -> None:
        return None

    def __exit__(self, *about: object) -> None:
        if self._daemon.process is not None:
            with suppress(ProcessLookupError):
                os.kill(self._daemon.process.pid, signal.SIGCONT)
        self._daemon.__exit__(None, None, None)
