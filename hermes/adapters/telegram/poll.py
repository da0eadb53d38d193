"""The long poll. An update is confirmed by asking for later ones, and that happens only after it is on disk.

Asking confirms all updates before the one that is asked for. So while one of them takes its time, a file is fetched
say, those after it are asked for again and again, unconfirmed, and whatever is new among them is taken meanwhile. A
crash anywhere means that Telegram sends the unconfirmed ones again, and their ids tell that they are known.
"""

from __future__ import annotations

import asyncio
import time

from telegram.error import TelegramError

from hermes.adapters.telegram.addressed import TelegramAddressing
from hermes.adapters.telegram.api_client import TelegramClient
from hermes.adapters.telegram.failure import platform_error
from hermes.adapters.telegram.intake import TelegramIntake
from hermes.adapters.telegram.introduction import Introduction
from hermes.adapters.telegram.update import KINDS
from hermes.ports.chat import ChatEdge

_FIRST_WAIT_S = 0.25  # until it is looked whether there is more, while something takes its time
_LONGEST_WAIT_S = 1.0


class Poll:
    def __init__(self, manners: TelegramAddressing, *, timeout_s: int) -> None:
        self._manners = manners
        self._timeout_s = timeout_s
        self._introduce = Introduction()
        self._offset: int | None = None  # None: from the oldest that was never confirmed
        self._tasks: dict[int, asyncio.Task[None]] = {}  # by update, until it is confirmed
        self._heard = False  # an answer, since it was run: the first is not waited for long, as it proves the rest

    async def run(self, wire: TelegramClient, edge: ChatEdge) -> None:
        """Until cancelled. Raises PlatformError, and can be run again."""
        try:
            self._heard = False
            intake = TelegramIntake(wire, edge, await self._introduce(wire), self._manners, asks=True)
            while True:
                await self._turn(wire, edge, intake)
        except TelegramError as error:
            raise platform_error(error) from error
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            self._tasks.clear()

    async def _turn(self, wire: TelegramClient, edge: ChatEdge, intake: TelegramIntake) -> None:
        """Ask once, and wait until all that is at hand was taken, or until new ones should be asked for."""
        wait_s = _FIRST_WAIT_S
        while True:
            at_once = bool(self._tasks) or not self._heard
            asked_at = time.monotonic()
            updates = await wire.updates(self._offset, 0 if at_once else self._timeout_s, KINDS)
            self._heard = True
            edge.alive()
            for update in updates:
                number = int(update["update_id"])
                if number not in self._tasks and (self._offset is None or number >= self._offset):
                    self._tasks[number] = asyncio.create_task(intake.take(update), name=f"update {number}")
                    wait_s = _FIRST_WAIT_S
            if self._tasks:
                await asyncio.sleep(0)  # they begin, and each picture is with its album
                intake.asked(asked_at)
                album_s = max(0.0, intake.ask_at - time.monotonic())
                await asyncio.wait(self._tasks.values(), timeout=min(wait_s, album_s))
            self._move_on()
            if not self._tasks:
                return
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    def _move_on(self) -> None:
        """The next request confirms what was taken, up to the first that was not."""
        for number in sorted(self._tasks):
            if not self._tasks[number].done():
                return
            self._tasks.pop(number).result()
            self._offset = number + 1
