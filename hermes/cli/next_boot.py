"""Waiting for a daemon that went away to come back, as after a restart, and going on with its answer."""

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
_LOOK_UP_S = 0.25
_PATIENCE_S = 1.0


def life_of(client: AdminClient) -> int | None:
    """Which of its lives the daemon is in; None: nobody answers, or is ready."""
    try:
        info = client.get("/info", timeout_s=_PATIENCE_S)
    except HermesError:  # gone, or still busy starting
        return None
    return int(info.get("epoch", 0)) if info.get("ready", True) else None


def until_back(client: AdminClient, *, after: int | None = None) -> Iterator[None]:
    """Yields now and then until a daemon is ready, in another life than `after`."""
    deadline = time.monotonic() + AWAY_S
    while (life := life_of(client)) is None or life == after:
        if time.monotonic() > deadline:
            raise NotRunningError(f"no daemon came back within {AWAY_S:.0f} s")
        time.sleep(_LOOK_UP_S)
        yield


def across_restarts(
    conversation: Conversation, client: AdminClient, answer: Generator[Fact]
) -> Generator[Fact, None, None]:
    """The answer, also when the daemon restarts in the middle of it, and as often as it does."""
    lost = 0
    while True:
        try:
            yield from answer
        except NotRunningError as error:
            turn = conversation.turn
            if turn is None:
                raise
            lost += 1
            what = str(error) if lost == 1 else "the daemon went away once more"
            yield NoticeShown(text=f"{what}. Waiting up to {AWAY_S:.0f} s for it")
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
