"""Client side of one session for plain chats: sends messages and commands, and follows turns.

Each turn is a view that events of its run change, as in the terminal interface.
"""

from __future__ import annotations

import json
import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hermes.cli.client import AdminError, LostError, send, session_path
from hermes.domain.errors import HermesError, NotRunningError
from hermes.domain.ids import RUN, SessionId, TurnId, TurnToken
from hermes.domain.values import dataclass, replace
from hermes.tui.view_model import ChatView, reduce, with_notice

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from hermes.cli.client import AdminClient
    from hermes.domain.text.server_event import RawEvent
    from hermes.tui.view_model import OpenPrompt

_STOPPING = "stopping"  # error code of a request that a stop of the daemon cut off
_CODES_WITH_RETRY_HINT = frozenset({"rate_limit_exceeded", "upstream_overloaded"})  # their messages mention /retry
_POLL_S = 0.5
_HINT_AFTER_S = 3.0  # of silence, then a notice explains the wait
_COMMAND = re.compile(r"/[a-z-]+(\s|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """Reply of the daemon to a slash command, and the turn that it started, if any."""

    ok: bool
    text: str
    turn: str
    choices: tuple[str, ...] = ()  # it asks back: repeat the command with one of these


class StoppedError(HermesError):
    """The turn was stopped by a person; this is not a failure."""


class TurnFailedError(HermesError):
    """The turn ended without an answer; the message is stored."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.suggests_retry = code in _CODES_WITH_RETRY_HINT


def is_command(text: str) -> bool:
    """Return whether the text is a slash command, and not a path."""
    return _COMMAND.match(text) is not None


class Conversation:
    def __init__(self, client: AdminClient, session: str, workdir: str | None = None) -> None:
        """`workdir` is the working directory of sessions started here; None uses the daemon's default."""
        self.view = ChatView(session=session)  # of the last turn
        self.turn = ""  # last turn, once the daemon has confirmed it
        self.end: dict[str, Any] = {}  # fields of the event that completed it
        self.notice = ""  # such as why this is a new session
        self.is_away = False  # no daemon runs, and the next one is waited for
        self._client = client
        self._run = ""
        self._last_id = ""  # of the events seen
        self._workdir = workdir
        self._workdir_sent_to = ""  # the last session whose directory was sent

    @property
    def session(self) -> str:
        """Return the session's current id."""
        return self.view.session

    # ------------------------------------------------------------ turns

    def begin(self) -> None:
        """Forget the last turn."""
        self.view = ChatView(session=self.session)
        self.turn, self.end, self.notice, self._last_id = "", {}, "", ""
        self.is_away = False

    def ask(self, text: Any, key: str) -> Generator[None]:
        """Send a message, a text or a list of messages, and follow its turn. With the same key it is stored once."""
        if "\0" in text:
            raise HermesError("the message contains a NUL character")
        try:
            self._send_workdir()
            body = {"input": text, "session_id": self.session}
            stored = self._client.post("/v1/runs", body, {"Idempotency-Key": key}, timeout_s=None)
        except LostError as error:
            raise LostError(
                "the connection was lost before the daemon confirmed the message: it may not be stored "
                f"(see: hermes show {self.session})"
            ) from error
        except AdminError as error:
            raise _while_stopping(error) from error
        self.turn, self._run = stored["turn_id"], stored["run_id"]
        self.notice = str(stored.get("notice") or "")
        self._continue_as(stored["session_id"])
        yield from self.follow()

    def watch(self, turn: str) -> Generator[None]:
        """Follow a turn that was started elsewhere, such as by a command."""
        self.turn, self._run = turn, TurnToken(session=SessionId(self.session), turn=TurnId(turn)).text(RUN)
        yield from self.follow()

    def _send_workdir(self) -> None:
        """Set the working directory before the first message of a session, whose prompt names it."""
        if self._workdir is not None and self._workdir_sent_to != self.session:
            self._client.post(f"{session_path(self.session)}/workdir", {"path": self._workdir})
            self._workdir_sent_to = self.session

    def follow(self) -> Generator[None]:
        """Follow the turn from its last known event to its end. Yields after each event, and every _POLL_S."""
        hint_at = time.monotonic() + _HINT_AFTER_S
        begun = False
        try:
            with self._client.follow(f"/v1/runs/{self._run}/events", self._last_id) as feed:
                for event in feed.poll(_POLL_S):
                    if event is not None:
                        self._take(event)
                        begun = begun or event.name != "run.accepted"
                    elif not begun and time.monotonic() > hint_at:
                        begun = True
                        self._explain_wait()
                    yield
                    if self.turn in self.view.ended:
                        return
        except LostError:  # reported below, as an end of the stream
            pass
        except AdminError as error:
            raise _while_stopping(error) from error
        raise LostError(f"the daemon stopped in the middle of the answer. {self.kept()}")

    def kept(self) -> str:
        """Return what happens to the turn while no daemon runs, and how to see its answer."""
        if self.view.prompt is not None:
            what = "The question is stored and waits for your answer"
        elif self.turn:
            what = "The message is stored and the turn resumes when a daemon runs again"
        else:
            what = "The message may not be stored"
        return (
            f"{what}. See the answer with: hermes show {self.session}; continue with: hermes chat -r {self.session}"
        )

    def _take(self, event: RawEvent) -> None:
        self._last_id = event.id
        fields = {"turn_id": self.turn, **json.loads(event.data)}
        match event.name:
            case "session":
                self._continue_as(fields["session_id"])
            case "run.failed":
                raise TurnFailedError(fields["error"]["message"], fields["error"]["code"])
            case "run.cancelled":
                raise StoppedError(fields["error"]["message"])
            case "run.completed":
                self.end = fields
        self.view = reduce(self.view, event.name, fields)

    def _continue_as(self, session: str) -> None:
        self.view = replace(self.view, session=session)

    def _explain_wait(self) -> None:
        """Add a notice if another turn of this session runs first."""
        try:
            session = self._client.get(session_path(self.session), tail=0)["session"]
        except HermesError:  # the answer will report it
            return
        running, name = session["running_turn"], session["id"]
        if running is None or running == self.turn:
            return
        if session["phase"] == "waiting":
            how = f"`hermes approve {name}`, `hermes deny {name}` or `hermes answer {name} TEXT`"
            self.add_notice(
                f"waiting: an earlier turn of this session needs an answer: {session['reason']}; use {how}"
            )
        else:
            since = max(0, round(time.time() - session["since"]))
            self.add_notice(
                f"waiting: a turn has been running for {since} s in this session; `hermes stop {name}` stops it"
            )

    def add_notice(self, text: str) -> None:
        self.view = with_notice(self.view, text)

    def stop(self, reason: str = "stopped by Ctrl-C") -> None:
        """Stop the turn, or remove it from the queue."""
        request = {"reason": reason} | ({"turn_id": self.turn} if self.turn else {})
        with suppress(AdminError):  # it was not running
            self._client.post(f"{session_path(self.session)}/stop", request)

    # ------------------------------------------------------------ questions and commands

    def pending(self) -> Mapping[str, Any] | None:
        """Return the open question of the session."""
        try:
            found: Mapping[str, Any] | None = self._client.get(f"/api{session_path(self.session)}").get("pending")
        except AdminError:  # there is no such session
            return None
        return found

    def is_settled(self, asked: OpenPrompt) -> bool:
        pending = self.pending()
        return pending is None or pending["call_id"] != asked.call

    def answer(self, asked: OpenPrompt, answer: str) -> None:
        send(self._client, self.session, "answer", {"answer": answer, "call_id": asked.call})

    def command(self, text: str) -> CommandResult:
        try:
            answer = send(self._client, self.session, "commands", {"text": text})
        except AdminError as error:
            if error.code != "session_not_found":
                raise
            answer = self._client.post("/api/commands", {"text": text})  # before the first message
        self._continue_as(answer.get("session_id") or self.session)
        return CommandResult(
            ok=answer.get("ok", True),
            text=str(answer.get("text") or ""),
            turn=answer.get("turn_id") or "",
            choices=tuple(map(str, answer.get("choices") or ())),
        )


def _while_stopping(error: AdminError) -> HermesError:
    """Treat a stopping daemon as none: the next one accepts the message."""
    return NotRunningError(str(error)) if error.code == _STOPPING else error
