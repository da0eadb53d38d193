"""People who write, ask twice, retry under the same id, steer, interrupt, stop, answer, leave and begin anew; who
take back what they said, want another answer, branch off, choose a model, and have it all deleted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from hermes.domain.errors import HermesError
from hermes.domain.events import CallAsked, TurnAnswered
from hermes.domain.ids import InboundKey, SessionId, SessionKey, TurnId
from hermes.domain.outbox_message import OutboxKind, OutboxMessage
from hermes.domain.session.protocol import HandOver, NotePost
from hermes.domain.session.state import Session
from hermes.domain.source import Handover, Place, Source
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Busy, Receipt, Submission
from tests.actors.talk import result, user
from tests.simulation.daemon import SimulatedDaemon
from tests.simulation.outside import Outside
from tests.simulation.request import Request
from tests.support.judge import Delivered, Sent

API = Source(platform="api")
PAUSES_S = (0.01, 0.5, 5.0, 20.0)
ANSWERS = ("once", "deny", "session", "red")
ASKED = "somebody asked for it"

Wish: TypeAlias = Callable[[SimulatedDaemon, SessionId, Source], Awaitable[object]]


def some_wish(outside: Outside) -> Wish:
    """What one can want of a conversation other than an answer."""
    chance = outside.chance
    said, turn, turns = chance.choice(ANSWERS), TurnId(outside.number("turn")), chance.choice((1, 1, 2, 3))
    model, move_key = chance.choice(("", "m", "m2")), chance.random() < 0.5
    chat = f"chat{chance.choice((0, 1, 2))}"
    key, place = SessionKey(f"agent:main:toy:dm:{chat}"), Place(platform="toy", chat=chat)
    move = HandOver(handover=Handover(key=key, place=place, reason=ASKED))
    sent = OutboxMessage(id=outside.number("post"), kind=OutboxKind.NOTICE, place=place, text="posted", at=0.0)
    post = NotePost(outgoing=sent, shown="posted")
    wishes: dict[Wish, int] = {
        lambda daemon, session, _: daemon.desk.stop_turn(session, ASKED): 8,
        lambda daemon, session, source: daemon.desk.answer(session, said, source): 8,
        lambda daemon, session, _: daemon.desk.end(session, ASKED): 3,
        lambda daemon, session, _: daemon.desk.compress(session): 4,
        lambda daemon, session, _: daemon.desk.suspend(session, ASKED): 2,
        lambda daemon, session, _: daemon.desk.resume(session, ASKED): 3,
        lambda daemon, session, _: daemon.desk.undo(session, turns): 4,
        lambda daemon, session, source: daemon.desk.retry(session, turn, source): 4,
        lambda daemon, session, _: daemon.desk.branch(session, move_key=move_key): 3,
        lambda daemon, session, _: daemon.desk.prefer(session, "model", model, ASKED): 3,
        lambda daemon, session, _: daemon.desk.hand_over(session, move): 3,
        lambda daemon, session, _: daemon.desk.post(session, post): 3,
        lambda daemon, session, _: daemon.desk.erase(session): 1,
    }
    [wish] = chance.choices(tuple(wishes), tuple(wishes.values()))
    return wish


async def have(wish: Wish, daemon: SimulatedDaemon, session: SessionId, source: Source) -> object:
    """What is granted is on disk."""
    granted = await wish(daemon, session, source)
    if isinstance(granted, Session):
        daemon.require_stored(granted)
    return granted


class Town:
    """Everybody who talks to the daemon, and the way there."""

    def __init__(self, outside: Outside, people: int, conversations: int) -> None:
        self._outside = outside
        places = [Conversation(number) for number in range(conversations)]
        self.people = [Person(self, outside, outside.chance.choice(places)) for _ in range(people)]
        self.waiting = 0  # exchanges in flight

    def begin(self) -> None:
        for person in self.people:
            self._outside.later(self._outside.chance.uniform(0, 5), person.act)

    def ask(
        self,
        work: Callable[[SimulatedDaemon, Request], Awaitable[object]],
        on: Callable[[Request, str, Any], None],
    ) -> Request:
        self.waiting += 1

        def ended(request: Request, what: str, value: Any) -> None:
            self.waiting -= request.over
            on(request, what, value)

        request = Request(self._outside, work, ended)
        self._outside.later(self._outside.chance.uniform(0.0005, 0.02), self._connect, request)
        return request

    def _connect(self, request: Request) -> None:
        process = self._outside.process
        if request.gone:
            return  # whoever asked had left before there was a connection
        if isinstance(process, SimulatedDaemon):
            process.accept(request)
        else:
            request.lose()

    def hang_up(self, request: Request) -> None:
        process = self._outside.process
        if not request.over and isinstance(process, SimulatedDaemon):
            process.hang_up(request)
        request.lose()


class Conversation:
    """Found by the id of its first session, or by a key."""

    def __init__(self, number: int) -> None:
        self.session = SessionId(f"talk{number}") if number % 2 == 0 else None
        self.key = None if self.session else SessionKey(f"agent:main:sim:dm:{number}")
        self.last: SessionId | None = self.session  # the session that took the last message


class Person:
    def __init__(self, town: Town, outside: Outside, place: Conversation) -> None:
        self._town = town
        self._outside = outside
        self.place = place

    def act(self) -> None:
        outside = self._outside
        if not outside.faulty:
            return
        if outside.chance.random() < 0.68:
            Message(self._town, outside, self.place).send()
        elif (session := self.place.last) is not None:
            wish = some_wish(outside)
            self._town.ask(lambda daemon, _: have(wish, daemon, session, API), lambda *_: None)
        outside.later(outside.chance.choice(PAUSES_S) * outside.chance.random(), self.act)


class Message:
    """A message and all the attempts to bring it there, under one inbound id that is also its text."""

    def __init__(self, town: Town, outside: Outside, place: Conversation, results: tuple[str, ...] = ()) -> None:
        self.inbound = outside.number("said-")
        self._town = town
        self._outside = outside
        self._place = place
        self._busy = outside.chance.choice(("", "", "", Busy.STEER, Busy.INTERRUPT, Busy.QUEUE))
        self._stubborn = outside.chance.random() < 0.8  # tries again
        self._settled = False
        self._submission = {
            "messages": self._said_by(results),
            "results": results,
            "source": API,
            "session": place.session,
            "key": place.key,
            "inbound": InboundKey(self.inbound),
            "fingerprint": self.inbound.encode(),
            "busy": "" if results else self._busy,
        }

    def _said_by(self, results: tuple[str, ...]) -> tuple[EncodedMessage, ...]:
        if not results:
            return (user(self.inbound),)
        return (result(results[0], self.inbound), *(result(call, "done") for call in results[1:]))

    def send(self) -> None:
        outside = self._outside
        overtakes = self._busy == Busy.STEER
        outside.history.add(Sent(inbound=self.inbound, at=outside.now, overtakes=overtakes))
        self.ask()
        if outside.happens(0.1):
            self.ask()

    def ask(self) -> None:
        outside = self._outside
        fields: dict[str, Any] = self._submission
        submission = Submission(turn=TurnId(outside.number("turn")), **fields)
        request = self._town.ask(lambda daemon, request: daemon.chat(request, submission), self._on)
        if outside.happens(0.15):
            outside.later(outside.chance.choice((0.01, 1.0, 30.0)), self._town.hang_up, request)

    def _on(self, request: Request, what: str, value: Any) -> None:
        match what:
            case "receipt":
                receipt: Receipt = value
                self._place.last = receipt.session
            case "refused":
                self._on_refused(value)
            case "lost":
                self._again()
            case "done":
                self._on_outcome(request, *value)

    def _on_outcome(self, request: Request, receipt: Receipt, outcome: object) -> None:
        outside = self._outside
        match outcome:
            case TurnAnswered():
                self._settled = True
                outside.history.add(Delivered(to=request.id, turn=receipt.turn, text=outcome.text))
                if outcome.calls and outside.chance.random() < 0.8:
                    self._run_calls(tuple(call.id for call in outcome.calls))
            case CallAsked() if outside.chance.random() < 0.8:
                said = outside.chance.choice(ANSWERS)
                session = outcome.session
                pause_s = outside.chance.choice(PAUSES_S) * outside.chance.random()
                outside.later(pause_s, self._answer, session, said, outcome.call)
                self._again()

    def _run_calls(self, calls: tuple[str, ...]) -> None:
        """Send the results of calls that the client runs, as the next message; sometimes not all of them."""
        outside = self._outside
        some = calls[: outside.chance.choice((1, len(calls)))]
        pause_s = outside.chance.choice(PAUSES_S) * outside.chance.random()
        outside.later(pause_s, Message(self._town, outside, self._place, results=some).send)

    def _answer(self, session: SessionId, said: str, call: str) -> None:
        self._town.ask(lambda daemon, _: daemon.desk.answer(session, said, API, call), lambda *_: None)

    def _on_refused(self, error: HermesError) -> None:
        self._outside.note(f"refused {self.inbound} {type(error).__name__}")
        self._again()

    def _again(self) -> None:
        if self._stubborn and not self._settled:
            self._stubborn = self._outside.chance.random() < 0.9
            self._outside.later(self._outside.chance.uniform(0.05, 4.0), self.ask)
