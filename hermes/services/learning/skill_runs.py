"""Runs of skills: which turn loaded which version, and how it ended.

The start of a run is durable before the model sees the skill. Its end follows from live events; a run whose end was
lost with the daemon counts as interrupted, and counts neither for nor against its version.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final

from loguru import logger

from hermes.domain.change import Change, ChangeAction, ChangeAuthor
from hermes.domain.errors import ChangeKnownError, HermesError
from hermes.domain.events import CallEnded, Steered, TurnAnswered, TurnGaveUp
from hermes.domain.skill.skill_effect import RunOutcome, SkillRun, encoded, runs_of, subject_of
from hermes.domain.skill.skill_version import SkillOrigin
from hermes.domain.turn.turn_failure import FailureKind
from hermes.domain.values import dataclass, replace
from hermes.ports.given import Clock
from hermes.ports.storage import Journal
from hermes.services.learning.skill_history import commit

_MAX_OPEN: Final = 1000


class _OpenTurn:
    """A turn that has loaded skills and runs."""

    def __init__(self) -> None:
        self.skills: dict[str, str] = {}  # name: digest
        self.calls = 0
        self.corrected = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    session: str
    turn: str
    skills: dict[str, str]
    outcome: RunOutcome
    calls: int
    tokens: int


class SkillRuns:
    NOTED: Final = (CallEnded, Steered, TurnAnswered, TurnGaveUp)  # events for `note`

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock
        self._writing = asyncio.Lock()
        self._open: OrderedDict[str, _OpenTurn] = OrderedDict()
        self._last: OrderedDict[str, EndedRun] = OrderedDict()  # by session
        self._ended: asyncio.Queue[EndedRun] = asyncio.Queue(_MAX_OPEN)

    async def loaded(self, name: str, digest: str, origin: SkillOrigin) -> None:
        """Record the start of a run. Raises what the journal refuses."""
        turn = self._open.setdefault(origin.turn, _OpenTurn())
        if turn.skills.get(name) == digest:
            return
        turn.skills[name] = digest
        while len(self._open) > _MAX_OPEN:
            self._open.popitem(last=False)
        run = SkillRun(digest=digest, turn=origin.turn, at=self._clock())
        await self._append(name, run, origin.session, "loaded")

    async def runs(self, name: str) -> list[SkillRun]:
        return runs_of(await self._journal.fetch(lambda reader: reader.changes(subject_of(name))))

    def note(self, event: CallEnded | Steered | TurnAnswered | TurnGaveUp) -> None:
        """Follow the turns that loaded skills. Called for every turn, so it is quick for others."""
        if not self._open:
            return
        match event:
            case CallEnded() if event.turn in self._open:
                self._open[event.turn].calls += 1
            case Steered() if event.turn in self._open:
                self._open[event.turn].corrected = True
            case TurnAnswered() | TurnGaveUp() if event.turn in self._open:
                self._end(event)

    def _end(self, event: TurnAnswered | TurnGaveUp) -> None:
        turn = self._open.pop(event.turn)
        outcome = RunOutcome.CORRECTED if turn.corrected else RunOutcome.FINISHED
        tokens = 0
        if isinstance(event, TurnGaveUp):
            was_stopped = event.failure.kind is FailureKind.CANCELLED
            outcome = RunOutcome.CORRECTED if was_stopped else RunOutcome.FAILED
        else:
            tokens = event.usage.prompt_tokens + event.usage.completion_tokens
        ended = EndedRun(
            session=event.session,
            turn=event.turn,
            skills=turn.skills,
            outcome=outcome,
            calls=turn.calls,
            tokens=tokens,
        )
        self._last[event.session] = ended
        while len(self._last) > _MAX_OPEN:
            self._last.popitem(last=False)
        if not self._ended.full():
            self._ended.put_nowait(ended)

    def take_back(self, session: str) -> None:
        """Note that a person took back the last turn of a session, so that its run counts as corrected."""
        ended = self._last.pop(session, None)
        if ended is not None and not self._ended.full():
            self._ended.put_nowait(replace(ended, outcome=RunOutcome.CORRECTED))

    async def follow(self, then: Callable[[str, EndedRun], Awaitable[None]]) -> None:
        """Record the ends of runs, and call `then` with each skill and run. Runs until it is cancelled."""
        while True:
            ended = await self._ended.get()
            for name, digest in ended.skills.items():
                run = SkillRun(
                    digest=digest,
                    turn=ended.turn,
                    at=self._clock(),
                    outcome=ended.outcome,
                    calls=ended.calls,
                    tokens=ended.tokens,
                )
                try:
                    await self._append(name, run, ended.session, ended.outcome.value)
                    await then(name, ended)
                except HermesError as error:
                    logger.warning("skills: could not record the end of a run of {}: {}", name, error)

    async def _append(self, name: str, run: SkillRun, session: str, step: str) -> None:
        async with self._writing:
            subject = subject_of(name)
            last = await self._journal.fetch(lambda reader: reader.last_change(subject))
            change = Change(
                subject=subject,
                number=1 if last is None else last.number + 1,
                at=run.at,
                author=ChangeAuthor.SYSTEM,
                action=ChangeAction.ADD,
                operation=f"{run.turn}:{run.digest[:16]}:{step}",
                payload=encoded(run),
                session=session,
                turn=run.turn,
            )
            try:
                await commit(self._journal, change)
            except ChangeKnownError:
                return
