"""The lists that people were shown last, so that a number means what it meant when it was read.

Kept in memory for the last few hundred callers: whoever comes after that gets the list as it is then.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from hermes.domain.types import SessionId
from hermes.services.commands.reply import CommandCaller

_MAX = 500


class ShownChoices:
    def __init__(self) -> None:
        self._lists: OrderedDict[tuple[str | None, ...], tuple[SessionId, ...]] = OrderedDict()

    def remember(self, caller: CommandCaller, sessions: Sequence[SessionId]) -> None:
        self._lists[_who(caller)] = tuple(sessions)
        self._lists.move_to_end(_who(caller))
        if len(self._lists) > _MAX:
            self._lists.popitem(last=False)

    def last(self, caller: CommandCaller) -> tuple[SessionId, ...]:
        return self._lists.get(_who(caller), ())


def _who(caller: CommandCaller) -> tuple[str | None, ...]:
    return caller.source.platform, caller.source.user, caller.key or caller.session
