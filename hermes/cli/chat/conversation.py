"""Client side of one session for `hermes chat`: submit messages and commands, follow answers.

An answer is a stream of facts (fact.py); the views decide how to show them.
"""

from __future__ import annotations

import json
import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from hermes.cli.chat.fact import (
    NoticeShown,
    QuestionShown,
    Quiet,
    Text,
    ToolCallBegan,
    ToolCallEnded,
    gist,
    of_event,
    of_stream,
)
from hermes.cli.client import AdminError, LostError, session_path
from hermes.domain.errors import HermesError, NotRunningError
from hermes.domain.ids import RUN, SessionId, TurnId, TurnToken
from hermes.domain.values import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping

    from hermes.cli.chat.fact import Fact
    from hermes.cli.client import AdminClient, Feed

_STOPPING = "stopping"  # error code of an answer or message that a stop of the daemon cut off
_CANCELLED = "cancelled"  # error code of a turn that was stopped
_CODES_WITH_RETRY_HINT = frozenset({"rate_limit_exceeded", "upstream_overloaded"})  # their messages mention /retry
_NO_SUCH_RUN = "run_not_found"
_CONFIRM_TIMEOUT_S = 10.0  # for a message to be on disk
_POLL_S = 0.5
_LAST_MESSAGES = 20  # of the transcript, to find a call that was just refused
_HINT_AFTER_S = 3.0  # of silence, then a notice explains the wait
_TURN_PREFIX = "chatcmpl-"  # a chunk's id is this and the turn id


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """Reply of the daemon to a slash command, and the turn that it started, if any."""

    ok: bool
    text: str
    turn: str | None
    choices: tuple[str, ...] = ()  # it asks back: repeat the command with one of these


class StoppedError(HermesError):
    """The turn was stopped by a person; this is not a failure."""


class TurnFailedError(HermesError):
    """The turn ended without an answer; the message is stored."""

    def __init__(self, message: str, code: str | None) -> None:
        super().__init__(message)
        self.suggests_retry = code in _CODES_WITH_RETRY_HINT


_COMMAND = re.compile(r"/[a-z-]+(\s|$)", re.IGNORECASE)


def is_command(text: str) -> bool:
    """Return whether the text is a slash command, and not a path."""
    return _COMMAND.match(text) is not None


def kept(session: str) -> str:
    """Return what happens to a turn whose daemon is gone, and how to see its answer."""
    return (
        "The message is stored and the turn resumes when a daemon runs again. "
        f"See the answer with: hermes show {session}; continue with: hermes chat -r {session}"
    )


