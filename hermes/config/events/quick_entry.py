"""Entries of the section `quick_commands`."""

from __future__ import annotations

import re
from typing import Final

from hermes.config.events.entries import NAME, EntryFields, read_entry
from hermes.domain.access.role import Role
from hermes.domain.event.quick_command import QuickCommand, QuickKind

_KEYS: Final = frozenset({NAME, "type", "command", "target", "prompt", "description", "role", "timeout", "timeout_s"})
_NAME: Final = re.compile(r"\w[\w-]{0,31}")
_TEXT: Final = {QuickKind.EXEC: "command", QuickKind.ALIAS: "target", QuickKind.PROMPT: "prompt"}


def parse_quick_command(text: str) -> QuickCommand:
    """Return the command of an entry. Raises ValueError."""
    found = read_entry(text, _KEYS)
    fields = EntryFields(found, f"/{str(found.get(NAME, ''))[:40]}")
    name = fields.text(NAME).lower()
    if not _NAME.fullmatch(name):
        raise fields.fail("the name must be one word of letters, digits, - and _")
    kind = QuickKind(fields.choice("type", QuickKind.EXEC, [each.value for each in QuickKind]))
    default = Role.OWNER if kind is QuickKind.EXEC else Role.USER
    timeout = fields.number("timeout", 30.0, least=0.1, most=600)
    return QuickCommand(
        name=name,
        kind=kind,
        text=fields.text(_TEXT[kind], required=True),
        help=fields.text("description"),
        needs=Role(fields.choice("role", default, [each.value for each in reversed(Role)])),
        timeout_s=fields.number("timeout_s", timeout, least=0.1, most=600),
    )


def quick_names_complaint(texts: tuple[str, ...]) -> str:
    names = [parse_quick_command(text).name for text in texts]
    twice = next((name for name in names if names.count(name) > 1), "")
    return f"the command /{twice} is set twice" if twice else ""
