"""Scheduled jobs of a daemon: their service, their delivery and the start of their scheduler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, tzinfo
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from hermes.actors.jobs.scheduler_actor import LookForJobs, SchedulerActor
from hermes.actors.kernel.ref import ActorDeadError, ActorRef
from hermes.config.time_zone import find_zone, zone_complaint
from hermes.config.toolset import complaint_about_tool
from hermes.domain.child.child import Purpose
from hermes.domain.errors import BadInputError
from hermes.domain.ids import SessionId
from hermes.domain.job.occurrence import JobTerms
from hermes.domain.session.state import Session
from hermes.ports.given import Clock
from hermes.ports.job.jobs import JobSettings
from hermes.ports.storage import Journal
from hermes.services.children.child_service import ChildService
from hermes.services.events.channels import ChannelDirectory
from hermes.services.home import HomeService
from hermes.services.jobs.job_delivery import JobDelivery
from hermes.services.jobs.job_service import JobService
from hermes.services.sessions import SessionService
from hermes.supervision.root import Children
from hermes.system.cron_times import CronsimTimes
from hermes.system.random_id import new_marker

if TYPE_CHECKING:
    from hermes.config.settings import Config

SCHEDULER = "scheduler"  # child of the root
_DAY_S = 86_400.0
_ZONES = 1000  # time zones that are kept: finding one reads a file


def job_settings(config: Config, environ: Mapping[str, str]) -> JobSettings:
    cron = config.cron
    own = find_zone(cron.timezone or config.session_reset.timezone, environ)
    return JobSettings(
        terms=JobTerms(
            zone=own,
            times=CronsimTimes(),
            keep_ended_s=cron.keep_ended_days * _DAY_S,
            retry_delay_s=cron.retry_delay_s,
        ),
        find_zone=lru_cache(_ZONES)(partial(_named_zone, own, environ)),
        enabled=cron.enabled,
        keep_runs=cron.keep_runs,
        wrap=cron.wrap_response,
        approvals=cron.approvals,
        retries=cron.retries,
        jitter_s=cron.jitter_s,
        max_steps=cron.max_steps,
        max_tokens=cron.max_tokens,
        max_usd=cron.max_usd,
    )


def default_job_settings() -> JobSettings:
    """Return settings without a configuration: all times are in UTC."""
    return JobSettings(
        terms=JobTerms(zone=UTC, times=CronsimTimes()), find_zone=lru_cache(_ZONES)(partial(_named_zone, UTC, {}))
    )


def _named_zone(own: tzinfo, environ: Mapping[str, str], name: str) -> tzinfo:
    if not name:
        return own
    if problem := zone_complaint(name):
        raise BadInputError(f"{name[:80]!r} {problem}", param="timezone", code="bad_timezone")
    return find_zone(name, environ)


class JobSystem:
    """Jobs and their scheduler. Nothing starts before `open`."""

    def __init__(
        self,
        settings: JobSettings,
        *,
        sessions: SessionService,
        homes: HomeService,
        child_sessions: ChildService,
        children: Children,
        platforms: tuple[str, ...],
        journal: Journal,
        clock: Clock,
        steady: Clock,
    ) -> None:
        self._sessions = sessions
        self._journal = journal
        self._clock = clock
        self._steady = steady
        self._child_sessions = child_sessions
        self._children = children
        self._is_open = False
        self._next_due: float | None = None  # as the scheduler saw it last
        channels = ChannelDirectory(sessions=sessions, journal=journal, homes=homes, platforms=platforms, clock=clock)
        self.delivery = JobDelivery(
            sessions=sessions, homes=homes, channels=channels, journal=journal, clock=clock, new_marker=new_marker
        )
        self.service = JobService(
            journal=journal,
            clock=clock,
            settings=settings,
            channels=channels,
            head=self._head,
            tool_problem=complaint_about_tool,
            new_operation=lambda: new_marker() + new_marker(),
            look=self.look,
            start_runs=child_sessions.start,
        )

    async def _head(self, session: SessionId) -> Session | None:
        return (await self._sessions.heads([session])).get(session)

    def configure(self, settings: JobSettings) -> None:
        self.service.settings = settings
        self.look()

    def open(self) -> None:
        """Let due jobs run, and finish what an earlier daemon left."""
        self._is_open = True
        self.delivery.take_up()
        self.look()

    async def close(self) -> None:
        self._is_open = False
        await self.delivery.close()

    def look(self) -> None:
        with suppress(ActorDeadError):  # restarting: it looks by itself
            self._children[SCHEDULER].tell(LookForJobs())

    def _set_next_due(self, at: float | None) -> None:
        self._next_due = at

    def facts(self) -> dict[str, Any]:
        """Return what the status shows; nothing without jobs."""
        running = sum(duty.purpose is Purpose.JOB for duty in self._child_sessions.duties)
        if self._next_due is None and not running:
            return {}
        return {"jobs": {"next_due_at": self._next_due, "running": running}}

    def scheduler(self) -> Callable[..., ActorRef[Any]]:
        return partial(
            SchedulerActor.start,
            journal=self._journal,
            clock=self._clock,
            steady=self._steady,
            settings=lambda: self.service.settings,
            is_open=lambda: self._is_open and self.service.settings.enabled and not self._sessions.closed,
            start_runs=self._child_sessions.start,
            note=self.service.note,
            coming=self._set_next_due,
        )
