"""Built-in model to try Hermes without an account. It is not an AI: it executes directives.

The last user message may be a directive:

    !directives         this list; also !help, but on Slack that is Hermes's own list
    !echo TEXT          answers TEXT (alone: an empty answer)
    !slow [SECONDS]     streams its answer over that time (5 s)
    !long N             answers with N words
    !count              answers with the number of messages
    !history            lists all messages, one per line
    !tool NAME {JSON}   asks to run a tool; several in one line are separated by " ;; "
    !fail KIND          fails with that kind, for example rate_limit
    !cut                stops in the middle of its answer
    !hang               never answers

Several lines of directives are one turn: each line answers one model call. When tools have run and no line is left,
it answers with their results. It quotes any other message. Answers depend only on the messages. Four bytes count as a
token. Only `!history` reads every message, so that late turns cost as much as the first one.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence

from hermes.domain.errors import ModelError
from hermes.domain.session.note import NOTE_MARK
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.turn.usage import Usage
from hermes.ports.agent import Model, ModelChunk, ModelDone, ModelRequest, ModelText

NAME = "offline"
HELP = "\n".join(line.strip() for line in (__doc__ or "").splitlines() if line.startswith("    !"))
QUOTE_MAX = 200
WORDS_MAX = 100_000
SECONDS_MAX = 3600.0
DIRECTIVES_MAX = 1000  # lines
_YIELD_EVERY = 64  # words or messages until the event loop runs again
_SLICE = 4096  # characters


class OfflineModel(Model):
    name = NAME
    provider = NAME
    endpoint = ""

    def __init__(self, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._sleep = sleep

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        prompt, results = _current_directive(request.messages)
        directive, _, argument = prompt.partition(" ")
        match directive:
            case "!fail" if argument.strip() in set(FailureKind):
                kind = FailureKind(argument.strip())
                raise ModelError(Failure(kind=kind, message=f"the offline model failed on request with {kind}"))
            case "!hang":
                await asyncio.Event().wait()
            case "!cut":
                yield ModelText(text="This answer will not be ")
                return
            case "!tool":
                yield _tool_calls(argument, request)
                return
        answer = await self._answer(directive, argument, prompt, results, request.messages)
        pause_s = _seconds(argument) / len(answer.split()) if directive == "!slow" else 0.0
        for position, piece in enumerate(_pieces(answer)):
            yield ModelText(text=piece)
            if pause_s or position % _YIELD_EVERY == 0:
                await self._sleep(pause_s)
        yield ModelDone(finish_reason="stop", model=NAME, usage=_usage(request, len(answer)))

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""

    async def _answer(
        self,
        directive: str,
        argument: str,
        prompt: str,
        results: Sequence[str],
        messages: Sequence[EncodedMessage],
    ) -> str:
        match directive:
            case "!help" | "!directives":
                return f"I am the offline model, not an AI. Directives:\n\n{HELP}"
            case "!echo":
                return argument
            case "!slow":
                return f"This answer takes {_seconds(argument):g} seconds, one word after the other."
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
            f"You said {_quoted(prompt)}. This conversation has {_count(messages)} and began with "
            f"{_quoted(_first_user_text(messages))}. I am not an AI but the built-in offline model; "
            "!help lists what I can do. `hermes setup` chooses a real one."
        )

    async def _history(self, messages: Sequence[EncodedMessage]) -> str:
        lines: list[str] = []
        for number, message in enumerate(messages):
            role, text = _read(message)
            if role == "system" and number == 0:
                continue
            lines.append(f"{len(lines) + 1}. {role}: {text.replace(chr(10), chr(92) + 'n')}")
            if number % _YIELD_EVERY == 0:
                await self._sleep(0)
        return "\n".join(lines)


def _read(message: EncodedMessage) -> tuple[str, str]:
    """Return role and text of a message. Other parts appear as their type in brackets."""
    fields = json.loads(message)
    content = fields.get("content")
    if isinstance(content, list):
        content = " ".join(str(part.get("text") or f"[{part.get('type')}]") for part in content)
    return str(fields.get("role")), str(content or "")


def _current_directive(messages: Sequence[EncodedMessage]) -> tuple[str, list[str]]:
    """Return the current directive and the tool results of the previous one."""
    replies, results, prompt = 0, [], ""
    for message in reversed(messages):
        role, text = _read(message)
        if role == "user" and not text.startswith(NOTE_MARK):
            prompt = text.strip()
            break
        replies += role == "assistant"
        if role == "tool" and replies == 0:
            results.append(text)
    lines = [line.strip() for line in prompt.split("\n", DIRECTIVES_MAX)]
    if not replies and not (len(lines) > 1 and all(line.startswith("!") for line in lines)):
        return prompt, []
    return (lines[replies] if replies < len(lines) else ""), results[::-1]


def _first_user_text(messages: Sequence[EncodedMessage]) -> str:
    return next((text.strip() for role, text in map(_read, messages) if role == "user"), "")


def _count(messages: Sequence[EncodedMessage]) -> str:
    """Count the messages, without the system prompt."""
    number = len(messages) - (bool(messages) and _read(messages[0])[0] == "system")
    return "1 message" if number == 1 else f"{number} messages"


def _quoted(text: str) -> str:
    line = " ".join(text.split(None, QUOTE_MAX)[:QUOTE_MAX])  # enough words for the longest quote
    return f'"{line if len(line) <= QUOTE_MAX else line[:QUOTE_MAX] + "…"}"'


def _pieces(answer: str) -> Iterator[str]:
    """Yield the answer word by word, or a long answer in slices, so that no step takes long."""
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
        seconds = float(argument.split(maxsplit=1)[0])
    except (ValueError, IndexError):
        return 5.0
    return min(SECONDS_MAX, seconds) if math.isfinite(seconds) and seconds > 0 else 0.0


def _whole(argument: str) -> int:
    digits = argument.strip()
    return min(WORDS_MAX, int(digits)) if digits.isdecimal() and len(digits) < 20 else 100
