"""Question of a tool call that waits for a person, and its possible answers, for every surface."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from itertools import zip_longest

from hermes.domain.ids import SessionId, SessionKey, TurnId
from hermes.domain.outbox_message import OutboxMessage
from hermes.domain.session.state import Phase, Session
from hermes.domain.text.visible_text import visible
from hermes.domain.turn.tool_call import Approval, Call, CallState
from hermes.domain.values import dataclass

ALWAYS = Approval.ALWAYS
SHOW = Approval.SHOW
FOR_THE_SESSION = (Approval.SESSION, Approval.ALWAYS)  # answers that grant for longer than once
APPROVALS = (Approval.ONCE, *FOR_THE_SESSION, Approval.DENY)
ONLY_ONCE = (Approval.ONCE, Approval.DENY)
CUT = (Approval.SHOW, Approval.DENY)
LONGEST = 2_500  # characters of a question in a chat
_BEGINNING = 1_200  # characters of a command in a question that is cut
_FINDINGS_IN_CUT = 6
MAY_I_RUN = "May I run this?"
MAY_I_DO = "May I do this?"
BEHIND_ANOTHER = "Your message is stored and waits for another turn.\n\n"  # before a question of that turn
_RUNS = "terminal"  # the tool whose summary is a command


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    turn: TurnId
    call: str
    name: str
    text: str
    choices: tuple[str, ...]
    approval: bool  # asks for an approval; else the model asks
    summary: str = ""  # of the call, in one line


def asked_by(call: Call, turn: TurnId, *, for_good: bool = True, brief: bool = False) -> Question:
    """Return the question of a call. Its choices do not change once it is asked. `for_good`: offer `always`.

    `brief`: for a chat, where a question that is too long shows its beginning.
    """
    choices = call.choices if call.choices or call.question else _ways(call, for_good=for_good)
    text = call.question or _request(call, choices)
    if brief and not call.question and len(text) > LONGEST:
        text = _beginning(call, choices)
    return Question(
        turn=turn,
        call=call.id,
        name=call.name,
        text=text,
        choices=choices,
        approval=not call.question,
        summary=call.summary,
    )


def _ways(call: Call, *, for_good: bool) -> tuple[str, ...]:
    if call.gate.once:
        return ONLY_ONCE
    return APPROVALS if for_good else tuple(each for each in APPROVALS if each != ALWAYS)


def is_long(call: Call) -> bool:
    """Return whether a request for permission is too long for a chat message."""
    return not call.question and len(_request(call, APPROVALS)) > LONGEST


def whole_question(call: Call) -> str:
    """Return the whole request for permission as plain text for a file."""
    lines = (what_runs(call), *(f"- {visible(each)}" for each in _findings(call)))
    return "\n".join(lines) + "\n"


def what_runs(call: Call) -> str:
    """Return what a call would run, with hidden characters written as escapes."""
    said = call.whole or call.summary or call.name
    return visible(said.removeprefix(f"{_RUNS}: ") if call.name == _RUNS else said)


def waits_for(session: Session) -> str:
    """Return what a session waits for: the command that needs permission, or the model's question; else nothing."""
    call = waiting_call(session)
    return "" if call is None else call.question or what_runs(call)


def _request(call: Call, choices: tuple[str, ...]) -> str:
    """Return a request for approval as Markdown: the command, every finding, and what longer answers allow."""
    command = what_runs(call)
    findings = [visible(each) for each in _findings(call, known=command)]
    lines = (
        MAY_I_RUN if call.name == _RUNS else MAY_I_DO,
        _as_code(command),
        *_listed(findings),
        _scope(call, choices),
    )
    return "\n".join(filter(None, lines))


