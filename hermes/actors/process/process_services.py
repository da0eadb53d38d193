"""Services that all process actors share: the process host, threads for its blocking calls, and notices to sessions.

Each call to a thread and each notice ends in exactly one callback on the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from loguru import logger

from hermes.actors.process.process_registry import ProcessRegistry
from hermes.domain.errors import HermesError
from hermes.domain.events import Event
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.process.process_record import Heartbeat
from hermes.domain.turn.submission import Receipt, Submission
from hermes.domain.values import dataclass
from hermes.ports.given import Clock
from hermes.ports.processes import ProcessHost
from hermes.ports.storage import Journal
from hermes.processes.watch import Breaker, admit

T = TypeVar("T")
THREADS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSettings:
    max_per_session: int = 16
    max_total: int = 64
    heartbeat_s: float = 5.0
    stale_after_s: float = 1800.0
    max_age_s: float = 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """Notice for the person of a conversation. An id is announced once."""

    id: str
    session: SessionId
    text: str
    turn: TurnId | None = None  # its followers see the notice


class HostThreads:
    """Thread pool for blocking calls, so that a slow start of one process delays no other work."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="process-host")

    def run(self, call: Callable[[], T], then: Callable[[T | None, Exception | None], None]) -> None:
        def done(future: asyncio.Future[T]) -> None:
            if not future.cancelled():
                error = future.exception()
                assert error is None or isinstance(error, Exception)
                then(None if error else future.result(), error)

        self._loop.run_in_executor(self._pool, call).add_done_callback(done)

    async def call(self, call: Callable[[], T]) -> T:
        return await self._loop.run_in_executor(self._pool, call)

    async def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._pool.shutdown)


class NoticeSender:
    """Sends notices to sessions, or to people if the session has ended."""

    def __init__(
        self, submit: Callable[[Submission], Awaitable[Receipt]], announce: Callable[[Announcement], Awaitable[None]]
    ) -> None:
        self._submit = submit
        self._announce = announce
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, submission: Submission, then: Callable[[HermesError | None], None]) -> None:
        self._begin(self._submit(submission), str(submission.inbound), then)

    def announce(self, announcement: Announcement, then: Callable[[HermesError | None], None]) -> None:
        self._begin(self._announce(announcement), announcement.id, then)

    def _begin(self, work: Awaitable[object], name: str, then: Callable[[HermesError | None], None]) -> None:
        task = asyncio.create_task(self._run(work, name, then), name=f"notice {name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, work: Awaitable[object], name: str, then: Callable[[HermesError | None], None]) -> None:
        try:
            await work
        except HermesError as error:
            then(error)
        except Exception as error:  # noqa: BLE001 - outermost edge of a task: the caller must get the error
            logger.opt(exception=error).error("{} could not be handed over", name)
            then(HermesError(f"it failed unexpectedly ({type(error).__name__})"))
        else:
            then(None)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


class NoticeLimit:
    """Over all processes together."""

    def __init__(self) -> None:
        self._breaker = Breaker()

    def admit(self, now: float) -> bool:
        self._breaker, admitted = admit(self._breaker, now)
        return admitted


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessServices:
    host: ProcessHost
    threads: HostThreads
    notice_sender: NoticeSender
    board: ProcessRegistry
    journal: Journal
    clock: Clock
    notices: NoticeLimit
    settings: Callable[[], ProcessSettings]
    new_turn: Callable[[], TurnId]
    send_heartbeat: Callable[[Heartbeat], None]  # to the session, by way of the directory
    redact: Callable[[str], str] = str
    publish: Callable[[Event], None] = lambda _: None
