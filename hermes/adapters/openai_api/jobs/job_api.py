"""Scheduled jobs: create, list, change, run and delete them. For the owner."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from hermes.adapters.http.parameter import idempotency_key, query
from hermes.adapters.http.problem import refusal
from hermes.adapters.http.service import Service, json_response
from hermes.adapters.openai_api.jobs.job_request import JobChange, JobListQuery, JobRequest, JobRunListQuery
from hermes.domain.job.job import Job
from hermes.ports.job.jobs import JobCaller, Jobs


class JobApi:
    def __init__(self, service: Service) -> None:
        self._service = service

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/jobs", self.all),
            web.post("/api/jobs", self.create),
            web.get("/api/jobs/{id}", self.one),
            web.patch("/api/jobs/{id}", self.edit),
            web.delete("/api/jobs/{id}", self.remove),
            web.post("/api/jobs/{id}/pause", self.pause),
            web.post("/api/jobs/{id}/resume", self.resume),
            web.post("/api/jobs/{id}/run", self.run),
            web.get("/api/jobs/{id}/runs", self.history),
        ]

    @property
    def _jobs(self) -> Jobs:
        if self._service.jobs is None:
            raise refusal(404, "not_found", "This server has no scheduled jobs.")
        return self._service.jobs

    def _caller(self, request: web.Request) -> JobCaller:
        key = idempotency_key(request)
        return JobCaller(source=self._service.source(request), operation=f"api:{key}" if key else "")

    async def all(self, request: web.Request) -> web.Response:
        asked = query(request, JobListQuery)
        found = await self._jobs.listed(self._caller(request), limit=asked.limit + 1, after=asked.after)
        shown = [self._jobs.shown(job) for job in found[: asked.limit]]
        return json_response({"jobs": shown, "has_more": len(found) > asked.limit})

    async def create(self, request: web.Request) -> web.Response:
        body = await self._service.read(request, JobRequest)
        job = await self._jobs.create(body.given(), self._caller(request))
        return json_response({"job": self._jobs.shown(job)}, status=201)

    async def one(self, request: web.Request) -> web.Response:
        return await self._answered(request, self._jobs.find)

    async def edit(self, request: web.Request) -> web.Response:
        body = await self._service.read(request, JobChange)
        job = await self._jobs.edit(request.match_info["id"], body.given(), self._caller(request))
        return json_response({"job": self._jobs.shown(job)})

    async def pause(self, request: web.Request) -> web.Response:
        return await self._answered(request, self._jobs.pause)

    async def resume(self, request: web.Request) -> web.Response:
        return await self._answered(request, self._jobs.resume)

    async def remove(self, request: web.Request) -> web.Response:
        job = await self._jobs.remove(request.match_info["id"], self._caller(request))
        return json_response({"id": job.id, "deleted": True})

    async def run(self, request: web.Request) -> web.Response:
        run = await self._jobs.run(request.match_info["id"], self._caller(request))
        return json_response({"run": self._jobs.shown_run(run)}, status=202)

    async def history(self, request: web.Request) -> web.Response:
        asked = query(request, JobRunListQuery)
        runs = await self._jobs.history(request.match_info["id"], self._caller(request), limit=asked.limit)
        return json_response({"runs": [self._jobs.shown_run(run) for run in runs]})

    async def _answered(
        self, request: web.Request, perform: Callable[[str, JobCaller], Awaitable[Job]]
    ) -> web.Response:
        job = await perform(request.match_info["id"], self._caller(request))
        return json_response({"job": self._jobs.shown(job)})
