"""`hermes cron`: scheduled jobs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from hermes.cli.answered import asks_daemon, path_of
from hermes.cli.output import count, duration, moment, one_line, print_table, print_text, shortened
from hermes.cli.parser import Commands, positive

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from hermes.cli.answered import Answer
    from hermes.cli.client import AdminClient

_FIELDS = (  # option, name of the field, placeholder, help
    ("--name", "name", "N", "short name; by default the beginning of the prompt"),
    ("--timezone", "timezone", "ZONE", "time zone of the schedule, such as Europe/Berlin"),
    ("--model", "model", "MODEL", "model of the runs, as [PROVIDER:]MODEL"),
    ("--workdir", "workdir", "DIR", "working directory of the runs"),
    ("--script", "script", "FILE", "script in $HERMES_HOME/scripts that runs first; the run gets its output"),
)
_LISTS = (
    ("--deliver", "deliver", "TARGET", "origin, home, local, all, PLATFORM or PLATFORM:CHAT[:THREAD]; repeatable"),
    ("--skill", "skills", "SKILL", "skill that each run loads; repeatable"),
    ("--tool", "tools", "TOOL", "tool or toolset that a run has, and no others; repeatable"),
    ("--context-from", "context_from", "JOB", "job whose last output each run gets; repeatable"),
)
_NUMBERS = (
    ("--repeat", "repeat", int, "end the job after this many occurrences"),
    ("--grace", "grace_s", float, "seconds by which an occurrence may run late"),
    ("--jitter", "jitter_s", float, "delay each occurrence by up to this many seconds"),
    ("--retries", "retries", int, "repeat a failed run this many times"),
    ("--max-steps", "max_steps", int, "model calls of a run"),
    ("--max-tokens", "max_tokens", int, "tokens of a run"),
    ("--max-usd", "max_usd", float, "US dollars of a run"),
)


def add_commands(commands: Commands) -> None:
    group = commands.add(
        "cron",
        _list,
        "Manage scheduled jobs: work without a person, with a report.",
        examples=(
            "  hermes cron create '0 8 * * 1-5' 'Summarise my calendar' --deliver telegram\n"
            "  hermes cron create 30m 'Remind me to call Ada' --deliver home\n"
            "  hermes cron list\n"
            "  hermes cron history ID"
        ),
    )
    actions = Commands(group)
    create = actions.add(
        "create",
        _create,
        "Create a job. SCHEDULE is 5s, 30m or 2h (once), 'every 30m', five cron fields, or an ISO time.",
        json=True,
    )
    create.add_argument("schedule", metavar="SCHEDULE", help="when it runs")
    create.add_argument("prompt", metavar="PROMPT", nargs="?", default="", help="what to do; optional with --script")
    _add_fields(create)
    listing = actions.add("list", _list, "List the jobs.", json=True)
    listing.add_argument("--limit", type=positive, default=200, metavar="N", help="number of jobs (default: 200)")
    show = actions.add("show", _show, "Show a job.", json=True)
    edit = actions.add("edit", _edit, "Change a job. What is not given stays.", json=True)
    edit.add_argument("--schedule", metavar="SCHEDULE", help="when it runs")
    edit.add_argument("--prompt", metavar="PROMPT", help="what to do")
    _add_fields(edit)
    pause = actions.add("pause", _verb("pause", "Paused"), "Pause a job.", json=True)
    resume = actions.add(
        "resume", _verb("resume", "Resumed"), "Resume a job. What was due meanwhile is left out.", json=True
    )
    run = actions.add("run", _run, "Run a job now, besides its schedule.", json=True)
    remove = actions.add("remove", _remove, "Delete a job with its history.", json=True)
    history = actions.add("history", _history, "Show the runs of a job, the last first.", json=True)
    history.add_argument("--limit", type=positive, default=20, metavar="N", help="number of runs (default: 20)")
    history.add_argument("--full", action="store_true", help="print the output of each run")
    for parser in (show, edit, pause, resume, run, remove, history):
        parser.add_argument("job", metavar="JOB", help="id, beginning of the id, or name of the job")


def _add_fields(parser: argparse.ArgumentParser) -> None:
    for flag, name, placeholder, about in _FIELDS:
        parser.add_argument(flag, dest=name, metavar=placeholder, help=about)
    for flag, name, placeholder, about in _LISTS:
        parser.add_argument(flag, dest=name, action="append", metavar=placeholder, help=about)
    for flag, name, kind, about in _NUMBERS:
        parser.add_argument(flag, dest=name, type=kind, metavar="N", help=about)
    parser.add_argument(
        "--no-agent", dest="no_agent", action="store_true", default=None, help="report the output of the script"
    )
    parser.add_argument(
        "--missed", choices=("late", "skip", "all"), help="occurrences that were missed: the last one late (default)"
    )
    parser.add_argument("--approvals", choices=("deny", "ask"), help="calls that need an approval")


def _given(args: argparse.Namespace) -> dict[str, Any]:
    names = [name for _, name, *_ in (*_FIELDS, *_LISTS, *_NUMBERS)]
    names += ["schedule", "prompt", "no_agent", "missed", "approvals"]
    found = {name: getattr(args, name, None) for name in names}
    return {name: value for name, value in found.items() if value is not None}


@asks_daemon
def _create(args: argparse.Namespace, client: AdminClient) -> Answer:
    job = client.post("/api/jobs", _given(args))["job"]
    return job, f"Created {_summary(job)}."


@asks_daemon
def _edit(args: argparse.Namespace, client: AdminClient) -> Answer:
    job = client.patch(f"/api/jobs{path_of(args.job)}", _given(args))["job"]
    return job, f"Changed {_summary(job)}."


def _verb(verb: str, done: str) -> Any:
    @asks_daemon
    def act(args: argparse.Namespace, client: AdminClient) -> Answer:
        job = client.post(f"/api/jobs{path_of(args.job, verb)}", {})["job"]
        return job, f"{done} {_summary(job)}."

    return act


@asks_daemon
def _run(args: argparse.Namespace, client: AdminClient) -> Answer:
    run = client.post(f"/api/jobs{path_of(args.job, 'run')}", {})["run"]
    session = f" in session {run['session_id']}" if run["session_id"] else ""
    shows = f"`hermes cron history {run['job']}` shows it."
    return run, f"Run {run['number']} of job {run['job']} has begun{session}. {shows}"


@asks_daemon
def _remove(args: argparse.Namespace, client: AdminClient) -> Answer:
    answer = client.delete(f"/api/jobs{path_of(args.job)}")
    return answer, f"Deleted job {answer['id']}."


@asks_daemon
def _show(args: argparse.Namespace, client: AdminClient) -> Answer:
    job = client.get(f"/api/jobs{path_of(args.job)}")["job"]
    return job, lambda: _print_job(job)


@asks_daemon
def _list(args: argparse.Namespace, client: AdminClient) -> Answer:
    answer = client.get(f"/api/jobs?limit={min(getattr(args, 'limit', 200), 1000)}")
    return answer, lambda: _print_jobs(answer)


@asks_daemon
def _history(args: argparse.Namespace, client: AdminClient) -> Answer:
    answer = client.get(f"/api/jobs{path_of(args.job, 'runs')}?limit={min(args.limit, 1000)}")
    return answer, lambda: _print_runs(answer["runs"], full=args.full)


# ---------------------------------------------------------------- text


def _summary(job: Mapping[str, Any]) -> str:
    coming = f", next run {moment(job['next_run_at'])}" if job["next_run_at"] else ""
    to = ", ".join(job["deliver"])
    return f"job {job['id']} ({one_line(job['name'])}): {job['schedule']}{coming}, delivered to {to}"


def _print_jobs(answer: Mapping[str, Any]) -> None:
    jobs = answer["jobs"]
    if not jobs:
        print_text("There are no scheduled jobs. `hermes cron create` makes one.")
        return
    rows = [
        [
            job["id"],
            job["state"],
            shortened(job["schedule"]),
            moment(job["next_run_at"]) if job["next_run_at"] else "-",
            job["last_state"] or "-",
            ", ".join(job["deliver"]),
            shortened(job["name"]),
        ]
        for job in jobs
    ]
    print_table(["JOB", "STATE", "SCHEDULE", "NEXT", "LAST", "DELIVER", "NAME"], rows, drop=["DELIVER", "LAST"])
    if answer["has_more"]:
        print_text("There are more: --limit shows them.")
    elif sys.stdout.isatty():
        print_text("`hermes cron show JOB` explains one, `hermes cron history JOB` shows its runs.")


def _print_job(job: Mapping[str, Any]) -> None:
    print_text(f"Job {_summary(job)[4:]}")
    for name, value in job.items():
        if value not in (None, "", [], 0, False) and name not in ("id", "name", "schedule", "deliver", "kind"):
            shown = ", ".join(value) if isinstance(value, list) else value
            is_time = name.endswith("_at") and isinstance(value, float | int)
            print_text(one_line(f"{name}: {moment(value) if is_time else shown}"), indent="  ")


def _print_runs(runs: list[Mapping[str, Any]], *, full: bool) -> None:
    if not runs:
        print_text("The job has not run yet.")
    for run in runs:
        took = f", {duration(run['ended_at'] - run['began_at'])}" if run["ended_at"] else ""
        many = f", {count(run['missed'], 'occurrence')}" if run["missed"] else ""
        why = f": {run['explanation']}" if run["explanation"] else ""
        session = f", session {run['session_id']}" if run["session_id"] else ""
        head = (
            f"{run['number']}  {moment(run['began_at'])}  {run['state']} ({run['cause']}{took}{many}{session}){why}"
        )
        print_text(one_line(head))
        if full and run["output"]:
            print_text(run["output"], indent="    ")
