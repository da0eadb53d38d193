"""What follows a reset that is on disk: processes that it left behind are told of or ended, and hooks are called.

A hook is for whoever keeps something of a conversation, memory say; it gets the session that ended, as a task of its
own. One that takes too long is cut off, one that fails is logged; neither keeps anything from going on. All this is
done once, by the daemon that made the reset: what it had not done when it was killed, nobody does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from loguru import logger

from hermes.actors.session_protocol import Reset
from hermes.types import Session

TIMEOUT_S = 30.0
AT_ONCE = 4

Hook: TypeAlias = Callable[[Session], Awaitable[None]]


class AfterReset:
    def __init__(
        self, hooks: Sequence[Hook] = (), *, end_process: Callable[[str], None], timeout_s: float = TIMEOUT_S
    ) -> None:
        self._hooks = hooks
        self._end_process = end_process
        self._timeout_s = timeout_s
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    def __call__(self, ended: Session, reset: Reset) -> None:
        if reset.left:
            logger.info("session {} was reset: {}", ended.id, reset.left)
        for process in reset.end:
            self._end_process(process)
        for hook in self._hooks:
            task = asyncio.create_task(self._run(hook, ended), name=f"after the reset of {ended.id}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, hook: Hook, ended: Session) -> None:
        async with self._slots:
            try:
                async with asyncio.timeout(self._timeout_s):
                    await hook(ended)
            # The outermost edge of somebody else's code, which a reset must not depend on.
            except Exception as error:  # noqa: BLE001
                logger.error("session {}: what follows its reset failed: {!r}", ended.id, error)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