def _beginning(call: Call, choices: tuple[str, ...]) -> str:
    """Return the beginning of a long request for approval, and where the rest is."""
    command, findings = what_runs(call), _findings(call)
    shown = [visible(each)[:300] for each in findings[:_FINDINGS_IN_CUT]]
    left = len(findings) - len(shown)
    start = command[:_BEGINNING]
    rest = f"This shows {len(start):,} of {len(command):,} characters. "
    if SHOW in choices:
        rest += f"See all of it before you allow it: press “{SHOW}”, or write /approve {SHOW}."
    else:
        rest += "All of it is in the attached file."
    lines = (
        MAY_I_RUN if call.name == _RUNS else MAY_I_DO,
        _as_code(start + ("…" if len(start) < len(command) else "")),
        *_listed([*shown, *([f"and {left} more findings"] if left else [])]),
        rest,
    )
    return "\n".join(filter(None, lines))


def _findings(call: Call, *, known: str = "") -> list[str]:
    """Return every finding as a clause. A finding about the `known` command refers to it as "it"."""
    gate = call.gate
    findings = gate.findings or tuple(filter(None, (gate.reason,)))
    return [_clause(why, about, known) for why, about in zip_longest(findings, gate.subjects, fillvalue="")]


def _clause(why: str, about: str, known: str) -> str:
    if not about:
        return why
    return f"it {why}" if visible(about) == known else f"`{about}` {why}"


def _listed(findings: list[str]) -> list[str]:
    return [_sentence(findings[0])] if len(findings) == 1 else [f"- {_sentence(each)}" for each in findings]


def _as_code(text: str) -> str:
    """Return the text as code, so that none of it is read as markup."""
    if "`" not in text and "\n" not in text:
        return f"`{text}`"
    return "```\n" + text.replace("```", "\\`\\`\\`") + "\n```"


def _sentence(reason: str) -> str:
    return f"{reason[:1].upper()}{reason[1:]}." if reason else ""


def _scope(call: Call, choices: tuple[str, ...]) -> str:
    """Return what an answer for longer than once would allow."""
    if Approval.SESSION not in choices or not call.gate.rules:
        return ""
    kinds = ", ".join(call.gate.rules)
    more = "; always: for good, in every conversation" if ALWAYS in choices else ""
    return f"(session: everything of the kind {kinds}, until this conversation ends{more})"


def in_words(text: str, choices: Sequence[str], session: SessionId, *, approval: bool, may_approve: bool) -> str:
    """Return a question as an answer in plain text, which says how to reply."""
    if approval and not may_approve:
        how = f"`hermes approve {session}` or `hermes deny {session}`"
        return f"{text}\n\nThe owner of this Hermes decides, with {how}. You can only reply with no."
    if approval:
        ways = ", ".join(["yes (this once)", *(each for each in FOR_THE_SESSION if each in choices)])
        return f"{text}\n\nReply with {ways} or no."
    return f"{text}\n\nReply with one of: {', '.join(choices)}." if choices else text


def waiting_call(session: Session) -> Call | None:
    calls = session.turn.calls if session.turn is not None and session.phase == Phase.WAITING else ()
    return next((call for call in calls if call.state is CallState.ASKED), None)


def open_question(session: Session) -> Question | None:
    """Return the question that the session waits for."""
    call = waiting_call(session)
    return asked_by(call, session.turn.id) if call is not None and session.turn is not None else None


def button_token(turn: TurnId, call: str) -> str:
    """Return the token of a question's buttons. It identifies the question also after a restart."""
    return blake2b(f"{turn}:{call}".encode(), digest_size=8).hexdigest()


def command_token(command: str, key: SessionKey, user: str) -> str:
    """Return the token of a command button: command, chat and user."""
    return f"{command}-{blake2b(f'{key}:{user}'.encode(), digest_size=8).hexdigest()}"


def token_of(outgoing: OutboxMessage) -> str:
    """Return the token of a message's buttons; empty if it has none."""
    if not outgoing.choices:
        return ""
    return outgoing.call if outgoing.turn is None else button_token(outgoing.turn, outgoing.call)
