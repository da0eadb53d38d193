"""What a tool call that waits for a person asks, and what can be said to it: the same words on every surface."""

from __future__ import annotations

from hashlib import blake2b

from hermes.types import Call, CallState, Obligation, Phase, Session, SessionKey, TurnId
from hermes.values import dataclass

ALWAYS = "always"  # in every conversation, whoever began it
FOR_THE_SESSION = ("session", ALWAYS)  # answers that grant for longer than once
APPROVALS = ("once", *FOR_THE_SESSION, "deny")
ONLY_ONCE = ("once", "deny")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    turn: TurnId
    call: str
    name: str
    text: str
    choices: tuple[str, ...]
    approval: bool  # for leave to run; else it is the model that asks


def asked_by(call: Call, turn: TurnId, *, for_good: bool = True) -> Question:
    """Once it is asked, what it offers stays. `for_good`: whether whoever is asked may say always."""
    choices = call.choices if call.choices or call.question else _ways(call, for_good=for_good)
    return Question(
        turn=turn,
        call=call.id,
        name=call.name,
        text=call.question
        or "\n".join(filter(None, (call.summary or call.name, call.gate.reason, _scope(call, choices)))),
        choices=choices,
        approval=not call.question,
    )


def _ways(call: Call, *, for_good: bool) -> tuple[str, ...]:
    if call.gate.once:
        return ONLY_ONCE
    return APPROVALS if for_good else tuple(each for each in APPROVALS if each != ALWAYS)


def _scope(call: Call, choices: tuple[str, ...]) -> str:
    """What an answer for longer than once would allow."""
    longer = [f"`{each}`" for each in choices if each in FOR_THE_SESSION]
    if not longer or not call.gate.rules:
        return ""
    allow = "allow" if len(longer) > 1 else "allows"
    return f"({' and '.join(longer)} {allow} everything of the kind {', '.join(call.gate.rules)})"


def waiting_call(session: Session) -> Call | None:
    calls = session.turn.calls if session.turn is not None and session.phase == Phase.WAITING else ()
    return next((call for call in calls if call.state is CallState.ASKED), None)


def open_question(session: Session) -> Question | None:
    """What the session waits for somebody to answer."""
    call = waiting_call(session)
    return asked_by(call, session.turn.id) if call is not None and session.turn is not None else None


def button_token(turn: TurnId, call: str) -> str:
    """What a button under a question carries, so that it is known after a restart which question it answers."""
    return blake2b(f"{turn}:{call}".encode(), digest_size=8).hexdigest()


def command_token(command: str, key: SessionKey, user: str) -> str:
    """What a button carries that gives a command, with the choice as its argument: whose it is, and where."""
    return f"{command}-{blake2b(f'{key}:{user}'.encode(), digest_size=8).hexdigest()}"


def token_of(owed: Obligation) -> str:
    """Of the buttons below it; empty: there are none."""
    if not owed.choices:
        return ""
    return owed.call if owed.turn is None else button_token(owed.turn, owed.call)
