"""The built-in model for trying Hermes without any account. It is not an AI: it does what a line tells it to.

The last user message may be a directive:

    !directives         this list; also !help, but on Slack that is Hermes's own list
    !echo TEXT          answers TEXT (alone: an empty answer)
    !slow [SECONDS]     streams its answer over that time (5 s)
    !long N             answers with N words
    !count              says how many messages it was shown
    !history            lists every message it was shown, one a line
    !tool NAME {JSON}   asks to run a tool; several in one line are separated by " ;; "
    !fail KIND          fails in that way, for example rate_limit
    !cut                stops in the middle of its answer
    !hang               never answers

Several lines of directives are one turn: each line is its answer to what the one before brought. When tools have run
and no line is left, it says what they returned. Anything else is quoted back. Answers depend on nothing but the
messages. Four bytes are a token. Only `!history` reads every message, so that a late turn costs what the first did.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence

from hermes.domain.errors import ModelError
from hermes.domain.message import EncodedMessage
from hermes.domain.session.note import NOTE_MARK
from hermes.domain.turn_failure import Failure, FailureKind
from hermes.domain.usage import Usage
from hermes.ports.agent import Model, ModelChunk, ModelDone, ModelRequest, ModelText

NAME = "offline"
HELP = "\n".join(line.strip() for line in (__doc__ or "").splitlines() if line.startswith("    !"))
QUOTE_MAX = 200
WORDS_MAX = 100_000
SECONDS_MAX = 3600.0
DIRECTIVES_MAX = 1000  # lines
_BREATH = 64  # words or messages between two looks of the event loop
_SLICE = 4096  # characters


class OfflineModel(Model):
    name = NAME

    def __init__(self, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._sleep = sleep

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        said, results = _last_said(request.messages)
        directive, _, argument = said.partition(" ")
        match directive:
            case "!fail" if argument.strip() in set(FailureKind):
                kind = FailureKind(argument.strip())
                raise ModelError(Failure(kind=kind, message=f"the offline model was told to fail with {kind}"))
            case "!hang":
                await asyncio.Event().wait()
            case "!cut":
                yield ModelText(text="This answer will not be ")
                return
            case "!tool":
                yield _tool_calls(argument, request)
                return
        answer = await self._answer(directive, argument, said, results, request.messages)
        pause_s = _seconds(argument) / len(answer.split()) if directive == "!slow" else 0.0
        for position, piece in enumerate(_pieces(answer)):
            yield ModelText(text=piece)
            if pause_s or position % _BREATH == 0:
                await self._sleep(pause_s)
        yield ModelDone(finish_reason="stop", model=NAME, usage=_usage(request, len(answer)))

    async def close(self) -> None:
        """It holds nothing."""

    async def _answer(
        self, directive: str, argument: str, said: str, results: Sequence[str], messages: Sequence[EncodedMessage]
    ) -> str:
        match directive:
            case "!help" | "!directives":
                return f"I am the offline model, not an AI. Directives:\n\n{HELP}"
            case "!echo":
                return argument
            case "!slow":
                return f"This answer was told to take {_seconds(argument):g} seconds, one word after the other."
            case "!long":
                return " ".join(map(str, range(1, _whole(argument) + 1)))
            case "!count":
                return f"I was shown {_count(messages)}."
            case "!history":
                return await self._history(messages)
            case "!fail":
                return f"I can fail with: {', '.join(FailureKind)}."
            case _ if directive.startswith("!"):
                return f"I do not know {_quoted(directive)}. Directives:\n\n{HELP}"
        if results:
            return "\n\n".join(["The tools returned:", *results])
        return (
            f"You said {_quoted(said)}. This conversation has {_count(messages)} and began with "
            f"{_quoted(_first_said(messages))}. I am not an AI but the built-in offline model; "
            "!directives lists what I know. For a real one set `model.provider: openai` in config.yaml."
        )

    async def _history(self, messages: Sequence[EncodedMessage]) -> str:
        lines: list[str] = []
        for number, message in enumerate(messages):
            role, text = _read(message)
            if role == "system" and number == 0:
                continue
            lines.append(f"{len(lines) + 1}. {role}: {text.replace(chr(10), chr(92) + 'n')}")
            if number % _BREATH == 0:
                await self._sleep(0)
        return "\n".join(lines)


def _read(message: EncodedMessage) -> tuple[str, str]:
    """Role and text of a message; what is not text is named in brackets."""
    fields = json.loads(message)
    content = fields.get("content")
    if isinstance(content, list):
        content = " ".join(str(part.get("text") or f"[{part.get('type')}]") for part in content)
    return str(fields.get("role")), str(content or "")


def _last_said(messages: Sequence[EncodedMessage]) -> tuple[str, list[str]]:
    """The directive whose turn it is, and what tools have returned for the one before it."""
    replies, results, said = 0, [], ""
    for message in reversed(messages):
        role, text = _read(message)
        if role == "user" and not text.startswith(NOTE_MARK):
            said = text.strip()
            break
        replies += role == "assistant"
        if role == "tool" and replies == 0:
            results.append(text)
    lines = [line.strip() for line in said.split("\n", DIRECTIVES_MAX)]
    if not replies and not (len(lines) > 1 and all(line.startswith("!") for line in lines)):
        return said, []
    return (lines[replies] if replies < len(lines) else ""), results[::-1]


def _first_said(messages: Sequence[EncodedMessage]) -> str:
    return next((text.strip() for role, text in map(_read, messages) if role == "user"), "")


def _count(messages: Sequence[EncodedMessage]) -> str:
    """Without the system prompt that it is shown first."""
    number = len(messages) - (bool(messages) and _read(messages[0])[0] == "system")
    return "1 message" if number == 1 else f"{number} messages"


def _quoted(text: str) -> str:
    line = " ".join(text.split(None, QUOTE_MAX)[:QUOTE_MAX])  # so many words are longer than what is quoted
    return f'"{line if len(line) <= QUOTE_MAX else line[:QUOTE_MAX] + "…"}"'


def _pieces(answer: str) -> Iterator[str]:
    """Word by word, each with the space around it; a long one in slices, so that no step of it takes long."""
    if len(answer) > WORDS_MAX:
        return (answer[begin : begin + _SLICE] for begin in range(0, len(answer), _SLICE))
    return (found.group() for found in re.finditer(r"\s*\S+\s*", answer))


def _tool_calls(argument: str, request: ModelRequest) -> ModelDone:
    calls = []
    for number, part in enumerate(argument.split(" ;; "), 1):
        name, _, arguments = part.strip().partition(" ")
        function = {"name": name or "nothing", "arguments": arguments.strip() or "{}"}
        calls.append({"id": f"call_{number}", "type": "function", "function": function})
    usage = _usage(request, len(argument))
    return ModelDone(finish_reason="tool_calls", model=NAME, usage=usage, tool_calls=tuple(calls))


def _usage(request: ModelRequest, answer_chars: int) -> Usage:
    shown = sum(map(len, request.messages)) + len(request.tools)
    return Usage(prompt_tokens=shown // 4, completion_tokens=max(1, answer_chars // 4))


def _seconds(argument: str) -> float:
    try:
        seconds = float(argument or 5)
    except ValueError:
        return 5.0
    return min(SECONDS_MAX, seconds) if math.isfinite(seconds) and seconds > 0 else 0.0


def _whole(argument: str) -> int:
    digits = argument.strip()
    return min(WORDS_MAX, int(digits)) if digits.isdecimal() and len(digits) < 20 else 100
