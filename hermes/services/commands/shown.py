"""Lists that were shown last, so that a number refers to the list that the person has read.

Kept in memory for the last 500 callers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from hermes.domain.ids import SessionId
from hermes.services.commands.reply import CommandCaller

_MAX = 500


class ShownChoices:
    def __init__(self) -> None:
        self._lists: OrderedDict[tuple[str | None, ...], tuple[SessionId, ...]] = OrderedDict()

    def remember(self, caller: CommandCaller, sessions: Sequence[SessionId]) -> None:
        self._lists[_caller_key(caller)] = tuple(sessions)
        self._lists.move_to_end(_caller_key(caller))
        if len(self._lists) > _MAX:
            self._lists.popitem(last=False)

    def last(self, caller: CommandCaller) -> tuple[SessionId, ...]:
        return self._lists.get(_caller_key(caller), ())


def _caller_key(caller: CommandCaller) -> tuple[str | None, ...]:
    return caller.source.platform, caller.source.user, caller.key or caller.session
