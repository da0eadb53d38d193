"""Wait for the daemon to come back after a restart, and continue to follow the answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hermes.cli.chat.conversation import kept
from hermes.cli.chat.fact import NoticeShown, Quiet, TextDiscarded
from hermes.domain.errors import HermesError, NotRunningError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from hermes.cli.chat.conversation import Conversation
    from hermes.cli.chat.fact import Fact
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
    conversation: Conversation, client: AdminClient, answer: Generator[Fact]
) -> Generator[Fact, None, None]:
    """Yield the facts of an answer, and continue after each restart of the daemon."""
    lost = 0
    while True:
        try:
            yield from answer
        except NotRunningError as error:
            turn = conversation.turn
            if turn is None:
                raise
            lost += 1
            what = str(error) if lost == 1 else "the daemon stopped again"
            yield NoticeShown(text=f"{what}. Waiting up to {AWAY_S:.0f} s for it to come back")
        else:
            return
        yield from _quiet_until_back(conversation, client)
        yield TextDiscarded()
        answer = conversation.watch(turn)


def _quiet_until_back(conversation: Conversation, client: AdminClient) -> Iterator[Fact]:
    try:
        for _ in until_back(client):
            yield Quiet()
    except NotRunningError as error:
        raise NotRunningError(f"{error}. {kept(conversation.session)}") from error
