"""Operations of scheduled jobs, for the OpenAPI document."""

from __future__ import annotations

from hermes.adapters.http.parameter import IDEMPOTENCY_HEADER
from hermes.adapters.openai_api.jobs import job_request as types
from hermes.adapters.openai_api.openapi.operation import ApiRoute

JOBS: tuple[ApiRoute, ...] = (
    ApiRoute(
        route="GET /api/jobs",
        id="listJobs",
        summary="List scheduled jobs by id",
        answer=types.JobList,
        query=types.JobListQuery,
    ),
    ApiRoute(
        route="POST /api/jobs",
        id="createJob",
        summary="Create a scheduled job",
        answer=types.OneJob,
        status=201,
        body=types.JobRequest,
        example={"schedule": "0 8 * * 1-5", "prompt": "Summarise the news", "deliver": "local"},
        headers=(IDEMPOTENCY_HEADER,),
    ),
    ApiRoute(route="GET /api/jobs/{id}", id="getJob", summary="Get a job by id or name", answer=types.OneJob),
    ApiRoute(
        route="PATCH /api/jobs/{id}",
        id="changeJob",
        summary="Change fields of a job",
        answer=types.OneJob,
        body=types.JobChange,
        example={"schedule": "every 2h"},
    ),
    ApiRoute(
        route="DELETE /api/jobs/{id}",
        id="deleteJob",
        summary="Delete a job and its history. A run that has begun goes on",
        answer=types.JobDeleted,
    ),
    ApiRoute(route="POST /api/jobs/{id}/pause", id="pauseJob", summary="Pause a job", answer=types.OneJob),
    ApiRoute(route="POST /api/jobs/{id}/resume", id="resumeJob", summary="Resume a job", answer=types.OneJob),
    ApiRoute(
        route="POST /api/jobs/{id}/run",
        id="runJob",
        summary="Run a job now, besides its schedule",
        answer=types.OneJobRun,
        status=202,
        headers=(IDEMPOTENCY_HEADER,),
        errors=(409,),
    ),
    ApiRoute(
        route="GET /api/jobs/{id}/runs",
        id="listJobRuns",
        summary="List the kept runs of a job with their output, the last first",
        answer=types.JobRunList,
        query=types.JobRunListQuery,
    ),
)
