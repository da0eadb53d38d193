"""One session, as a person on a terminal meets it: what state it is in, what they say, what comes back.

What comes back is a stream of small facts; whoever shows them decides how.
"""

from __future__ import annotations

import json
import re
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import chain
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
from hermes.domain.turn_token import RUN, TurnToken
from hermes.domain.types import SessionId, TurnId
from hermes.domain.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping

    from hermes.cli.chat.fact import Fact
    from hermes.cli.client import AdminClient, Feed

_STOPPING = "stopping"  # the code of an answer that a stop has cut off, and of a message that came too late for it
_CANCELLED = "cancelled"  # the code of a turn that somebody stopped
_NO_SUCH_RUN = "run_not_found"
_CONFIRMED_S = 10.0  # within which a message is on disk
_LOOK_UP_S = 0.5
_LOOK_BACK = 20  # messages, among which is the call that was just refused
_PATIENCE_S = 3.0  # of silence, before it is said what is waited for
_TURN_PREFIX = "chatcmpl-"  # in front of a turn's id, where it is the id of a chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """What the daemon said to a command, and the turn that this began, if any."""

    ok: bool
    text: str
    turn: str | None
    choices: tuple[str, ...] = ()  # it asks, and is to be given again with one of these


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedTurn:
    """A message that the daemon has, and what comes back for it, to be told later."""

    text: str
    turn: str
    handling: str  # queued, steering, interrupting, answer or started; empty: the daemon does not say
    feed: Feed
    first: tuple[str, str]


class StoppedError(HermesError):
    """The turn was ended by somebody: no failure."""


class TurnFailedError(HermesError):
    """The turn ended without an answer; what was said is stored."""


_COMMAND = re.compile(r"/[a-z-]+(\s|$)", re.IGNORECASE)


def is_command(text: str) -> bool:
    """Not everything behind a slash: people talk about paths."""
    return _COMMAND.match(text) is not None


def kept(session: str) -> str:
    """What becomes of a turn whose daemon is gone."""
    return (
        "The message is stored and the answer will be finished when a daemon runs again: "
        f"hermes show {session}; go on with: hermes chat -r {session}"
    )


