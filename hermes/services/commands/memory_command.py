"""Command `/memory`: see, edit, approve and undo the notes that a conversation uses."""

from __future__ import annotations

import time
from typing import Final

from hermes.domain.access.role import OWNER_SURFACES, Role
from hermes.domain.memory.scope import OWNER_SCOPE, MemoryScope, MemoryTarget, ScopeKind, scope_in
from hermes.domain.values import replace
from hermes.services.commands.context import CommandContext, Handler, whole_number
from hermes.services.commands.reply import CommandReply, refused
from hermes.services.memory.memory_request import MemoryRequest, MemoryVerb, perform
from hermes.services.memory.memory_service import MemoryService
from hermes.services.memory.memory_text import text_of

_MAX_NUMBER: Final = 10**6
_MAX_TEXT: Final = 6000
_VERBS: Final = {
    "": MemoryVerb.SHOW,
    "undo": MemoryVerb.REVERT,
    **{
        each.value: each
        for each in MemoryVerb
        if each not in (MemoryVerb.PEOPLE, MemoryVerb.SHOW)  # other people are for `hermes memory`
    },
}
_EDITS: Final = (MemoryVerb.ADD, MemoryVerb.REPLACE, MemoryVerb.REMOVE)
_NUMBERED: Final = (MemoryVerb.APPROVE, MemoryVerb.REJECT)


async def manage(context: CommandContext) -> CommandReply:
    service = context.services.memories
    scope = None if service is None else service.scope(await _scope(context))
    if service is None or scope is None:
        return refused("This conversation has no memory.")
    if scope.kind is not ScopeKind.CHAT and _is_in_company(context):
        return refused("Your notes are yours: send /memory in a private chat.")
    word, _, rest = context.argument.partition(" ")
    verb = _VERBS.get(word.lower())
    if verb is None:
        return context.usage(f"“{word[:40]}” is not something to do with memory.")
    wish = MemoryRequest(verb=verb, by=context.who, operation=_operation(context))
    asked = await _edit(service, scope, wish, rest) if verb in _EDITS else _numbered(wish, rest)
    if isinstance(asked, str):
        return context.usage(asked)
    return CommandReply(text=text_of(verb, await perform(service, scope, asked), _moment)[:_MAX_TEXT])


async def _scope(context: CommandContext) -> MemoryScope | None:
    source = context.caller.source
    if context.session is None and source.platform in OWNER_SURFACES and context.caller.role is Role.OWNER:
        return OWNER_SCOPE
    session = context.session or await context.opened()
    return scope_in(session, context.caller.role, context.who)


def _is_in_company(context: CommandContext) -> bool:
    """Return whether others read what is answered here."""
    session = context.session
    return session is not None and session.place is not None and ":dm:" not in session.key


def _target(text: str) -> tuple[MemoryTarget | None, str]:
    """Split the name of a target from the beginning of a text."""
    word, _, rest = text.partition(" ")
    return (MemoryTarget(word), rest.strip()) if word in set(MemoryTarget) else (None, text)


def _operation(context: CommandContext) -> str:
    """Return an id that makes a repeated message of a platform one change; empty if the message has none."""
    inbound = context.caller.inbound
    return f"command:{inbound}" if inbound is not None else ""


async def _edit(service: MemoryService, scope: MemoryScope, wish: MemoryRequest, rest: str) -> MemoryRequest | str:
    """Return the edit that was asked for, or why it cannot be understood."""
    target, content = _target(rest.strip())
    wish = replace(wish, target=target)
    if wish.verb is MemoryVerb.ADD:
        return replace(wish, content=content)
    number, _, content = content.partition(" ")
    entries = await _entries(service, scope, target or MemoryTarget.MEMORY)
    place = whole_number(number, low=1, high=len(entries))
    if place is None:
        return "Give the number of an entry, as /memory shows it."
    return replace(
        wish, old_text=entries[place - 1], content="" if wish.verb is MemoryVerb.REMOVE else content.strip()
    )


def _numbered(wish: MemoryRequest, rest: str) -> MemoryRequest | str:
    target, text = _target(rest.strip())
    number = whole_number(text, low=0, high=_MAX_NUMBER) if text else None
    if (text and number is None) or (wish.verb in _NUMBERED and number is None):
        return "Give the number of a change."
    return replace(wish, target=target, number=number)


async def _entries(service: MemoryService, scope: MemoryScope, target: MemoryTarget) -> tuple[str, ...]:
    return next((each.entries for each in await service.read(scope) if each.target is target), ())


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


HANDLERS: dict[str, Handler] = {"memory": manage}
