"""What a tool call that waits for a person asks, and what can be said to it: the same words on every surface."""

from __future__ import annotations

from hashlib import blake2b

from hermes.types import Call, CallState, Obligation, Phase, Session, SessionKey, TurnId
from hermes.values import dataclass

ALWAYS = "always"  # in every conversation, whoever began it
FOR_THE_SESSION = ("session", ALWAYS)  # answers that grant for longer than once
APPROVALS = ("once", *FOR_THE_SESSION, "deny")
ONLY_ONCE = ("once", "deny")
MAY_I_RUN = "May I run this?"
MAY_I_DO = "May I do this?"
_RUNS = "terminal"  # the tool whose summary is a command


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
        text=call.question or _request(call, choices),
        choices=choices,
        approval=not call.question,
    )


def _ways(call: Call, *, for_good: bool) -> tuple[str, ...]:
    if call.gate.once:
        return ONLY_ONCE
    return APPROVALS if for_good else tuple(each for each in APPROVALS if each != ALWAYS)


def _request(call: Call, choices: tuple[str, ...]) -> str:
    """For leave, as Markdown: what is to be run, why somebody is asked, and what each longer answer allows."""
    command = call.summary.removeprefix(f"{_RUNS}: ") if call.name == _RUNS else ""
    reason = call.gate.reason.replace(f"`{command}` ", "it ") if command else call.gate.reason
    lines = (
        MAY_I_RUN if command else MAY_I_DO,
        _as_code(command or call.summary or call.name),
        _sentence(reason),
        _scope(call, choices),
    )
    return "\n".join(filter(None, lines))


def _as_code(text: str) -> str:
    """To the letter: nothing in it is markup."""
    return f"`{text}`" if "`" not in text else f"```\n{text}\n```"


def _sentence(reason: str) -> str:
    return f"{reason[:1].upper()}{reason[1:]}." if reason else ""


def _scope(call: Call, choices: tuple[str, ...]) -> str:
    """What an answer for longer than once would allow."""
    if "session" not in choices or not call.gate.rules:
        return ""
    kinds = ", ".join(call.gate.rules)
    more = "; always: for good, in every conversation" if ALWAYS in choices else ""
    return f"(session: everything of the kind {kinds}, until this conversation ends{more})"


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