class Conversation:
    def __init__(self, client: AdminClient, session: str, workdir: str | None = None) -> None:
        """`workdir` is where the agent works in sessions that begin here; None leaves that to the daemon."""
        self.session = session  # follows the session when it goes on under another id
        self.turns: set[str] = set()  # those that were answered here
        self.last: dict[str, Any] = {}  # what the last answer said about itself
        self._client = client
        self._turn: str | None = None  # the one that is being answered
        self._workdir = workdir
        self._placed = ""  # the last session that the daemon was told the directory of
        self._begun: set[str] = set()  # calls that ran, or that somebody was asked for

    @property
    def turn(self) -> str | None:
        """The one that is being answered, as soon as the daemon has confirmed it."""
        return self._turn

    def ask(self, text: str) -> Generator[Fact]:
        """The answer, fact by fact as it comes."""
        self._begin()
        with self._post(text) as feed:
            yield from self._told(feed.looking_up(_LOOK_UP_S))

    def submit(self, text: str) -> SubmittedTurn:
        """At once, also while another answer comes. Back as soon as the daemon has it on disk."""
        with ExitStack() as stack:
            feed = stack.enter_context(self._post(text))
            try:
                first = next(feed.looking_up(_CONFIRMED_S), None)
            except LostError as error:
                raise self._lost(stored=False) from error
            except AdminError as error:
                raise _while_stopping(error) from error
            if first is None:
                raise HermesError("the daemon has not confirmed the message, which may not be stored")
            stack.pop_all()
        chunk = json.loads(first[1])
        turn = str(chunk.get("id") or "").removeprefix(_TURN_PREFIX)
        self.turns.add(turn)
        handling = str(chunk.get("hermes", {}).get("handling") or "")
        return SubmittedTurn(text=text, turn=turn, handling=handling, feed=feed, first=first)

    def answer_to(self, sent: SubmittedTurn) -> Generator[Fact]:
        """As of `ask`, with all that came since it was said."""
        self._begin()
        with sent.feed as feed:
            yield from self._told(chain([sent.first], feed.looking_up(_LOOK_UP_S)))

    def _begin(self, turn: str | None = None) -> None:
        self.last = {"model": None, "finish_reason": None, "usage": None, "notice": None}
        self._turn = turn

    def _post(self, text: str) -> Feed:
        if "\0" in text:
            raise HermesError("the text holds a NUL character")
        self._send_workdir()
        body = {
            "model": "hermes",
            "messages": [{"role": "user", "content": text}],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        headers = {"X-Hermes-Session-Id": self.session}
        return self._client.follow("POST", "/v1/chat/completions", body, headers)

    def _send_workdir(self) -> None:
        """Before a session's first message: its prompt names the directory."""
        if self._workdir is None or self._placed == self.session:
            return
        try:
            self._client.post(f"{session_path(self.session)}/workdir", {"path": self._workdir})
        except AdminError as error:
            if not error.is_unknown_address:  # else a daemon of another version, which has one directory for all
                raise
        self._placed = self.session

    def _told(self, arrivals: Iterable[tuple[str, str] | None]) -> Generator[Fact]:
        data = ""
        hint_at: float | None = time.monotonic() + _PATIENCE_S
        try:
            for arrived in arrivals:
                if arrived is None:
                    yield Quiet()
                    if hint_at is not None and time.monotonic() > hint_at:
                        hint_at = None
                        yield from self._what_is_waited_for()
                    continue
                event, data = arrived
                for fact in self._facts(event, data):
                    hint_at = None
                    yield self._completed(fact)
        except LostError as error:
            raise self._lost(stored=bool(data)) from error
        except AdminError as error:
            raise _while_stopping(error) from error
        if data != "[DONE]":
            raise HermesError("the answer was cut off")

    def watch(self, turn: str) -> Generator[Fact]:
        """The same for a turn that was begun before, by a command say. Its text comes at once, when it is whole."""
        self._begin(turn)
        self.turns.add(turn)
        with self._client.follow("GET", f"/events?{urlencode({'session': self.session})}") as feed:
            asked = self.pending(turn)  # from before anybody listened
            if asked is not None:
                yield self._completed(asked)
            for arrived in feed.looking_up(_LOOK_UP_S):
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
                        yield self._completed(fact)
        yield from self.watch(turn)

    def _end_of(self, turn: str) -> str | None:
        """The answer, when the turn ended while nobody looked: others may have begun since."""
        run = TurnToken(session=SessionId(self.session), turn=TurnId(turn)).text(RUN)
        try:
            found = self._client.get(f"/v1/runs/{run}")
        except AdminError as error:
            if error.code != _NO_SUCH_RUN:
                raise
            if self.is_open(turn):
                return None
            raise HermesError(f"the turn is not in this session any more: hermes show {self.session}") from error
        if found["error"] is not None:
            raise _failed(found["error"]["message"], found["error"]["code"])
        if found["status"] != "completed":
            return None
        self.last["usage"] = found["usage"]
        return str(found["output"] or "")

    def pending(self, turn: str | None = None) -> QuestionShown | None:
        """What somebody is asked now, by this turn or by any."""
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
        """Whether it runs or waits its turn."""
        view = self._client.get(f"/api{session_path(self.session)}")
        waiting = [each["turn_id"] for each in view.get("queue") or ()]
        return turn in (view["session"]["running_turn"], *waiting)

    def asking_turn(self) -> str | None:
        found = self._pending()
        return None if found is None else str(found["turn_id"])

    def _pending(self) -> Mapping[str, Any] | None:
        try:
            found: Mapping[str, Any] | None = self._client.get(f"/api{session_path(self.session)}").get("pending")
        except AdminError:  # there is no such session, and so nobody who asks
            return None
        return found

    def is_settled(self, asked: QuestionShown) -> bool:
        pending = self._pending()
        return pending is None or pending["call_id"] != asked.call

    def stop(self, reason: str = "stopped by Ctrl-C") -> None:
        """End the turn that is being answered; it may still wait for another one."""
        request = {"reason": reason} | ({"turn_id": self._turn} if self._turn else {})
        with suppress(AdminError):  # it was not running yet, or not any more
            self._client.post(f"{session_path(self.session)}/stop", request)

    def answer(self, asked: QuestionShown, answer: str) -> None:
        send(self._client, self.session, "answer", {"answer": answer, "call_id": asked.call})

    def command(self, text: str) -> CommandResult:
        try:
            answer = send(self._client, self.session, "commands", {"text": text})
        except AdminError as error:
            if error.code != "session_not_found":
                raise
            answer = self._command_of_nobody(text)
        self.session = answer.get("session_id") or self.session
        return CommandResult(
            ok=answer.get("ok", True),
            text=str(answer.get("text") or ""),
            turn=answer.get("turn_id"),
            choices=tuple(map(str, answer.get("choices") or ())),
        )

    def _command_of_nobody(self, text: str) -> Any:
        """Before the first message there is no session that it could be given in."""
        try:
            return self._client.post("/api/commands", {"text": text})
        except AdminError as error:
            if not error.is_unknown_address:
                raise
            raise HermesError("there is no session yet: it begins with your first message") from error

    # ------------------------------------------------------------ what comes back

    def _completed(self, fact: Fact) -> Fact:
        """With the words for a call that was refused before it began. The transcript has them."""
        if isinstance(fact, ToolCallBegan | QuestionShown):
            self._begun.add(fact.call)
        if not isinstance(fact, ToolCallEnded) or fact.outcome == "ok" or fact.call in self._begun or fact.summary:
            return fact
        try:
            transcript = self._client.get(session_path(self.session), tail=_LOOK_BACK)["transcript"]
        except HermesError:  # the line is shown without
            return fact
        made = (call for message in transcript for call in message.get("tool_calls") or ())
        arguments = next((call["function"]["arguments"] for call in made if call.get("id") == fact.call), "")
        return replace(fact, summary=gist(arguments))

    def _facts(self, event: str, data: str) -> Iterator[Fact]:
        if data == "[DONE]":
            return
        chunk = json.loads(data)
        if text := self._piece(chunk):
            yield Text(text=text)
        fields = {**chunk, **chunk.get("hermes", {})}  # every event is a chunk as well; ours has a place in it
        self.session = fields.get("session_id", self.session)
        yield from of_stream(event, fields)

    def _piece(self, chunk: Mapping[str, Any]) -> str:
        if "error" in chunk:
            if chunk["error"].get("code") == _STOPPING and self._turn is not None:
                raise self._lost(stored=True)
            raise _failed(chunk["error"]["message"], chunk["error"].get("code"))
        ours = chunk.get("hermes", {})
        self.session = ours.get("session_id", self.session)
        if str(chunk.get("id") or "").startswith(_TURN_PREFIX):
            turn = self._turn = chunk["id"].removeprefix(_TURN_PREFIX)
            self.turns.add(turn)
        choice: Mapping[str, Any] = next(iter(chunk.get("choices", [])), {})
        news = {
            "model": chunk.get("model"),
            "finish_reason": choice.get("finish_reason"),
            "usage": chunk.get("usage"),
            "notice": ours.get("notice"),  # what its person should know: why this is a fresh session, say
        }
        self.last |= {name: value for name, value in news.items() if value}
        return choice.get("delta", {}).get("content") or ""

    def _what_is_waited_for(self) -> Iterator[Fact]:
        """Another turn of this session, if that is what goes first."""
        try:
            session = self._client.get(session_path(self.session), tail=0)["session"]
        except HermesError:  # not worth an error of its own: the answer will have one
            return
        running, name = session["running_turn"], session["id"]
        if running is None or running == self._turn:
            return
        if session["phase"] == "waiting":
            how = f"`hermes approve {name}`, `hermes deny {name}` or `hermes answer {name} TEXT`"
            yield NoticeShown(
                text=f"waiting: an earlier turn of this session needs an answer: {session['reason']}; {how}"
            )
        else:
            since = max(0, round(time.time() - session["since"]))
            yield NoticeShown(
                text=f"waiting: a turn has been running for {since} s in this session; `hermes stop {name}` ends it"
            )

    def _lost(self, *, stored: bool) -> LostError:
        """The first event says that the message is on disk."""
        if not stored:
            return LostError(
                "the daemon went away before it confirmed the message, which may not be stored; "
                f"look with: hermes show {self.session}"
            )
        return LostError(f"the daemon went away in the middle of the answer. {kept(self.session)}")


def _failed(message: str, code: str | None) -> HermesError:
    return StoppedError(message) if code == _CANCELLED else TurnFailedError(message)


def _while_stopping(error: AdminError) -> HermesError:
    """A daemon on its way out is as good as none: the next one takes the message."""
    return NotRunningError(str(error)) if error.code == _STOPPING else error


def send(client: AdminClient, session: str, verb: str, body: Mapping[str, str]) -> Any:
    """What a person can do to a session by a verb of the API; also from outside of a conversation."""
    try:
        return client.post(f"/api{session_path(session)}/{verb}", body)
    except AdminError as error:
        if not error.is_unknown_address:
            raise
        raise AdminError(
            f"the running daemon does not know `{verb}`: it is of another version; restart it",
            status=error.status,
            code=error.code,
        ) from error
