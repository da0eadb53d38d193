"""Tasks of the delivery actor: delivery attempts, signs, and followers of running turns."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeAlias

from loguru import logger

from hermes.domain.errors import DeliveryError, HermesError

Work: TypeAlias = Callable[[], Awaitable[None]]  # a function, so that a stop leaves no coroutine that never ran


class AttemptTasks:
    def __init__(self, tell: Callable[[object], object]) -> None:
        self._tell = tell
        self._tasks: set[asyncio.Task[None]] = set()

    def attempt(self, work: Work, report: Callable[[HermesError | None], object]) -> None:
        """Run an attempt, and tell its report with the error, if there is one."""

        async def run() -> None:
            error: HermesError | None = None
            try:
                await work()
            except HermesError as known:
                error = known
            except Exception as unknown:  # noqa: BLE001 - an adapter's error must not block a chat
                logger.opt(exception=unknown).error("delivery: unexpected error in a platform adapter")
                error = DeliveryError(f"unexpectedly: {unknown!r}", arrived_perhaps=True)
            self._tell(report(error))

        self.start(run(), name="delivery")

    def sign(self, work: Work) -> None:
        """Show a sign. Nobody misses one that could not be shown."""

        async def run() -> None:
            with suppress(DeliveryError):
                await work()

        self.start(run(), name="sign")

    def start(self, coroutine: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
