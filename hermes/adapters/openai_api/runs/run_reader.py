"""Reads runs: one by its token, or a page of all, newest first.

A run is a turn, and its id is made of session and turn, so that there is no table of runs. The list reads the journal
backwards from a position, which is its cursor. Pages stay stable while new runs start.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from hermes.adapters.openai_api.runs.run_object import RunObject
from hermes.adapters.openai_api.turns.pending import asked_in
from hermes.adapters.openai_api.turns.token_parameter import not_found
from hermes.adapters.openai_api.turns.turn_view import turn_of
from hermes.domain.events import TurnGaveUp
from hermes.domain.ids import RUN, SessionId, TurnToken
from hermes.domain.read.views import JournalEntry
from hermes.domain.records import MessageReceived
from hermes.domain.session.builder import open_turns
from hermes.domain.values import dataclass, replace
from hermes.ports.sessions import Sessions

OPEN_STATUSES = ("queued", "running", "waiting_for_approval", "waiting_for_answer")
RunStatus: TypeAlias = Literal[
    "queued", "running", "waiting_for_approval", "waiting_for_answer", "completed", "failed", "cancelled"
]
_WINDOW = 500  # records per read
_MAX_READ = 10_000  # records per page: the cursor continues after them


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    session: SessionId | None = None
    platform: str = ""
    status: str = ""

    def admits(self, entry: JournalEntry) -> bool:
        """Return whether a record begins a run that may be listed."""
        record = entry.record
        return (
            isinstance(record, MessageReceived)
            and not record.steer
            and self.session in (None, entry.session)
            and self.platform in ("", record.source.platform)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    runs: list[RunObject]
    cursor: int | None  # position before which the next page begins; None: there is none


class RunReader:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def run(self, token: TurnToken) -> RunObject:
        """Return a run. Raises ProblemError if there is none."""
        found = await self._find(token)
        if found is None:
            raise not_found(token.text(RUN), RUN)
        return found

    async def page(self, wanted: RunFilter, *, before: int | None, limit: int) -> RunPage:
        """Return the newest runs before a position."""
        if wanted.status in OPEN_STATUSES:
            return await self._open_runs(wanted, limit)
        position = self._sessions.journal_end() + 1 if before is None else before
        last = max(1, position - _MAX_READ)
        runs: list[RunObject] = []
        while position > last:
            first = max(1, position - _WINDOW)
            page = await self._sessions.journal(first - 1, position - first)
            for entry in reversed([each for each in page.entries if each.position < position]):
                if wanted.admits(entry) and (run := await self._listed(entry, wanted)) is not None:
                    runs.append(run)
                    if len(runs) == limit:
                        return RunPage(runs=runs, cursor=entry.position if entry.position > 1 else None)
            position = first
        return RunPage(runs=runs, cursor=position if position > 1 else None)

    async def _open_runs(self, wanted: RunFilter, limit: int) -> RunPage:
        """Return the runs with that status. Few sessions have open turns, so that there is one page."""
        tokens = [
            (turn.accepted_at, TurnToken(session=head.id, turn=turn.id))
            for head in await self._sessions.unfinished()
            if wanted.session in (None, head.id) and wanted.platform in ("", head.platform)
            for turn in open_turns(head)
        ]
        found = [await self._find(token) for _, token in sorted(tokens, key=lambda each: each[0], reverse=True)]
        runs = [run for run in found if run is not None and run.status == wanted.status]
        return RunPage(runs=runs[:limit], cursor=None)

    async def _listed(self, entry: JournalEntry, wanted: RunFilter) -> RunObject | None:
        assert isinstance(entry.record, MessageReceived)
        run = await self._find(TurnToken(session=entry.session, turn=entry.record.turn))
        return run if run is not None and wanted.status in ("", run.status) else None

    async def _find(self, token: TurnToken) -> RunObject | None:
        outcome = await self._sessions.outcome(token.session, token.turn)
        records = await self._sessions.records(token.session, token.turn)
        if not records:
            return None
        run = RunObject(id=token.text(RUN), turn=token.turn, session=token.session, records=records)
        if outcome is not None:
            gave_up = outcome if isinstance(outcome, TurnGaveUp) else None
            return replace(run, session=outcome.session, gave_up=gave_up)
        head = (await self._sessions.view(token.session)).session
        asked = asked_in(head)
        if asked is not None and asked.turn != turn_of(records, token.turn):
            asked = None  # question of another turn that comes first
        return replace(run, session=head.id, asked=asked)
