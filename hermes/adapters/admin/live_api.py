"""Admin API for a live view: one sample of sessions, actors, processes, platforms and figures."""

from __future__ import annotations

from typing import Annotated, Any

from aiohttp import web
from msgspec import Meta

from hermes.adapters.http import parameter, presentation
from hermes.adapters.http.parameter import Flag
from hermes.adapters.http.schema import Fields
from hermes.adapters.http.service import Service, json_response
from hermes.domain.read.activity import activity_of
from hermes.domain.read.explain import last_problem
from hermes.domain.read.live import LiveQuery, LiveSession, LiveSort, step_age_s
from hermes.domain.turn.usage import Usage
from hermes.ports.metrics import DaemonFigures, LiveSample


class LiveFields(Fields):
    sort: LiveSort = LiveSort.STATE
    find: Annotated[str, Meta(max_length=200)] = ""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    busy: Flag = "0"
    children: Flag = "0"


class LiveApi:
    def __init__(self, service: Service) -> None:
        self._service = service

    def table(self) -> list[tuple[web.RouteDef, str]]:
        about = "A sample; ?sort=state|age|mail|tokens|cost|active, ?find=WORDS, ?limit=N, ?busy=1, ?children=1"
        return [(web.get("/live", self.live), about)]

    async def live(self, request: web.Request) -> web.Response:
        service = self._service
        wish = parameter.query(request, LiveFields)
        query = LiveQuery(
            sort=wish.sort,
            find=wish.find,
            limit=wish.limit,
            is_busy=parameter.is_set(wish.busy),
            children=parameter.is_set(wish.children),
        )
        sample = await service.operations.live(query)
        now = service.clock()
        running = [view for view in service.processes.views() if view.ended_at is None]
        return json_response(
            {
                "at": now,
                **_daemon(sample, service.operations.ready()),
                "sessions": [_session(each, now) for each in sample.sessions],
                "matching": sample.matching,
                "phases": {phase.value: number for phase, number in sample.phases.items()},
                "actors": [presentation.plain(actor) for actor in sample.actors],
                "platforms": list(sample.platforms),
                "processes": [service.shown_process(view) for view in running],
            }
        )


def _daemon(sample: LiveSample, not_ready: str) -> dict[str, Any]:
    figures = sample.figures
    return {
        "version": figures.version,
        "ready": not not_ready,
        "reason": not_ready,
        "uptime_s": round(figures.uptime_s, 1),
        "cpu_s": sample.cpu_s,
        "memory_bytes": figures.memory_bytes,
        "sessions_stored": figures.sessions_stored,
        "turns_running": figures.turns_running,
        "turns_calling": sample.calling,
        "turns_ended": dict(figures.turns.ended),
        "usage": presentation.plain(_used(figures)),
        "commits": figures.commits,
        "commits_took_s": figures.commits_took_s,
        "transactions": figures.transactions,
        "waiting_writes": figures.waiting_writes,
        "mailbox": dict(figures.mailbox),
        "outbox": figures.outbox,
        "dead_letters": figures.dead_letters,
        "loop_lag_s": [round(lag_s, 6) for lag_s in sample.lag_s],
    }


def _used(figures: DaemonFigures) -> Usage:
    total = Usage()
    for used in figures.turns.used.values():
        total += used
    return total


def _session(live: LiveSession, now: float) -> dict[str, Any]:
    session, activity = live.session, activity_of(live.session)
    return {
        "id": session.id,
        "title": session.preferences.title,
        "platform": session.platform,
        "key": session.key,
        "phase": session.phase.value,
        "doing": activity.kind.value,
        "what": list(activity.what),
        "step": activity.step,
        "step_age_s": round(step_age_s(live, now), 3),
        "mailbox": live.mailbox,
        "queued": len(session.queue),
        "turn_id": session.turn.id if session.turn else None,
        "turns": session.turns,
        "messages": session.messages,
        "usage": presentation.plain(session.usage),
        "active_at": session.active_at,
        "problem": last_problem(session),
    }
