"""Long poll. An update is confirmed by polling for later ones, and only after it is on disk.

A poll confirms all updates before its offset. While one of them is slow, for example a file download, later ones are
polled again without confirmation, and the new ones among them are taken. After a crash Telegram sends unconfirmed
updates again, and their ids identify duplicates.
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
from hermes.ports.chat import ChatIntake

_FIRST_WAIT_S = 0.25  # first pause between polls while an update is slow
_MAX_WAIT_S = 1.0


class Poll:
    def __init__(self, addressing: TelegramAddressing, *, timeout_s: int) -> None:
        self._addressing = addressing
        self._timeout_s = timeout_s
        self._introduce = Introduction()
        self._offset: int | None = None  # None: start with the oldest unconfirmed update
        self._tasks: dict[int, asyncio.Task[None]] = {}  # by update id, until it is confirmed
        self._answered = False  # the first poll of a run does not wait, to check the connection

    async def run(self, client: TelegramClient, chat_intake: ChatIntake) -> None:
        """Poll until cancelled. Raises PlatformError; can be called again."""
        try:
            self._answered = False
            intake = TelegramIntake(client, chat_intake, await self._introduce(client), self._addressing, polls=True)
            while True:
                await self._poll_once(client, chat_intake, intake)
        except TelegramError as error:
            raise platform_error(error) from error
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            self._tasks.clear()

    async def _poll_once(self, client: TelegramClient, chat_intake: ChatIntake, intake: TelegramIntake) -> None:
        """Poll once, then wait until all updates are taken or the next poll is due."""
        wait_s = _FIRST_WAIT_S
        while True:
            at_once = bool(self._tasks) or not self._answered
            asked_at = time.monotonic()
            updates = await client.updates(self._offset, 0 if at_once else self._timeout_s, KINDS)
            self._answered = True
            chat_intake.alive()
            for update in updates:
                number = int(update["update_id"])
                if number not in self._tasks and (self._offset is None or number >= self._offset):
                    self._tasks[number] = asyncio.create_task(intake.take(update), name=f"update {number}")
                    wait_s = _FIRST_WAIT_S
            if self._tasks:
                await asyncio.sleep(0)  # let them start, so that each picture joins its album
                intake.polled(asked_at)
                album_s = max(0.0, intake.poll_at - time.monotonic())
                await asyncio.wait(self._tasks.values(), timeout=min(wait_s, album_s))
            self._advance_offset()
            if not self._tasks:
                return
            wait_s = min(2 * wait_s, _MAX_WAIT_S)

    def _advance_offset(self) -> None:
        """Advance the offset to the first update that is not stored; the next poll confirms those before."""
        for number in sorted(self._tasks):
            if not self._tasks[number].done():
                return
            self._tasks.pop(number).result()
            self._offset = number + 1
