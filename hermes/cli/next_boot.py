"""Wait for the daemon to come back after a restart, and continue to follow the answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hermes.domain.errors import HermesError, NotRunningError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from hermes.cli.chat.conversation import Conversation
    from hermes.cli.client import AdminClient

AWAY_S = 60.0
_POLL_S = 0.25
_TIMEOUT_S = 1.0


def current_boot(client: AdminClient) -> int | None:
    """Return the epoch of the daemon's current boot; None if no daemon is ready."""
    try:
        info = client.get("/info", timeout_s=_TIMEOUT_S)
    except HermesError:  # not running, or still starting
        return None
    return int(info.get("epoch", 0)) if info.get("ready", True) else None


def until_back(client: AdminClient, *, after: int | None = None) -> Iterator[None]:
    """Yield every poll until a daemon is ready whose boot is not `after`. Raises NotRunningError after AWAY_S."""
    deadline = time.monotonic() + AWAY_S
    while (boot := current_boot(client)) is None or boot == after:
        if time.monotonic() > deadline:
            raise NotRunningError(f"the daemon did not come back within {AWAY_S:.0f} s")
        time.sleep(_POLL_S)
        yield


def across_restarts(
    conversation: Conversation, client: AdminClient, begin: Callable[[], Generator[None]]
) -> Generator[None]:
    """Follow a turn, and continue after each restart of the daemon. A message that was lost is sent once more."""
    work, unconfirmed = begin, 0
    while True:
        try:
            yield from work()
        except NotRunningError as error:
            unconfirmed += not conversation.turn
            if unconfirmed > 1:
                raise
            conversation.is_away = True
            conversation.add_notice(f"{error}. Waiting up to {AWAY_S:.0f} s for a daemon; Ctrl-C exits")
            yield
        else:
            return
        time.sleep(_POLL_S)
        try:
            for _ in until_back(client):
                yield
        except NotRunningError as error:
            raise NotRunningError(f"{error}. {conversation.kept()}") from error
        conversation.add_notice("the daemon is back")
        yield
        conversation.is_away = False
        work = conversation.follow if conversation.turn else begin
