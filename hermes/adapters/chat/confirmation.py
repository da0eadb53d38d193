"""Typed answers to a command that asks for confirmation: a plain yes or no acts like its button. Pure."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from hermes.domain.values import dataclass
from hermes.services.commands.registry import SlashCommand
from hermes.services.commands.reply import confirmation

VALID_S: Final = 600.0
MAX_OPEN: Final = 1000
_YES: Final = frozenset({"yes", "y", "ok", "okay"})
_NO: Final = frozenset({"no", "n"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    yes: str  # command lines that the answers stand for
    no: str
    at: float


class Confirmations:
    """Open confirmations by person, in memory. Buttons work without them, also after a restart."""

    def __init__(self) -> None:
        self._asked: dict[Hashable, _Asked] = {}

    def expect(self, who: Hashable, command: SlashCommand, choices: tuple[str, ...], now: float) -> None:
        """Expect a typed answer, if a reply of the command with these `choices` asks for confirmation."""
        answers = confirmation(command, choices)
        if answers is None:
            return
        if len(self._asked) >= MAX_OPEN:
            self._asked.clear()
        yes, no = (f"/{command.name} {answer}" for answer in answers)
        self._asked[who] = _Asked(yes=yes, no=no, at=now)

    def take(self, who: Hashable, text: str, now: float) -> str:
        """Return the command line that a message stands for, or an empty string. Closes the question."""
        asked = self._asked.pop(who, None)
        if asked is None or now - asked.at > VALID_S:
            return ""
        word = text.strip().lower().strip(" .!")
        return asked.yes if word in _YES else asked.no if word in _NO else ""
