"""The built-in model for trying Hermes without any account. It is not an AI: it does what a line tells it to.

The last user message may be a directive:

    !help               this list
    !echo TEXT          answers TEXT (alone: an empty answer)
    !slow [SECONDS]     streams its answer over that time (5 s)
    !long N             answers with N words
    !count              says how many messages it was shown
    !history            lists every message it was shown, one a line
    !tool NAME {JSON}   asks to run a tool
    !fail KIND          fails in that way, for example rate_limit
    !cut                stops in the middle of its answer
    !hang               never answers

Anything else is quoted back. Answers depend on nothing but the messages. Tokens are words: of the message it answers
and of its answer. Only `!history` reads every message, so that a late turn costs what the first did.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

from hermes.errors import ModelError
from hermes.ports import ModelChunk, ModelDone, ModelRequest, ModelText
from hermes.types import EncodedMessage, Failure, FailureKind, Usage

NAME = "offline"
HELP = "\n".join(line.strip() for line in (__doc__ or "").splitlines() if line.startswith("    !"))
QUOTE_MAX = 200
WORDS_MAX = 100_000
SECONDS_MAX = 3600.0
_BREATH = 64  # words or messages between two looks of the event loop


class OfflineModel:
    name = NAME

    def __init__(self, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._sleep = sleep

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        said = _last_said(request.messages)
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
                yield _tool_call(argument, said)
                return
        answer = await self._answer(directive, argument, said, request.messages)
        words = re.findall(r"\s*\S+\s*", answer)
        pause_s = _seconds(argument) / max(1, len(words)) if directive == "!slow" else 0.0
        for position, word in enumerate(words):
            yield ModelText(text=word)
            if pause_s or position % _BREATH == 0:
                await self._sleep(pause_s)
        yield ModelDone(finish_reason="stop", model=NAME, usage=_usage(said, len(words)))

    async def close(self) -> None:
        """It holds nothing."""

    async def _answer(self, directive: str, argument: str, said: str, messages: Sequence[EncodedMessage]) -> str:
        match directive:
            case "!help":
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
        return (
            f"You said {_quoted(said)}. This conversation has {_count(messages)} and began with "
            f"{_quoted(_first_said(messages))}. I am not an AI but the built-in offline model; try !help. "
            "For a real one set `model.provider: openai` in config.yaml."
        )

    async def _history(self, messages: Sequence[EncodedMessage]) -> str:
        lines = []
        for number, message in enumerate(messages, 1):
            role, text = _read(message)
            lines.append(f"{number}. {role}: {text.replace(chr(10), chr(92) + 'n')}")
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


def _said(messages: Iterable[EncodedMessage]) -> str:
    """What the first user message among them says."""
    return next((text for role, text in map(_read, messages) if role == "user"), "")


def _last_said(messages: Sequence[EncodedMessage]) -> str:
    return _said(reversed(messages)).strip()


def _first_said(messages: Sequence[EncodedMessage]) -> str:
    return _said(messages).strip()


def _count(messages: Sequence[EncodedMessage]) -> str:
    return "1 message" if len(messages) == 1 else f"{len(messages)} messages"


def _quoted(text: str) -> str:
    line = " ".join(text.split())
    return f'"{line if len(line) <= QUOTE_MAX else line[:QUOTE_MAX] + "…"}"'


def _tool_call(argument: str, said: str) -> ModelDone:
    name, _, arguments = argument.strip().partition(" ")
    function = {"name": name or "nothing", "arguments": arguments.strip() or "{}"}
    call = {"id": "call_1", "type": "function", "function": function}
    return ModelDone(finish_reason="tool_calls", model=NAME, usage=_usage(said, 1), tool_calls=(call,))


def _usage(said: str, words: int) -> Usage:
    return Usage(prompt_tokens=len(said.split()), completion_tokens=words)


def _seconds(argument: str) -> float:
    try:
        seconds = float(argument or 5)
    except ValueError:
        return 5.0
    return min(SECONDS_MAX, seconds) if math.isfinite(seconds) and seconds > 0 else 0.0


def _whole(argument: str) -> int:
    digits = argument.strip()
    return min(WORDS_MAX, int(digits)) if digits.isdecimal() and len(digits) < 20 else 100
