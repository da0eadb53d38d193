"""One conversation over HTTP and one on a chat platform, with a daemon that a signal hits at a named point.

A turn with a tool runs in each. Depending on the point the signal hits the start (of a daemon that finds open turns),
the turns, or the stop (while turns are open). Then a daemon is left alone with what there is, and the judge is asked.
"""

from __future__ import annotations

import http.client
import os
import signal
import threading
import time
import urllib.error
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from hermes.actors.courier import REPEATED
from hermes.crash_point import POINTS
from tests.crash.survey import survey
from tests.daemon_process import DaemonProcess, eventually
from tests.history import (
    Accepted,
    Acknowledged,
    Crashed,
    Delivered,
    Effect,
    History,
    Owed,
    Sent,
    Shown,
    Violation,
    judge,
)
from tests.model_server import STALL, stream
from tests.scripted_model import ScriptedModel, check_valid
from tests.telegram_server import TOKEN, TelegramServer

RECORDS: Final = ("MessageReceived", "TurnStarted", "ModelReplied", "ToolStarted", "ToolFinished", "TurnFinished")
ALL_POINTS: Final = (
    *(f"{when} {record}" for record in RECORDS for when in ("before", "after")),
    "before MarkedResumePending",
    "after MarkedResumePending",
    "after Discharge",
    *POINTS,
)
CHAT: Final = 7
_GONE: Final = (urllib.error.URLError, http.client.HTTPException, ConnectionError)
_NOTICES: Final = ("Hermes is stopping", "I was interrupted")


class Ordeal:
    def __init__(self, point: str, strikes: signal.Signals, folder: Path, *, stopped_s: float = 30.0) -> None:
        self.point = point
        self._strikes = strikes
        self._stopped_s = stopped_s
        self._ran = folder / "ran"
        self._history = History(surveyed=True)
        self._http = f"run echo http >> {self._ran}; echo made"
        self._chat = f"run echo chat >> {self._ran}; echo made"
        self._answer = ""
        self._said: threading.Thread | None = None

    def run(self) -> list[Violation]:
        with ExitStack() as stack:
            self._model = stack.enter_context(ScriptedModel())
            self._telegram = stack.enter_context(TelegramServer())
            config = (
                self._model.config
                + f'telegram: {{enabled: true, base_url: "{self._telegram.base_url}", allowed_users: ["{CHAT}"]}}\n'
                + "shutdown: {drain_s: 1}\n"
            )
            self._daemon = DaemonProcess(config=config, environ={"TELEGRAM_BOT_TOKEN": TOKEN})
            stack.enter_context(suppress_exit(self._daemon))
            self._go_through()
            self._finish()
            self._daemon.terminate()
            found = list(survey(self._daemon.home))
            self._history.add(*found)
            self._take_down({each.inbound: each.turn for each in found if isinstance(each, Accepted)})
        return judge(self._history)

    # ------------------------------------------------------------ the blow

    def _go_through(self) -> None:
        armed = {"HERMES_TEST_CRASH": self.point, "HERMES_TEST_CRASH_SIGNAL": self._strikes.name[3:]}
        during = "stop" if "MarkedResumePending" in self.point else self.point.split(":")[0]
        if during == "start":
            self._daemon.start()
            self._talk(stalled=True)
            self._daemon.kill()
            self._history.add(Crashed(at=time.monotonic()))
            self._model.on_request = lambda _: None
            watch = self._watch()
            with suppress(AssertionError):  # it does not get as far as being ready
                self._daemon.start(armed)
            watch.join()
        elif during == "stop":
            self._daemon.start(armed)
            self._talk(stalled=True)
            watch = self._watch()
            assert self._daemon.process is not None
            self._daemon.process.send_signal(signal.SIGTERM)
            watch.join()
            self._await_end()
            self._model.on_request = lambda _: None
        else:
            self._daemon.start(armed)
            watch = self._watch()
            self._talk(stalled=False)
            watch.join()
        if self._strikes is not signal.SIGSTOP or during == "stop":
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
            eventually(lambda: _state(process.pid) in "TZ", within_s=60)
            self._reached = True
            time.sleep(self._stopped_s)
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

    # ------------------------------------------------------------ the people

    def _talk(self, *, stalled: bool) -> None:
        if stalled:
            self._model.on_request = lambda _: stream(STALL)
        now = time.monotonic()
        self._history.add(Sent(inbound=self._http, at=now), Sent(inbound=self._chat, at=now))
        self._telegram.say(CHAT, CHAT, self._chat)
        self._said = threading.Thread(target=self._ask_until_answered, name=f"client {self.point}")
        self._said.start()
        if stalled:
            eventually(lambda: len(self._model.requests) >= 2, within_s=60)

    def _ask_until_answered(self) -> None:
        """As a patient client does: the same again, under the same key, until there is an answer."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            with suppress(*_GONE, OSError):
                answer = self._daemon.ask(self._http, session="s", Idempotency_Key="k")
                if answer.status == 200:
                    self._answer = answer.text
                    return
            time.sleep(0.05)

    def _finish(self) -> None:
        assert self._said is not None
        self._said.join(130)
        assert self._answer, "the client never got its answer"
        self._telegram.until(lambda: bool(self._replies()), within_s=60)
        self._telegram.until(lambda: self._telegram.unconfirmed == [], within_s=30)
        eventually(lambda: self._daemon.admin.get("/store")["outbox"] == 0, within_s=30)

    def _take_down(self, turns: dict[str, str]) -> None:
        history = self._history
        now = time.monotonic()
        history.add(Acknowledged(inbound=self._http, at=now), Acknowledged(inbound=self._chat, at=now))
        ran = self._ran.read_text().split() if self._ran.exists() else []
        history.add(*(Effect(call=line) for line in ran))
        history.add(Delivered(to="client", turn=turns[self._http], text=self._answer))
        history.add(Owed(to="chat", turn=turns[self._chat]))
        for text in self._replies():
            marked = _plain(text) != text
            history.add(Delivered(to="chat", turn=turns[self._chat], text=_plain(text), marked=marked))
        for request in self._model.requests:
            check_valid(request["messages"])
            said = tuple(
                m["content"] for m in request["messages"] if m["role"] == "user" and "[Note" not in m["content"]
            )
            history.add(Shown(session=said[0], inbounds=said))

    def _replies(self) -> list[str]:
        """What the chat shows in the end, without the notices and without what is still growing."""
        return [
            text
            for text in self._telegram.replies(CHAT)
            if not _plain(text).startswith((*_NOTICES, "⚙")) and not text.endswith("▌")
        ]


def _plain(text: str) -> str:
    """Without the warning that it may be a repeat."""
    return text.removeprefix(REPEATED.strip()).lstrip()


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
