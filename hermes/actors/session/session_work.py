"""Work in flight of one session: a model call, tool calls, a summary. It follows the state.

Work that the state asks for is started; work that it no longer asks for is cancelled. So a stop needs no bookkeeping,
and a restart finds its work by itself. A task that has reported stays known until the state has changed, so nothing
is started twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import assert_never

from hermes.domain.access.permission import grants_for, is_unasked
from hermes.domain.child.child import only_tools
from hermes.domain.ids import SessionId
from hermes.domain.media.scope import scope_of
from hermes.domain.memory.scope import scope_in
from hermes.domain.read.transcript import Transcript
from hermes.domain.session.jobs import ModelJob, Report, SummaryJob, ToolJob
from hermes.domain.session.protocol import ModelCallWork, SummaryWork, Task, ToolCallWork
from hermes.domain.session.state import Session, root_of
from hermes.domain.session.turn_role import role_of_turn
from hermes.ports.agent import Agent, Work


class SessionWork:
    __slots__ = ("_agent", "_began", "_report", "_works")

    def __init__(self, agent: Agent, report: Callable[[Report], None]) -> None:
        self._agent = agent
        self._report = report
        self._works: dict[Task, Work] = {}
        self._began = 0.0  # time of the loop when the last work began

    def follow(
        self, wanted: tuple[Task, ...], session: Session, transcript: Transcript, granted: frozenset[str]
    ) -> None:
        """Start and cancel work to match the state. `granted` are rules that are allowed in every session."""
        for task in [task for task in self._works if task not in wanted]:
            self._works.pop(task).cancel()
        for task in wanted:
            if task not in self._works:
                self._began = asyncio.get_running_loop().time()
                self._works[task] = self._start(task, session, transcript, granted)

    @property
    def written(self) -> str:
        """Return the part of the answer that the model has written so far."""
        return "".join(work.written for work in self._works.values())

    @property
    def age_s(self) -> float | None:
        """Return for how long the newest work runs; None: nothing runs."""
        return asyncio.get_running_loop().time() - self._began if self._works else None

    def cancel(self) -> None:
        for work in self._works.values():
            work.cancel()
        self._works.clear()

    def _start(self, task: Task, session: Session, transcript: Transcript, granted: frozenset[str]) -> Work:
        match task:
            case ModelCallWork():
                return self._agent.think(_model_job(task, session, transcript, granted), self._report)
            case ToolCallWork():
                return self._agent.act(_tool_job(task, session, transcript, granted), self._report)
            case SummaryWork():
                return self._agent.summarise(_summary_job(task, session, transcript), self._report)
            case _:
                assert_never(task)


def _model_job(task: ModelCallWork, session: Session, transcript: Transcript, granted: frozenset[str]) -> ModelJob:
    assert session.turn is not None
    return ModelJob(
        session=session.id,
        root=root_of(session),
        media_scope=scope_of(session.place),
        turn=task.turn,
        attempt=task.attempt,
        replies=task.replies,
        messages=tuple(transcript.messages),
        size_bytes=transcript.size_bytes,
        options=session.turn.options,
        pictured=transcript.pictured,
        prompt=transcript.prompt if session.prompted else None,
        platform=session.platform,
        preferences=session.preferences,
        grants=session.grants,
        granted=grants_for(role_of_turn(session), granted, session.grants),
        spent=session.usage + session.delegated,
        last=task.last,
        company=session.company,
        role=role_of_turn(session),
        by=session.turn.by,
        instructions=transcript.instructions,
        chat=f"{session.place.platform}:{session.place.chat}" if session.place is not None else "",
        assignment=session.assignment,
        scope=scope_in(session, role_of_turn(session), session.turn.by),
    )


def _tool_job(task: ToolCallWork, session: Session, transcript: Transcript, granted: frozenset[str]) -> ToolJob:
    name, arguments = transcript.arguments(task.call)
    calls = session.turn.calls if session.turn is not None else ()
    turn = session.turn
    gates = [call.gate for call in calls if call.id == task.call]
    own = frozenset(rule for gate in gates for rule in gate.rules)
    role = role_of_turn(session)
    return ToolJob(
        session=session.id,
        root=root_of(session),
        media_scope=scope_of(session.place),
        turn=task.turn,
        attempt=task.attempt,
        call=task.call,
        name=name,
        arguments=arguments,
        platform=session.platform,
        permitted=own | grants_for(role, granted, session.grants),
        unasked=is_unasked(role, yolo=session.preferences.yolo),
        role=role,
        by=turn.by if turn is not None and not turn.several else "",
        only=only_tools(session.assignment),
        replies=turn.replies if turn is not None else 0,
        purpose=session.assignment.purpose if session.assignment is not None else None,
        scope=scope_in(session, role, turn.by) if turn is not None else None,
        children=tuple(SessionId(child) for call in calls if call.id == task.call for child in call.children),
        context="".join(gate.context for gate in gates),
    )


def _summary_job(task: SummaryWork, session: Session, transcript: Transcript) -> SummaryJob:
    return SummaryJob(
        session=session.id,
        root=root_of(session),
        messages=tuple(transcript.messages),
        focus=task.focus,
        preferences=session.preferences,
        turn=session.turn.id if session.turn is not None else None,
    )
