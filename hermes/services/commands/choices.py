"""Commands that set preferences of a conversation. Its compressions and branches keep them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

from hermes.domain.session.state import Preferences
from hermes.domain.turn.reasoning import reasoning_of
from hermes.domain.turn.submission import Busy
from hermes.services.commands.context import CommandContext, Handler
from hermes.services.commands.registry import REASONING
from hermes.services.commands.reply import CommandReply, refused

DEFAULT = "default"
SHOW, HIDE = "show", "hide"
_LAST_MESSAGES = 20
_MODEL_NAME = re.compile(r"[!-~]{1,200}")
_MAX_BUTTON = 60  # characters; platforms cut longer labels
_MAX_BUTTONS = 25
_BUSY = {
    Busy.QUEUE: "waits for the end of the turn",
    Busy.STEER: "is added to the turn",
    Busy.INTERRUPT: "stops the turn and is answered instead",
}


async def model(context: CommandContext) -> CommandReply:
    known, wanted = context.services.models(), context.argument
    chosen = _chosen(context).model
    if not wanted:
        now = f"The model is {chosen}." if chosen else f"The model is {next(iter(known), 'as configured')}."
        others = f" Known: {', '.join(known)}." if known else ""
        return CommandReply(
            text=f"{now}{others} /model [PROVIDER:]NAME sets one, /model default restores the configured one.",
            choices=_for_buttons(DEFAULT, *known),
        )
    if wanted.lower() == DEFAULT:
        return await _prefer(context, "model", "", f"The model is the configured one, {next(iter(known), '')}.")
    if not _MODEL_NAME.fullmatch(wanted):
        return context.usage("This is not a valid model name.")
    if problem := context.services.model_problem(wanted):
        return refused(f"{problem}.")
    name = next((each for each in known if each.lower() == wanted.lower()), "")
    if name:
        return await _prefer(context, "model", name, f"The model is now {name}.")
    doubt = f"It is not one of the configured models{_meant(wanted, known)}; the next message shows if it exists."
    return await _prefer(
        context,
        "model",
        wanted,
        f"The model is now {wanted}. {doubt} /model default restores the configured one.",
    )


async def personality(context: CommandContext) -> CommandReply:
    known, wanted = context.services.personalities(), context.argument.lower()
    if wanted in ("", "list"):
        now = _in_force(_chosen(context).personality, context.services.configured().personality, "none")
        return CommandReply(
            text=f"The personality is {now}. Available: {', '.join(known)}, none, default.",
            choices=_for_buttons(DEFAULT, "none", *known),
        )
    if wanted == DEFAULT:
        return await _prefer(context, "personality", "", "The personality is the configured one.")
    if wanted != "none" and wanted not in known:
        return refused(f"There is no personality “{wanted[:50]}”{_meant(wanted, known)}. /personality lists them.")
    return await _prefer(context, "personality", wanted, f"The personality is now {wanted}.")


async def reasoning(context: CommandContext) -> CommandReply:
    wanted = context.argument.lower()
    chosen = _chosen(context)
    if not wanted:
        now = _in_force(chosen.reasoning, context.services.configured().reasoning, "that of the model")
        shown = "shown" if chosen.show_reasoning else "hidden"
        return CommandReply(
            text=f"The reasoning effort is {now}; reasoning is {shown}. Available: {', '.join(REASONING)}, default, "
            "show, hide.",
            choices=_for_buttons(*REASONING, DEFAULT, SHOW, HIDE),
        )
    if wanted == SHOW:
        return await _prefer(context, "show_reasoning", True, await _last_reasoning(context))
    if wanted == HIDE:
        return await _prefer(context, "show_reasoning", False, "Reasoning is no longer shown.")
    if wanted == DEFAULT:
        return await _prefer(context, "reasoning", "", "The reasoning effort is the configured one.")
    if wanted not in REASONING:
        return context.usage(f"There is no reasoning effort “{wanted[:50]}”{_meant(wanted, REASONING)}.")
    return await _prefer(context, "reasoning", wanted, f"The reasoning effort is now {wanted}.")


async def _last_reasoning(context: CommandContext) -> str:
    """Return the reasoning of the last answer, with what follows from showing it."""
    stored = [] if context.open is None else await context.sessions.messages(context.open.id, None, _LAST_MESSAGES)
    thoughts = (reasoning_of(each.message).text for each in reversed(stored))
    last = next(filter(None, thoughts), "")
    shown = f"Reasoning of the last answer:\n{last}" if last else "The last answers have no reasoning."
    return f"{shown}\n\nFrom now on, chats show it with each answer. /reasoning hide ends it."


async def busy(context: CommandContext) -> CommandReply:
    wanted = context.argument.lower()
    if not wanted:
        chosen, configured = _chosen(context).busy, context.services.configured().busy or Busy.QUEUE
        behaviour = f"{_BUSY[Busy(chosen or configured)]} ({chosen or f'{configured}, as configured'})"
        return CommandReply(
            text=f"A message that comes while a turn runs {behaviour}.", choices=_for_buttons(*Busy, DEFAULT)
        )
    if wanted == DEFAULT:
        return await _prefer(context, "busy", "", "A message that comes while a turn runs is handled as configured.")
    if wanted not in set(Busy):
        return context.usage(f"“{wanted[:50]}” is not a way to handle a message{_meant(wanted, tuple(Busy))}.")
    return await _prefer(
        context, "busy", wanted, f"From now on a message that comes while a turn runs {_BUSY[Busy(wanted)]}."
    )


async def yolo(context: CommandContext) -> CommandReply:
    wanted = context.argument.lower() or ("off" if _chosen(context).yolo else "on")
    if wanted not in ("on", "off"):
        return context.usage(f"“{wanted[:50]}” is neither on nor off.")
    texts = {
        "on": "Tools run without approval in this conversation. Blocked commands stay blocked. /yolo off ends it.",
        "off": "Tools ask for approval before dangerous commands.",
    }
    return await _prefer(context, "yolo", wanted == "on", texts[wanted])


async def grants(context: CommandContext) -> CommandReply:
    verb, _, kind = context.argument.partition(" ")
    if verb == "withdraw" and kind.strip():
        await context.sessions.withdraw(kind.strip())
        return CommandReply(text=f"Commands of the kind {kind.strip()} need approval again.")
    if verb:
        return context.usage(f"“{context.argument[:50]}” is not understood.")
    kinds = await context.sessions.granted()
    if not kinds:
        return CommandReply(text="There are no standing grants.")
    return CommandReply(
        text="\n".join(["Granted in every conversation:", *kinds, "/grants withdraw KIND withdraws one."])
    )


async def _prefer(context: CommandContext, name: str, value: str | bool, text: str) -> CommandReply:
    session = await context.opened()
    return context.reply(text, await context.sessions.prefer(session.id, name, value, context.reason))


def _in_force(chosen: str, configured: str, default: str) -> str:
    """Return the value that applies, and where it comes from."""
    return chosen or f"{configured or default} (as configured)"


def _for_buttons(*choices: str) -> tuple[str, ...]:
    """Return the choices that fit on a button; the others can be typed."""
    return tuple(dict.fromkeys(choice for choice in choices if len(choice) <= _MAX_BUTTON))[:_MAX_BUTTONS]


def _chosen(context: CommandContext) -> Preferences:
    return Preferences() if context.open is None else context.open.preferences


def _meant(word: str, known: Sequence[str]) -> str:
    near = get_close_matches(word, known, n=1)
    return f" (did you mean {near[0]}?)" if near else ""


HANDLERS: dict[str, Handler] = {
    "model": model,
    "personality": personality,
    "reasoning": reasoning,
    "busy": busy,
    "grants": grants,
    "yolo": yolo,
}
