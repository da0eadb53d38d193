"""Text for a turn that waits for a person: the question, the prompt, and how to answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.cli.output import one_line, printable
from hermes.domain.errors import HermesError

if TYPE_CHECKING:
    from hermes.tui.view_model import OpenPrompt

_LETTERS = {"o": "once", "s": "session", "a": "always", "d": "deny"}


class WaitingError(HermesError):
    """The turn waits for an answer that cannot be given here. The message tells how to answer elsewhere."""

    exit_code = 3

    def __init__(self, session: str, asked: OpenPrompt, *, inside: bool) -> None:
        super().__init__("\n  ".join([headline(asked), *details(asked), *_ways(session, asked, inside=inside)]))


def headline(asked: OpenPrompt) -> str:
    if asked.approval:
        return f"{one_line(asked.name) or 'a tool call'} needs your approval:"
    return "the turn has a question for you:"


def details(asked: OpenPrompt) -> list[str]:
    lines = [line for line in printable(asked.question).splitlines() if line.strip()]
    if asked.approval:
        from hermes.domain.access.question import MAY_I_DO, MAY_I_RUN

        return lines[1:] if lines[:1] in ([MAY_I_RUN], [MAY_I_DO]) else lines  # the headline repeats it
    return [*lines, *(f"{number}. {one_line(choice)}" for number, choice in enumerate(asked.choices, 1))]


def confirmations(command: str, choices: tuple[str, ...]) -> dict[str, str]:
    """Return the commands that a plain yes or no stands for, after a command that asks first; else nothing."""
    if not choices:
        return {}
    from hermes.services.commands.registry import find
    from hermes.services.commands.reply import confirmation

    name = command.split(maxsplit=1)[0]
    known = find(name)
    answers = None if known is None else confirmation(known, choices)
    if answers is None:
        return {}
    yes, no = (f"{name} {answer}" for answer in answers)
    return {"yes": yes, "y": yes, "no": no, "n": no}


def prompt(asked: OpenPrompt) -> str:
    if not asked.approval:
        return "  answer> "
    return f"  {'  '.join(f'[{choice[:1]}]{choice[1:]}' for choice in asked.choices)}> "


def parse_answer(asked: OpenPrompt, line: str) -> str:
    """Return the answer to send for a typed line; empty if it is not an answer."""
    if not asked.approval:
        return _choice(asked, line)
    from hermes.domain.session.calls import read_answer
    from hermes.domain.turn.tool_call import Call

    # The daemon's own parser, so that the same words count here and in a chat.
    answer = _LETTERS.get(line.lower()) or read_answer(Call(id=asked.call, name=asked.name), line)
    return answer if answer in asked.choices else ""


def _choice(asked: OpenPrompt, line: str) -> str:
    if not asked.choices or not line.isdecimal():
        return line
    number = int(line)
    return asked.choices[number - 1] if 1 <= number <= len(asked.choices) else ""


def expected(asked: OpenPrompt) -> str:
    """Return the help for a line that is not an answer."""
    if asked.approval:
        *others, last = asked.choices
        return (
            f"Type {', '.join(others)} or {last}; yes and no work too. /stop stops the turn, /quit leaves it waiting."
        )
    return (
        f"Type a number from 1 to {len(asked.choices)}, or an answer. /stop stops the turn, /quit leaves it waiting."
    )


def _ways(session: str, asked: OpenPrompt, *, inside: bool) -> list[str]:
    if inside:  # no daemon runs afterwards
        return [f"answer with: hermes chat -r {session} -z {'once' if asked.approval else 'ANSWER'}"]
    if not asked.approval:
        return [f"answer with: hermes answer {session} TEXT", f"then continue with: hermes chat -r {session}"]
    return [
        f"answer with: hermes approve {session}{_spans(asked)}, or: hermes deny {session}",
        f"then continue with: hermes chat -r {session}",
    ]


def _spans(asked: OpenPrompt) -> str:
    spans = [choice for choice in asked.choices if choice != "deny"]
    return f" [{'|'.join(spans)}]" if len(spans) > 1 else ""
