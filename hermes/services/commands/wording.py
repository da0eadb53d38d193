"""Plain text for sessions and usage, for terminals and chats. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from hermes.domain.operations import Tally
from hermes.domain.session.state import Phase, Session
from hermes.domain.text.fence import without_fences
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.tool_call import Call, CallState
from hermes.domain.turn.usage import Usage
from hermes.domain.values import dataclass

UNTITLED = "(no title)"
EXCERPT_CHARS = 120
_BEFORE_OWN_WORDS = re.compile(
    r"\A(?:\[[a-z ]+: <untrusted-(?P<marker>[0-9a-f]+)>.*?</untrusted-(?P=marker)>\]\n"
    r"|\[Earlier in this thread:\n.*?\]\n\n|\[in answer to[^:\n]*: .*?\]\n)",  # format of old stored messages
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Default:
    """Values that apply unless the conversation has set its own."""

    model: str = ""
    context_window: int = 0  # 0 if unknown


def status(session: Session, default: Default, now: float) -> str:
    chosen = session.preferences
    lines = [
        f"{chosen.title or UNTITLED}, session {session.id}",
        f"{_phase(session, now)}, model {chosen.model or default.model or 'as configured'}",
        f"Context {context(session, default)}",
        f"{count(session.turns, 'turn')}, {tokens(session.usage)}, {money(session.usage.cost_usd)}",
    ]
    if session.queue:
        lines.append(f"{count(len(session.queue), 'message')} waiting")
    if (asking := pending(session)) is not None:
        lines.append(question(asking))
    if others := _chosen(session):
        lines.append(others)
    return "\n".join(lines)


def usage(session: Session, default: Default, now: float) -> str:
    used = session.usage
    share = used.cached_tokens * 100 // max(used.prompt_tokens, 1)
    cached = f", {used.cached_tokens:,} of them cached ({share}%)" if used.cached_tokens else ""
    figures = {
        "Session": f"{session.id}, {session.preferences.title or UNTITLED}",
        "Turns": f"{session.turns:,} in {span(now - session.created_at)}",
        "Input": f"{used.prompt_tokens:,} tokens{cached}",
        "Output": f"{used.completion_tokens:,} tokens",
        "Cost": money(used.cost_usd),
        "Context": context(session, default),
    }
    if session.turn is not None:
        turn = session.turn
        figures["This turn"] = f"{tokens(turn.usage)}, {span(now - turn.accepted_at)} so far"
    width = max(map(len, figures))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in figures.items())


def context(session: Session, default: Default) -> str:
    used, window = session.context_tokens, default.context_window
    if not window:
        return f"{used:,} tokens"
    return f"{used:,} of {window:,} tokens ({used * 100 // window}%)"


def _phase(session: Session, now: float) -> str:
    if session.compressing:
        return f"Being compressed ({session.compressing})"
    words = session.phase.value.replace("_", " ").capitalize()
    if session.phase in (Phase.IDLE, Phase.WAITING):
        return f"{words} for {span(now - session.since)}"
    if session.phase == Phase.RUNNING and session.turn is not None:
        return f"{words} for {span(now - session.turn.accepted_at)}"
    return f"{words} ({session.reason})"


def _chosen(session: Session) -> str:
    chosen = session.preferences
    words = [
        f"{name} {value}"
        for name, value in (
            ("personality", chosen.personality),
            ("reasoning", chosen.reasoning),
            ("reasoning is", "shown" if chosen.show_reasoning else ""),
            ("busy", chosen.busy),
            ("yolo", "on" if chosen.yolo else ""),
        )
        if value
    ]
    return f"Chosen: {', '.join(words)}" if words else ""


# ---------------------------------------------------------------- questions and queued messages


def pending(session: Session) -> Call | None:
    """Return the call that waits for a person, if any."""
    calls = session.turn.calls if session.turn is not None else ()
    return next((call for call in calls if call.state is CallState.ASKED), None)


def question(call: Call) -> str:
    if call.question:
        choices = "".join(f"\n  {number}. {choice}" for number, choice in enumerate(call.choices, 1))
        return f"Question: {call.question}{choices}"
    return f"Permission needed: {call.summary or call.name} ({call.gate.reason}). /approve or /deny"


def dropped(session: Session) -> str:
    """Report the queued messages that a stop drops; empty if there are none."""
    many = len(session.queue)
    return f"{count(many, 'queued message')} {'was' if many == 1 else 'were'} dropped." if many else ""


# ---------------------------------------------------------------- lists


SESSION_HEADINGS = ("number", "about", "phase", "turns", "last active", "session")


def session_rows(sessions: Sequence[Session], about: Sequence[str], now: float) -> tuple[tuple[str, ...], ...]:
    """Return a table row for each session. `about` has one line for each."""
    return tuple(
        (
            str(number),
            words,
            session.phase.value.replace("_", " "),
            str(session.turns),
            f"{span(now - session.active_at)} ago",
            session.id,
        )
        for number, (session, words) in enumerate(zip(sessions, about, strict=True), 1)
    )


def session_lines(rows: Iterable[tuple[str, ...]], current: str) -> str:
    return "\n".join(
        f"{number}. {title}{' (this one)' if name == current else ''}\n"
        f"   {phase}, {count(int(turns), 'turn')}, {when}, {name}"
        for number, title, phase, turns, when, name in rows
    )


TALLY_HEADINGS = ("day", "model", "turns", "input", "output", "cost")


def tally_rows(tallies: Sequence[Tally]) -> tuple[tuple[str, ...], ...]:
    """Return usage by day and model, over all platforms."""
    sums = _sums(((tally.day, tally.model), tally) for tally in tallies)
    return tuple((day, model, *_figures(*total)) for (day, model), total in sums.items())


def insights(tallies: Sequence[Tally], days: int) -> str:
    if not tallies:
        return f"No usage in the last {count(days, 'day')}."
    _, (used, turns) = next(iter(_sums((("all",), tally) for tally in tallies).items()))
    head = f"The last {count(days, 'day')} (UTC): {count(turns, 'turn')}, {tokens(used)}, {money(used.cost_usd)}"
    by_model = _sums(((tally.model,), tally) for tally in tallies)
    by_day = _sums(((tally.day,), tally) for tally in tallies)
    return "\n\n".join([head, _table("By model", by_model), _table("By day", by_day)])


_Sums = dict[tuple[str, ...], tuple[Usage, int]]


def _sums(tallies: Iterable[tuple[tuple[str, ...], Tally]]) -> _Sums:
    sums: _Sums = {}
    for name, tally in tallies:
        used, turns = sums.get(name, (Usage(), 0))
        sums[name] = (used + tally.usage, turns + tally.turns)
    return sums


def _table(title: str, sums: _Sums) -> str:
    width = max(len(name) for (name,) in sums)
    lines = (
        f"  {name:<{width}}  {count(turns, 'turn')}, {tokens(used)}, {money(used.cost_usd)}"
        for (name,), (used, turns) in sums.items()
    )
    return "\n".join([title, *lines])


def _figures(used: Usage, turns: int) -> tuple[str, ...]:
    return str(turns), str(used.prompt_tokens), str(used.completion_tokens), money(used.cost_usd)


# ---------------------------------------------------------------- formatting


def tokens(used: Usage) -> str:
    return f"{used.prompt_tokens:,} tokens in and {used.completion_tokens:,} out"


def money(usd: float) -> str:
    return f"${usd:.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}"


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def span(seconds: float) -> str:
    whole = max(0, int(seconds))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if whole >= size:
            return f"{whole // size} {unit}"
    return f"{whole} s"


def own_words(text: str) -> str:
    """Strip the context that the model is shown before a person's message, such as a thread or a quote."""
    own = _BEFORE_OWN_WORDS.sub("", text, count=1) or text
    return without_fences(own)


def excerpt(message: EncodedMessage) -> str:
    """Return the start of a message's text, on one line."""
    content = json.loads(message).get("content")
    text = " ".join(own_words(content).split()) if isinstance(content, str) else ""
    return text if len(text) <= EXCERPT_CHARS else text[: EXCERPT_CHARS - 1].rstrip() + "…"
