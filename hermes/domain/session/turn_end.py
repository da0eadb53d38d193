"""End of a turn with an answer: the model's text, or calls that the client runs."""

from __future__ import annotations

from hermes.domain.events import TurnAnswered
from hermes.domain.history.message_chain import text_and_calls
from hermes.domain.records import TurnFinished
from hermes.domain.session.builder import start_next, then, waiting_messages
from hermes.domain.session.protocol import Publish, Step
from hermes.domain.session.state import Turn
from hermes.domain.turn.reasoning import reasoning_of
from hermes.domain.turn.tool_call import client_calls

TOOL_CALLS = "tool_calls"  # finish reason of an answer with calls for the client


def finish(before: Step, finished: TurnFinished, text: str) -> Step:
    """End the running turn and tell the senders of its messages."""
    session, turn = before.session, before.session.turn
    assert turn is not None
    calls = client_calls(text_and_calls(finished.message)[1]) if finished.handed else ()
    reasoning = reasoning_of(finished.message).text
    answers = tuple(
        Publish(
            event=TurnAnswered(
                session=session.id,
                turn=waiting,
                text=text,
                model=finished.model,
                finish_reason=finished.finish_reason,
                usage=turn.usage + finished.usage,
                calls=calls,
                reasoning=reasoning,
            )
        )
        for waiting in waiting_messages(session, turn.id)
    )
    return then(before, finished, effects=answers)


def hand_over(before: Step, turn: Turn, now: float) -> Step:
    """End the turn with the calls that the client runs. Its usage is counted with the model's answer."""
    finished = TurnFinished(
        at=now,
        turn=turn.id,
        message=turn.handing_message,
        model=turn.handing_model,
        finish_reason=TOOL_CALLS,
        context_tokens=before.session.context_tokens,
        handed=turn.handing,
    )
    return start_next(finish(before, finished, ""), now)
