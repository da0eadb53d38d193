"""Conversion of the agent's reports to session events. Pure.

It is done when the report is taken, not when it comes: one that finds no space on disk is offered again later, and
what was said meanwhile must not be left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from hermes.domain.read.transcript import Transcript, carry
from hermes.domain.session.jobs import ModelReport, RetryReport, SummaryReport, ToolReport
from hermes.domain.session.protocol import (
    Event,
    ModelAnswered,
    ModelFailed,
    RetryModel,
    Summarised,
    SummaryFailed,
    ToolReturned,
)
from hermes.domain.session.request import waiting_of
from hermes.domain.types import Session, SessionId

Report: TypeAlias = ModelReport | RetryReport | ToolReport | SummaryReport


def event_of(
    report: Report, session: Session, transcript: Transcript | None, new_session: Callable[[], SessionId]
) -> Event:
    match report:
        case ModelReport():
            return _of_model(report)
        case RetryReport():
            return RetryModel(
                turn=report.turn,
                attempt=report.attempt,
                replies=report.replies,
                model=report.model,
                failure=report.failure,
                tries=report.tries,
                delay_s=report.delay_s,
            )
        case ToolReport():
            return ToolReturned(
                turn=report.turn,
                attempt=report.attempt,
                call=report.call,
                message=report.message,
                outcome=report.outcome,
                took_s=report.took_s,
            )
        case SummaryReport() if report.problem:
            return SummaryFailed(reason=report.problem)
        case SummaryReport():
            assert transcript is not None  # the summary was made from it
            carried = carry(transcript, report.messages)
            return Summarised(
                child=new_session(),
                messages=report.messages,
                waiting=waiting_of(session, transcript),
                reason=session.compressing,
                usage=report.usage,
                model=report.model,
                origins=carried.origins,
                starts=carried.starts,
            )


def _of_model(report: ModelReport) -> ModelAnswered | ModelFailed:
    if report.failure is not None:
        return ModelFailed(turn=report.turn, attempt=report.attempt, replies=report.replies, failure=report.failure)
    return ModelAnswered(
        turn=report.turn,
        attempt=report.attempt,
        replies=report.replies,
        message=report.message,
        text=report.text,
        model=report.model,
        finish_reason=report.finish_reason,
        usage=report.usage,
        calls=report.calls,
        prompt=report.prompt,
        context_tokens=report.context_tokens,
        context_full=report.context_full,
        waited_s=report.waited_s,
    )
