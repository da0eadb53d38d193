"""Work after a reset: background processes that it left behind are reported or ended.

A step that takes too long is cut off, and one that fails is logged. Neither stops the others.

The work is stored in the reset's own transaction (`outgoing`) and deleted when it is done. A daemon that is killed or
stopped in between leaves it to the next one (`take_up`): a step may run twice, but is never left out.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial

from loguru import logger

from hermes.domain.errors import BadRowError, HermesError
from hermes.domain.ids import SessionId
from hermes.domain.operations import PutFact
from hermes.domain.read.reader import Reader
from hermes.domain.session.protocol import ResetSession
from hermes.domain.session.state import Session
from hermes.domain.values import dataclass
from hermes.ports.storage import Journal

TIMEOUT_S = 30.0
AT_ONCE = 4
PREFIX = "after_reset:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Aftermath:
    session: SessionId
    ended: Session | None  # None: deleted since then
    left: str = ""
    end: tuple[str, ...] = ()  # processes


class AfterReset:
    def __init__(
        self,
        *,
        journal: Journal,
        end_process: Callable[[str], Awaitable[None]],
        tell: Callable[[Session, str], Awaitable[None]] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._journal = journal
        self._end_process = end_process
        self._tell = tell  # reports leftovers of a conversation that has no chat
        self._timeout_s = timeout_s
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._tasks: dict[SessionId, asyncio.Task[None]] = {}
        self._closed = False

    def outgoing(self, session: SessionId, reset: ResetSession) -> tuple[PutFact, ...]:
        """Return the operations to store together with the reset."""
        if not (reset.left or reset.end):
            return ()
        value = json.dumps({"left": reset.left, "end": reset.end}).encode()
        return (PutFact(name=PREFIX + session, value=value),)

    def __call__(self, ended: Session, reset: ResetSession) -> None:
        """Start the actions. Called when the reset is on disk."""
        if self.outgoing(ended.id, reset):
            self._start(Aftermath(session=ended.id, ended=ended, left=reset.left, end=reset.end))

    def take_up(self) -> None:
        """Perform the actions that an earlier daemon left unfinished."""
        self._journal.read(_read_unfinished, self._on_unfinished)

    def _on_unfinished(self, undone: list[Aftermath] | None, error: HermesError | None) -> None:
        if error is not None:
            logger.warning("after reset: could not read unfinished actions: {}", error)
        for aftermath in undone or ():
            self._start(aftermath)

    def _start(self, aftermath: Aftermath) -> None:
        session = aftermath.session
        if session not in self._tasks and not self._closed:
            task = asyncio.create_task(self._perform(aftermath), name=f"after the reset of {session}")
            self._tasks[session] = task
            task.add_done_callback(lambda _: self._tasks.pop(session, None))

    async def _perform(self, aftermath: Aftermath) -> None:
        if aftermath.left:
            logger.info("session {} was reset: {}", aftermath.session, aftermath.left)
        steps = [partial(self._end_process, process) for process in aftermath.end]
        ended = aftermath.ended
        if self._tell is not None and aftermath.left and ended is not None and ended.place is None:
            advice = "" if aftermath.end else " `hermes kill ID` ends one."
            steps.append(partial(self._tell, ended, aftermath.left + advice))
        await asyncio.gather(*(self._run(step, aftermath.session) for step in steps))
        done = PutFact(name=PREFIX + aftermath.session, value=None)
        self._journal.commit((done,), partial(_log_refusal, aftermath.session))

    async def _run(self, step: Callable[[], Awaitable[None]], session: SessionId) -> None:
        async with self._slots:
            try:
                async with asyncio.timeout(self._timeout_s):
                    await step()
            # The outermost edge of foreign code: a reset must not depend on it.
            except Exception as error:  # noqa: BLE001
                logger.error("session {}: an action after its reset failed: {!r}", session, error)

    async def close(self) -> None:
        """Cancel the actions. The next daemon performs them again."""
        self._closed = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _read_unfinished(reader: Reader) -> list[Aftermath]:
    found = []
    for name in reader.facts(PREFIX):
        session = SessionId(name.removeprefix(PREFIX))
        value = json.loads(reader.fact(name) or b"{}")
        found.append(
            Aftermath(
                session=session,
                ended=_head(reader, session),
                left=value.get("left", ""),
                end=tuple(value.get("end", ())),
            )
        )
    return found


def _head(reader: Reader, session: SessionId) -> Session | None:
    try:
        return reader.head(session)
    except BadRowError as error:
        logger.error("session {}: skipping hooks after its reset, its row is damaged: {}", session, error)
        return None


def _log_refusal(session: SessionId, error: HermesError | None) -> None:
    if error is not None:
        logger.warning("session {}: could not store that the actions after its reset are done: {}", session, error)
