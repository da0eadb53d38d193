"""A turn for tests, told as the journal and the hub would: each step stores its record, then says so."""

from __future__ import annotations

import json
from typing import Any

from hermes.domain.events import (
    CallAnswered,
    CallAsked,
    CallBegan,
    CallEnded,
    Event,
    TextDelta,
    TurnAnswered,
    TurnBegan,
)
from hermes.domain.ids import Seq, SessionId, TurnId
from hermes.domain.read.views import TurnRecord
from hermes.domain.records import (
    Answered,
    Asked,
    MessageReceived,
    ModelReplied,
    Record,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from hermes.domain.source import Source
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.tool_call import Call, CallOutcome
from hermes.domain.turn.usage import Usage
from hermes.services.event_hub import EventHub
from tests.support.fakes import NOW, FakeHub, FakeSessions

S, T = SessionId("s"), TurnId("t")


class TurnScript:
    def __init__(self, turn: TurnId = T, bound: int = 64) -> None:
        self.hub = EventHub(bound=bound)
        self.desk = FakeSessions(FakeHub())
        self.turn = turn
        self.session = S

    # ------------------------------------------------------------ what is stored

    def store(self, *records: Record) -> None:
        log = self.desk.turn_records.setdefault(self.turn, [])
        for record in records:
            log.append(TurnRecord(session=self.session, seq=Seq(len(log)), record=record))

    def tell(self, *events: Event) -> None:
        for event in events:
            self.hub.publish(event)

    # ------------------------------------------------------------ what happens

    def begin(self, text: str = "Hi", **hermes: Any) -> None:
        options = json.dumps({"hermes": hermes} if hermes else {}).encode()
        message = EncodedMessage(json.dumps({"role": "user", "content": text}).encode())
        source = Source(platform="api")
        self.store(
            MessageReceived(at=NOW, turn=self.turn, messages=(message,), source=source, options=options),
            TurnStarted(at=NOW, turn=self.turn, attempt=1),
        )
        self.tell(TurnBegan(session=self.session, turn=self.turn, attempt=1))

    def say(self, *texts: str) -> None:
        self.tell(*(TextDelta(session=self.session, turn=self.turn, text=text) for text in texts))

    def ask_for(self, call: Call, text: str = "") -> None:
        """The model has replied, and wants this tool."""
        function = {"name": call.name, "arguments": "{}"}
        fields = {"role": "assistant", "content": text or None}
        fields["tool_calls"] = [{"id": call.id, "type": "function", "function": function}]  # type: ignore[assignment]
        message = EncodedMessage(json.dumps(fields).encode())
        used = Usage(prompt_tokens=5, completion_tokens=1)
        self.store(ModelReplied(at=NOW, turn=self.turn, message=message, calls=(call,), model="m", usage=used))

    def start(self, call: Call) -> None:
        self.store(ToolStarted(at=NOW, turn=self.turn, call=call.id))
        self.tell(CallBegan(session=self.session, turn=self.turn, call=call.id, name=call.name, summary=call.summary))

    def finish(self, call: Call, output: str = "ok") -> None:
        message = EncodedMessage(json.dumps({"role": "tool", "tool_call_id": call.id, "content": output}).encode())
        outcome = CallOutcome.OK
        finished = ToolFinished(
            at=NOW, turn=self.turn, call=call.id, message=message, outcome=outcome, name=call.name
        )
        self.store(finished)
        ended = CallEnded(
            session=self.session,
            turn=self.turn,
            call=call.id,
            name=call.name,
            outcome=outcome,
            took_s=0.0,
            summary=call.summary,
        )
        self.tell(ended)

    def ask(self, call: Call, question: str = "May I?") -> None:
        self.store(Asked(at=NOW, turn=self.turn, call=call.id, question=question, choices=("once", "deny")))
        self.tell(self.asked(call, question))

    def asked(self, call: Call, question: str = "May I?") -> CallAsked:
        return CallAsked(
            session=self.session,
            turn=self.turn,
            call=call.id,
            name=call.name,
            question=question,
            choices=("once", "deny"),
            approval=not call.question,
            summary=call.summary,
        )

    def answer(self, call: Call, answer: str = "once") -> None:
        self.store(Answered(at=NOW, turn=self.turn, call=call.id, answer=answer, by="api"))
        answered = CallAnswered(
            session=self.session,
            turn=self.turn,
            call=call.id,
            name=call.name,
            answer=answer,
            by="api",
            summary=call.summary,
        )
        self.tell(answered)

    def end(self, text: str, finish_reason: str = "stop") -> TurnAnswered:
        message = EncodedMessage(json.dumps({"role": "assistant", "content": text}).encode())
        used = Usage(prompt_tokens=7, completion_tokens=2)
        self.store(
            TurnFinished(at=NOW, turn=self.turn, message=message, model="m", finish_reason=finish_reason, usage=used)
        )
        answered = TurnAnswered(
            session=self.session, turn=self.turn, text=text, model="m", finish_reason=finish_reason, usage=used
        )
        self.desk.outcomes[self.turn] = answered
        self.tell(answered)
        return answered
