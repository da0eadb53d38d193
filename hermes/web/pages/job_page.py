"""Scheduled jobs: the list, a new one, and one job with its runs."""

from __future__ import annotations

import secrets

from aiohttp import web
from loguru import logger

from hermes.adapters.http.problem import refusal
from hermes.ports.job.jobs import JobCaller, Jobs
from hermes.web.page_kit import LOGIN, PageKit, field, see

_LISTED = 200
_RUNS = 50
_MAX_PROMPT = 20_000


class JobPage:
    def __init__(self, kit: PageKit) -> None:
        self._kit = kit

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/ui/jobs", self.show),
            web.post("/ui/jobs", self.create),
            web.get("/ui/jobs/{id}", self.one),
            web.post("/ui/jobs/{id}/{verb:pause|resume|run|remove}", self.change),
        ]

    @property
    def _jobs(self) -> Jobs:
        if self._kit.service.jobs is None:
            raise refusal(404, "not_found", "This daemon has no scheduled jobs.")
        return self._kit.service.jobs

    def _caller(self, request: web.Request) -> JobCaller:
        return JobCaller(source=self._kit.source(request), operation=f"dashboard:{secrets.token_hex(8)}")

    async def show(self, request: web.Request) -> web.Response:
        jobs = await self._jobs.listed(self._caller(request), limit=_LISTED)
        shown = sorted(map(self._jobs.shown, jobs), key=lambda job: (job["next_run_at"] is None, job["next_run_at"]))
        return await self._kit.page(request, "jobs.html", jobs=shown)

    async def one(self, request: web.Request) -> web.Response:
        caller, name = self._caller(request), request.match_info["id"]
        job = await self._jobs.find(name, caller)
        runs = await self._jobs.history(job.id, caller, limit=_RUNS)
        return await self._kit.page(
            request, "job.html", job=self._jobs.shown(job), runs=[self._jobs.shown_run(run) for run in runs]
        )

    async def create(self, request: web.Request) -> web.Response:
        self._kit.check_operator(request)
        given = {name: field(request, name).strip() for name in ("schedule", "name", "deliver")}
        deliver = [each.strip() for each in given.pop("deliver").split(",") if each.strip()]
        fields = {**given, "prompt": field(request, "prompt", most=_MAX_PROMPT).strip()}
        job = await self._jobs.create({**fields, **({"deliver": deliver} if deliver else {})}, self._caller(request))
        logger.info("job {}: created by {}", job.id, request[LOGIN].who)
        return see(f"/ui/jobs/{job.id}")

    async def change(self, request: web.Request) -> web.Response:
        self._kit.check_operator(request)
        name, verb = request.match_info["id"], request.match_info["verb"]
        caller = self._caller(request)
        if verb == "run":
            await self._jobs.run(name, caller)
        else:
            act = {"pause": self._jobs.pause, "resume": self._jobs.resume, "remove": self._jobs.remove}[verb]
            await act(name, caller)
        logger.info("job {}: {} by {}", name, verb, request[LOGIN].who)
        return see("/ui/jobs" if verb == "remove" else f"/ui/jobs/{name}")
