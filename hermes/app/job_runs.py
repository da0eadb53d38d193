"""Factory of the runs of scheduled jobs."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes.agent.tool_step import Folders
from hermes.app.actor_system import ActorSystem
from hermes.config.home import Home
from hermes.config.toolset import TOOLSETS
from hermes.config.trust import WorkingDirectories
from hermes.domain.access.role import Role
from hermes.domain.child.child import Purpose
from hermes.domain.errors import BadInputError
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.job.job import Job
from hermes.services.jobs.job_purpose import JobPurpose
from hermes.services.learning.skill_service import SkillService
from hermes.system.random_id import new_marker
from hermes.tools.tool import ToolContext, ToolError, ToolResult

if TYPE_CHECKING:
    from hermes.app.factories.turn_environment import PreparedTurn

SCRIPTS: Final = "scripts"  # directory in the data directory
_INTERPRETERS: Final = {".py": "python3"}  # of scripts that are not executable; others are for bash

Workshop = Callable[[], Awaitable["PreparedTurn"]]


def register_jobs(
    system: ActorSystem, home: Home, *, workshop: Workshop, folders: Folders, skills: SkillService, at_once: int
) -> None:
    """Let child sessions run jobs."""
    service = system.jobs.service

    async def available(platform: str, role: Role) -> tuple[str, ...]:
        return (await workshop()).toolbox.names(platform, role)

    async def skill_text(name: str) -> str:
        return (await skills.load(name)).text

    purpose = JobPurpose(
        journal=system.ports.journal,
        clock=system.ports.clock,
        settings=lambda: service.settings,
        delivery=system.jobs.delivery,
        available=available,
        tools_of=lambda name: TOOLSETS.get(name, (name,)),
        skill_text=skill_text,
        run_script=partial(_run_script, workshop, folders, home.data_dir / SCRIPTS),
        prepare_folder=partial(_choose_workdir, folders, (home.data_dir, home.config_file.parent)),
        new_marker=new_marker,
        look=system.jobs.look,
        note=service.note,
        at_once=at_once,
        is_stopping=lambda: system.sessions.closed,
    )
    system.child_sessions.register(Purpose.JOB, purpose)


def _choose_workdir(folders: Folders, own: tuple[Path, ...], session: SessionId, workdir: str) -> None:
    """Make this the working directory of a session that has not begun. Repeated after a crash."""
    WorkingDirectories(folder_of=folders.path, own=own).choose(session, workdir)


async def _run_script(workshop: Workshop, folders: Folders, scripts: Path, job: Job, session: str) -> tuple[int, str]:
    """Run the script of a job in the sandbox of its run, which shows the scripts and nothing else of Hermes."""
    name = SessionId(session)
    command = await asyncio.to_thread(_command, scripts, job.script)
    shell = (await workshop()).script_shell
    folder = await asyncio.to_thread(folders.of, name, job.source.standing)
    if job.workdir:
        await asyncio.to_thread(_choose_workdir, folders, (scripts.parent,), name, job.workdir)
    context = ToolContext(
        session=name,
        turn=TurnId("script"),
        call="script",
        platform=job.source.platform,
        folder=folder,
        skills=scripts,
        role=job.source.standing,
        by=job.source.by,
    )
    try:
        result = await shell.run(context, command=command)
    except ToolError as error:
        raise BadInputError(f"the script {job.script} did not run: {error}") from error
    assert isinstance(result, ToolResult)
    return (0 if result.ok else result.code or 1), result.output


def _command(scripts: Path, script: str) -> str:
    """Return the command line of a script. It must be a file inside the directory of scripts."""
    path = Path(os.path.realpath(scripts / script))
    if not path.is_relative_to(os.path.realpath(scripts)):
        raise BadInputError(f"the script {script} is outside of {scripts}")
    if not path.is_file():
        raise BadInputError(f"there is no script {script} in {scripts}")
    quoted = shlex.quote(str(path))
    if os.access(path, os.X_OK):
        return quoted
    return f"{_INTERPRETERS.get(path.suffix, 'bash')} {quoted}"