class Conversation:
    def __init__(self, client: AdminClient, session: str, workdir: str | None = None) -> None:
        """`workdir` is the working directory of sessions started here; None uses the daemon's default."""
        self.session = session  # updated when the session continues under another id
        self.last: dict[str, Any] = {}  # metadata of the last answer
        self._client = client
        self._turn: str | None = None  # being answered
        self._workdir = workdir
        self._workdir_sent_to = ""  # the last session whose directory was sent
        self._begun: set[str] = set()  # calls that ran or needed approval

    @property
    def turn(self) -> str | None:
        """Return the turn that is being answered, once the daemon has confirmed it."""
        return self._turn

    def ask(self, text: str) -> Generator[Fact]:
        """Submit a message and yield the facts of its answer."""
        self._begin()
        with self._post(text) as feed:
            yield from self._answer_facts(feed.poll(_POLL_S))

    def _begin(self, turn: str | None = None) -> None:
        self.last = {"model": None, "finish_reason": None, "usage": None, "notice": None}
        self._turn = turn

    def _post(self, text: str) -> Feed:
        if "\0" in text:
            raise HermesError("the message contains a NUL character")
        self._send_workdir()
        body = {
            "model": "hermes",
            "messages": [{"role": "user", "content": text}],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        headers = {"X-Hermes-Session-Id": self.session, "X-Hermes-Events": "1"}  # it stays open for questions
        return self._client.follow("POST", "/v1/chat/completions", body, headers)

    def _send_workdir(self) -> None:
        """Set the working directory before the first message of a session, whose prompt names it."""
        if self._workdir is None or self._workdir_sent_to == self.session:
            return
        try:
            self._client.post(f"{session_path(self.session)}/workdir", {"path": self._workdir})
        except AdminError as error:
            if not error.is_unknown_address:  # an older daemon has one directory for all
                raise
        self._workdir_sent_to = self.session

    def _answer_facts(self, arrivals: Iterable[tuple[str, str] | None]) -> Generator[Fact]:
        data = ""
        hint_at: float | None = time.monotonic() + _HINT_AFTER_S
        try:
            for arrived in arrivals:
                if arrived is None:
                    yield Quiet()
                    if hint_at is not None and time.monotonic() > hint_at:
                        hint_at = None
                        yield from self._waiting_notice()
                    continue
                event, data = arrived
                for fact in self._facts(event, data):
                    hint_at = None
                    yield self._with_summary(fact)
        except LostError as error:
            raise self._lost(stored=bool(data)) from error
        except AdminError as error:
            raise _while_stopping(error) from error
        if data != "[DONE]":
            raise HermesError("the answer was cut off")

    def watch(self, turn: str) -> Generator[Fact]:
        """Yield the facts of a turn that was started elsewhere, such as by a command. Its text comes in one piece."""
        self._begin(turn)
        with self._client.follow("GET", f"/events?{urlencode({'session': self.session})}") as feed:
            asked = self.pending(turn)  # asked before the subscription
            if asked is not None:
                yield self._with_summary(asked)
            for arrived in feed.poll(_POLL_S):
                if arrived is None:
                    yield Quiet()
                    if (end := self._end_of(turn)) is not None:
                        yield Text(text=end)
                        return
                    continue
                event, fields = arrived[0], json.loads(arrived[1])
                if event == "session_moved":
                    self.session = fields["successor"]
                    break
                if fields.get("turn") != turn:
                    continue
                if event == "turn_answered":
                    self.last |= {name: fields[name] for name in ("model", "finish_reason", "usage")}
                    yield Text(text=fields["text"])
                    return
                if event == "turn_gave_up":
                    failure = fields["failure"]
                    raise _failed(failure["message"], failure["kind"])
                for fact in of_event(event, fields):
                    if not (isinstance(fact, QuestionShown) and asked is not None and fact.call == asked.call):
                        yield self._with_summary(fact)
        yield from self.watch(turn)

    def _end_of(self, turn: str) -> str | None:
        """Return the answer if the turn has ended unnoticed, else None."""
        run = TurnToken(session=SessionId(self.session), turn=TurnId(turn)).text(RUN)
        try:
            found = self._client.get(f"/v1/runs/{run}")
        except AdminError as error:
            if error.code != _NO_SUCH_RUN:
                raise
            if self.is_open(turn):
                return None
            raise HermesError(f"the turn is no longer in this session (see: hermes show {self.session})") from error
        if found["error"] is not None:
            raise _failed(found["error"]["message"], found["error"]["code"])
        if found["status"] != "completed":
            return None
        self.last["usage"] = found["usage"]
        return str(found["output"] or "")

    def pending(self, turn: str | None = None) -> QuestionShown | None:
        """Return the open question of this turn, or of any turn."""
        found = self._pending()
        if found is None or turn not in (None, found["turn_id"]):
            return None
        return QuestionShown(
            call=found["call_id"],
            name=str(found.get("name") or ""),
            question=str(found["question"]),
            choices=tuple(map(str, found["choices"])),
            approval=found["kind"] == "approval",
        )

    def is_open(self, turn: str) -> bool:
        """Return whether the turn runs or is queued."""
        view = self._client.get(f"/api{session_path(self.session)}")
        waiting = [each["turn_id"] for each in view.get("queue") or ()]
        return turn in (view["session"]["running_turn"], *waiting)

    def asking_turn(self) -> str | None:
        found = self._pending()
        return None if found is None else str(found["turn_id"])

    def _pending(self) -> Mapping[str, Any] | None:
        try:
            found: Mapping[str, Any] | None = self._client.get(f"/api{session_path(self.session)}").get("pending")
        except AdminError:  # there is no such session
            return None
        return found

    def is_settled(self, asked: QuestionShown) -> bool:
        pending = self._pending()
        return pending is None or pending["call_id"] != asked.call

    def stop(self, reason: str = "stopped by Ctrl-C") -> None:
        """Stop the turn that is being answered, or remove it from the queue."""
        request = {"reason": reason} | ({"turn_id": self._turn} if self._turn else {})
        with suppress(AdminError):  # it was not running
            self._client.post(f"{session_path(self.session)}/stop", request)

    def answer(self, asked: QuestionShown, answer: str) -> None:
        send(self._client, self.session, "answer", {"answer": answer, "call_id": asked.call})

    def command(self, text: str) -> CommandResult:
        try:
            answer = send(self._client, self.session, "commands", {"text": text})
        except AdminError as error:
            if error.code != "session_not_found":
                raise
            answer = self._command_without_session(text)
        self.session = answer.get("session_id") or self.session
        return CommandResult(
            ok=answer.get("ok", True),
            text=str(answer.get("text") or ""),
            turn=answer.get("turn_id"),
            choices=tuple(map(str, answer.get("choices") or ())),
        )

    def _command_without_session(self, text: str) -> Any:
        """Run a command before the first message: there is no session yet."""
        try:
            return self._client.post("/api/commands", {"text": text})
        except AdminError as error:
            if not error.is_unknown_address:
                raise
            raise HermesError("there is no session yet: your first message starts it") from error

    # ------------------------------------------------------------ events to facts

    def _with_summary(self, fact: Fact) -> Fact:
        """Add the summary of a call that was refused before it started, from the transcript."""
        if isinstance(fact, ToolCallBegan | QuestionShown):
            self._begun.add(fact.call)
        if not isinstance(fact, ToolCallEnded) or fact.outcome == "ok" or fact.call in self._begun or fact.summary:
            return fact
        try:
            transcript = self._client.get(session_path(self.session), tail=_LAST_MESSAGES)["transcript"]
        except HermesError:  # shown without a summary
            return fact
        made = (call for message in transcript for call in message.get("tool_calls") or ())
        arguments = next((call["function"]["arguments"] for call in made if call.get("id") == fact.call), "")
        return replace(fact, summary=gist(arguments))

    def _facts(self, event: str, data: str) -> Iterator[Fact]:
        if data == "[DONE]":
            return
        chunk = json.loads(data)
        if text := self._text_of(chunk):
            yield Text(text=text)
        fields = {**chunk, **chunk.get("hermes", {})}  # every event is a chunk with a field for our data
        self.session = fields.get("session_id", self.session)
        yield from of_stream(event, fields)

    def _text_of(self, chunk: Mapping[str, Any]) -> str:
        if "error" in chunk:
            if chunk["error"].get("code") == _STOPPING and self._turn is not None:
                raise self._lost(stored=True)
            raise _failed(chunk["error"]["message"], chunk["error"].get("code"))
        ours = chunk.get("hermes", {})
        self.session = ours.get("session_id", self.session)
        if str(chunk.get("id") or "").startswith(_TURN_PREFIX):
            self._turn = chunk["id"].removeprefix(_TURN_PREFIX)
        choice: Mapping[str, Any] = next(iter(chunk.get("choices", [])), {})
        news = {
            "model": chunk.get("model"),
            "finish_reason": choice.get("finish_reason"),
            "usage": chunk.get("usage"),
            "notice": ours.get("notice"),  # such as why this is a new session
        }
        self.last |= {name: value for name, value in news.items() if value}
        return choice.get("delta", {}).get("content") or ""

    def _waiting_notice(self) -> Iterator[Fact]:
        """Yield a notice if another turn of this session runs first."""
        try:
            session = self._client.get(session_path(self.session), tail=0)["session"]
        except HermesError:  # the answer will report it
            return
        running, name = session["running_turn"], session["id"]
        if running is None or running == self._turn:
            return
        if session["phase"] == "waiting":
            how = f"`hermes approve {name}`, `hermes deny {name}` or `hermes answer {name} TEXT`"
            yield NoticeShown(
                text=f"waiting: an earlier turn of this session needs an answer: {session['reason']}; use {how}"
            )
        else:
            since = max(0, round(time.time() - session["since"]))
            yield NoticeShown(
                text=f"waiting: a turn has been running for {since} s in this session; `hermes stop {name}` stops it"
            )

    def _lost(self, *, stored: bool) -> LostError:
        """Return the error for a lost connection. The first event confirms that the message is stored."""
        if not stored:
            return LostError(
                "the connection was lost before the daemon confirmed the message: it may not be stored "
                f"(see: hermes show {self.session})"
            )
        return LostError(f"the daemon stopped in the middle of the answer. {kept(self.session)}")


def _failed(message: str, code: str | None) -> HermesError:
    return StoppedError(message) if code == _CANCELLED else TurnFailedError(message, code)


def _while_stopping(error: AdminError) -> HermesError:
    """Treat a stopping daemon as none: the next one accepts the message."""
    return NotRunningError(str(error)) if error.code == _STOPPING else error


def send(client: AdminClient, session: str, verb: str, body: Mapping[str, str]) -> Any:
    """Post to an endpoint of a session, with a clear error if the daemon does not have it."""
    try:
        return client.post(f"/api{session_path(session)}/{verb}", body)
    except AdminError as error:
        if not error.is_unknown_address:
            raise
        raise AdminError(
            f"the running daemon does not support `{verb}`: it is another version; run `hermes restart`",
            status=error.status,
            code=error.code,
        ) from error
