"""Factory of the toolbox and the prompt: slow to import, and not needed before the first turn.

Only a thread imports this module.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path

from loguru import logger

from hermes.actors.process.process_services import Announcement
from hermes.agent.context_files import ContextFile, how_to_approve, read_project_file, read_soul
from hermes.agent.memory_block import memory_block
from hermes.agent.personality import overlay
from hermes.agent.prompt import PromptFacts, build_prompt
from hermes.agent.tool_call_parser import propose
from hermes.app.factories.api_files import shelving
from hermes.app.factories.media import media_store
from hermes.app.factories.own_place import own_address, secret_paths
from hermes.app.factories.sandbox import SandboxOpener
from hermes.app.factories.work.image_generate import picture_tool
from hermes.app.factories.work.web_search import search_tool
from hermes.config.home import Home
from hermes.config.log import redacted
from hermes.config.platforms import PLATFORMS
from hermes.config.prompt_trust import TrustedPrompts
from hermes.config.settings import Config, ToolsConfig
from hermes.domain.access.prompt_file import DIGEST_CHARS, digest_of
from hermes.domain.child.child import only_tools
from hermes.domain.errors import HermesError
from hermes.domain.session.jobs import ModelJob
from hermes.domain.source import ChatContext
from hermes.domain.turn.tool_call import Gate, Verdict
from hermes.domain.values import dataclass
from hermes.ports.agent import InnerCalls
from hermes.ports.children import Delegations
from hermes.ports.given import Clock
from hermes.ports.job.jobs import Jobs
from hermes.ports.memory import Memories
from hermes.ports.processes import BackgroundProcesses
from hermes.ports.skills import SkillWriter
from hermes.processes.child import ChildLimits
from hermes.sandbox.network.network import SandboxNetwork
from hermes.sandbox.probe import Cause
from hermes.sandbox.sandbox import Sandbox
from hermes.sandbox.sandbox_plan import HOME
from hermes.shell_policy.links import link_targets
from hermes.shell_policy.policy import decide, inside_rules, path_gate
from hermes.skills.library import SkillLibrary
from hermes.system.random_id import new_marker
from hermes.tools.clarify import clarify_tool
from hermes.tools.cronjob import cronjob_tool
from hermes.tools.delegate_task import delegate_tool
from hermes.tools.files.boxed_files import BoxedFiles
from hermes.tools.files.file_tools import file_tools
from hermes.tools.memory_tool import memory_tool
from hermes.tools.process_tool import ProcessToolSettings, background_starter, process_tool
from hermes.tools.script.execute_code import ScriptSettings, execute_code_tool
from hermes.tools.send_file import send_file_tool
from hermes.tools.session_scope import Conversations
from hermes.tools.session_search import Summarise, no_summaries, session_search_tool
from hermes.tools.skill_tools import skill_tools
from hermes.tools.terminal.command_output import OutputLimits
from hermes.tools.terminal.terminal import CommandRunner, terminal_tool
from hermes.tools.terminal.terminal_settings import TerminalSettings
from hermes.tools.todo import todo_tool
from hermes.tools.tool import Tool
from hermes.tools.toolbox import Before, Toolbox
from hermes.tools.web.web_fetch import WebSettings, web_tools
from hermes.tools.workplace import Workplace

# Toolsets that only the owner and admins have on a machine where no sandbox works.
UNPROTECTED = frozenset({"code_execution", "terminal", "file", "process"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTurn:
    toolbox: Toolbox
    script_shell: Tool  # the terminal, for scripts of jobs
    build_prompt: Callable[[ModelJob, Path], Awaitable[str]]


def make_turn_environment(
    config: Config,
    home: Home,
    environ: Mapping[str, str],
    *,
    stored: Conversations,
    processes: BackgroundProcesses,
    clock: Clock,
    sandbox: SandboxOpener,
    library: SkillLibrary,
    skills: SkillWriter,
    tell: Callable[[Announcement], None],
    memories: Memories,
    summarise: Summarise,
    delegations: Delegations,
    believed: Callable[[ModelJob], Awaitable[str]],
    messaging: Tool,
    jobs: Jobs,
    inner: InnerCalls,
    before: Before,
    plugin_tools: tuple[Tool, ...] = (),
) -> PreparedTurn:
    toolbox = make_toolbox(
        config,
        home,
        environ,
        library=library,
        skills=skills,
        sandbox=sandbox(),
        network=sandbox.network,
        stored=stored,
        processes=processes,
        memories=memories,
        summarise=summarise,
        delegations=delegations,
        messaging=messaging,
        jobs=jobs,
        inner=inner,
        plugin_tools=plugin_tools,
        before=before,
    )
    build = prompt_builder(config, home, toolbox, clock, tell, library=library)
    shell = terminal_tool(
        _terminal_settings(config, environ, workplace_of(config, home), longest_s=config.cron.script_timeout_s),
        partial(_gate, config, workplace_of(config, home), secret_paths(config, home)),
        sandbox=sandbox(),
        network=sandbox.network,
    )
    return PreparedTurn(
        toolbox=toolbox, script_shell=shell, build_prompt=with_memory(build, toolbox, memories, believed)
    )


def with_memory(
    build: Callable[[ModelJob, Path, str], str],
    toolbox: Toolbox,
    memories: Memories,
    believed: Callable[[ModelJob], Awaitable[str]],
) -> Callable[[ModelJob, Path], Awaitable[str]]:
    """Return a prompt builder that adds the notes of the turn's scope, if its person may use the memory tool.

    `believed` returns the section about the person.
    """

    async def recalled(job: ModelJob) -> str:
        scope = memories.scope(job.scope)
        if scope is None or "memory" not in toolbox.names(job.platform, job.role, only_tools(job.assignment)):
            return ""
        try:
            return memory_block(await memories.read(scope))
        except HermesError as error:
            logger.warning("session {}: its prompt has no memory: {}", job.session, error)
            return ""

    async def built(job: ModelJob, folder: Path) -> str:
        sections = "\n\n".join(filter(None, (await recalled(job), await believed(job))))
        return await asyncio.to_thread(build, job, folder, sections)

    return built


def workplace_of(config: Config, home: Home) -> Workplace:
    person = os.path.expanduser("~")  # noqa: PTH111 - never raises
    cwd = os.path.realpath(config.terminal.cwd) if config.terminal.cwd else ""  # follow links once
    return Workplace(default_cwd=cwd, home=person, hermes_home=str(home.data_dir))


def cpu_limit_s(config: Config) -> int:
    """Return the CPU time limit of a process of a foreground command: all cores for the longest timeout."""
    return math.ceil(config.terminal.max_timeout_s * (os.cpu_count() or 1))


def make_toolbox(
    config: Config,
    home: Home,
    environ: Mapping[str, str],
    *,
    stored: Conversations,
    processes: BackgroundProcesses,
    sandbox: Sandbox,
    network: SandboxNetwork | None,
    library: SkillLibrary,
    memories: Memories,
    skills: SkillWriter,
    delegations: Delegations,
    messaging: Tool,
    inner: InnerCalls,
    plugin_tools: tuple[Tool, ...] = (),
    summarise: Summarise = no_summaries,
    before: Before | None = None,
    jobs: Jobs,
) -> Toolbox:
    workplace, secrets = workplace_of(config, home), secret_paths(config, home)
    tools = config.tools
    toolbox = Toolbox(
        (
            *_command_tools(
                config,
                environ,
                workplace,
                secrets,
                processes=processes,
                sandbox=sandbox,
                network=network,
                toolbox=lambda: toolbox,
                inner=inner,
            ),
            *file_tools(
                workplace,
                partial(_path_gate, workplace, secrets),
                BoxedFiles(sandbox, workplace) if sandbox.works else None,
            ),
            *web_tools(
                WebSettings(allow_private_urls=config.web.allow_private_urls),
                box=sandbox.worker_box if sandbox.works else None,
            ),
            search_tool(config, environ),
            picture_tool(config, home, environ),
            todo_tool(),
            *skill_tools(library, skills, lambda platform, role: toolbox.offered(platform, role)),  # noqa: PLW0108 - made below
            memory_tool(memories),
            cronjob_tool(jobs),
            clarify_tool(),
            messaging,
            *plugin_tools,
            session_search_tool(stored, summarise=summarise),
            delegate_tool(delegations, lambda platform, role: toolbox.offered(platform, role)),  # noqa: PLW0108 - made below
            send_file_tool(
                workplace,
                lambda path: _path_gate(workplace, secrets, path, False, workplace.default_cwd),
                media_store(config, home).put_aside,
                frozenset(name for name, entry in PLATFORMS.items() if entry.sends_files),
                shelve=shelving(config, home),
                boxed=sandbox.works,
            ),
        ),
        toolsets=_toolsets(tools, dict.fromkeys(tool.toolset for tool in plugin_tools)),
        disabled=tools.disabled,
        unprotected=frozenset() if sandbox.works or sandbox.probe.cause is Cause.OFF else UNPROTECTED,
        limits=OutputLimits(),
        redact=redacted,
        before=before,
    )
    return toolbox


def _toolsets(tools: ToolsConfig, added: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the toolsets of each surface. Those of plugins belong to every surface, and never to guests."""
    of_surface = {"default": tools.default, "api": tools.api, "cli": tools.cli}
    return {**{name: (*names, *added) for name, names in of_surface.items()}, "guest": tools.guest}


def _command_tools(
    config: Config,
    environ: Mapping[str, str],
    workplace: Workplace,
    secrets: tuple[str, ...],
    *,
    processes: BackgroundProcesses,
    sandbox: Sandbox,
    network: SandboxNetwork | None,
    toolbox: Callable[[], Toolbox],
    inner: InnerCalls,
) -> tuple[Tool, Tool, Tool]:
    """Return the tools that run commands and scripts, and talk to their processes."""
    settings = _terminal_settings(config, environ, workplace)
    waiting = ProcessToolSettings(wait_s=settings.timeout_s, wait_max_s=settings.timeout_max_s)
    gate, starter = partial(_gate, config, workplace, secrets), background_starter(processes, network)
    terminal = terminal_tool(settings, gate, starter, sandbox, network)
    assert terminal.decide is not None
    scripts = execute_code_tool(
        CommandRunner(settings, sandbox=sandbox, network=network),
        toolbox=toolbox,
        propose=propose,
        judge=terminal.decide,
        inner=inner,
        settings=ScriptSettings(
            timeout_s=config.code_execution.timeout, max_calls=config.code_execution.max_tool_calls
        ),
    )
    return (
        terminal,
        scripts,
        process_tool(processes, waiting, partial(_command_gate, config, workplace, secrets)),
    )


def _terminal_settings(
    config: Config, environ: Mapping[str, str], workplace: Workplace, *, longest_s: float = 0.0
) -> TerminalSettings:
    """Return the settings of commands. `longest_s`: their time limit, if it is not the configured one."""
    return TerminalSettings(
        environ=environ,
        work_of=workplace.work_of,
        timeout_s=longest_s or config.terminal.timeout_s,
        timeout_max_s=longest_s or config.terminal.max_timeout_s,
        passed_names=config.terminal.pass_variables,
        limits=ChildLimits(processes=config.sandbox.max_processes, cpu_s=cpu_limit_s(config)),
        memory_bytes=config.sandbox.memory_mb << 20,
    )


def _command_gate(config: Config, workplace: Workplace, secrets: tuple[str, ...], command: str, cwd: str) -> Gate:
    """Return the gate for input to a running process."""
    work = workplace.default_cwd
    return _gate(config, workplace, secrets, command, cwd, work=work, inside=False, conversation_directory=False)


def _gate(
    config: Config,
    workplace: Workplace,
    secrets: tuple[str, ...],
    command: str,
    cwd: str,
    *,
    work: str,
    inside: bool,
    conversation_directory: bool,
) -> Gate:
    return decide(
        command,
        cwd=cwd or work or "/",
        only=inside_rules(conversation_directory=conversation_directory) if inside else None,
        home=HOME if inside else workplace.home,
        hermes_home=workplace.hermes_home,
        deny=config.approvals.deny,
        mode="off" if config.approvals.mode == "off" else "manual",
        granted=(),  # the session applies its grants
        own=own_address(config),
        secrets=secrets,
        work=work,
        targets=link_targets,
        daemon=(os.getpid(), os.getppid()),
    )


def _path_gate(workplace: Workplace, secrets: tuple[str, ...], path: str, writing: bool, work: str) -> Gate:
    """Return the gate for a path that is not one of the conversation's own outputs or received files."""
    if Path(path).is_relative_to(workplace.media):
        return Gate(verdict=Verdict.BLOCK, reason=f"{path} is not a file that was sent to this conversation")
    return path_gate(
        path,
        writing=writing,
        home=workplace.home,
        hermes_home=workplace.hermes_home,
        cwd=work or "/",
        work=work,
        secrets=secrets,
    )


def prompt_builder(
    config: Config,
    home: Home,
    toolbox: Toolbox,
    clock: Clock,
    tell: Callable[[Announcement], None],
    *,
    library: SkillLibrary,
) -> Callable[[ModelJob, Path, str], str]:
    """Return a function that builds a prompt with the given sections of memory. It reads files: call it in a thread.

    `tell` is called in that thread.
    """
    workplace = workplace_of(config, home)
    trusted = TrustedPrompts(home.data_dir)
    announced: set[tuple[str, str]] = set()  # path and digest of unapproved files

    def project_file(job: ModelJob, cwd: str, chars_most: int) -> ContextFile | None:
        """Read the prompt file for a person who may approve it, outside shared chats."""
        if not job.role.approves or (job.company is not None and job.company.shared):
            return None
        found = read_project_file(
            Path(cwd), person_home=Path(workplace.home), trusts=trusted.holds, chars_most=chars_most
        )
        if found is None or not found.blocked:
            return found
        logger.warning("session {}: {} in {} is not used: {}", job.session, found.name, cwd, found.blocked)
        if (file := found.untrusted) is None:
            return found
        version = (file.path, file.digest)
        if version in announced:
            return None
        announced.add(version)
        name = digest_of("\0".join(version).encode())[:DIGEST_CHARS]
        text = how_to_approve(file)
        tell(Announcement(id=f"prompt-file:{name}", session=job.session, text=text, turn=job.turn))
        return found

    def skill_index(job: ModelJob) -> str:
        tools = toolbox.offered(job.platform, job.role)
        if "skill_view" not in toolbox.names(job.platform, job.role, only_tools(job.assignment)):
            return ""
        try:
            return library.index(tools)
        except HermesError as error:
            logger.warning("session {}: the prompt has no skills: {}", job.session, error)
            return ""

    def build(job: ModelJob, folder: Path, memory: str) -> str:
        now = datetime.fromtimestamp(clock()).astimezone()
        cwd = workplace.cwd_of(folder, job.role)
        most = config.agent.context_file_max_chars
        company = job.company or ChatContext()
        project = project_file(job, cwd, most) if config.agent.context_files else None
        child = job.assignment
        tools = frozenset(toolbox.names(job.platform, job.role, only_tools(child)))
        return build_prompt(
            PromptFacts(
                today=now.date(),
                zone=now.tzname() or "local time",
                soul=read_soul(home.data_dir, chars_most=most),
                tools=tools,
                platform=job.platform if child is None else str(child.purpose),
                personality=overlay(job.preferences.personality or config.agent.personality) or "",
                skills=skill_index(job),
                files=(project,) if project is not None else (),
                cwd=cwd if "terminal" in tools or "read_file" in tools else "",
                session=job.root,
                kind=company.kind,
                chat=company.chat,
                person=company.person,
                shared=company.shared,
                marker=new_marker(),
                memory=memory,
            )
        )

    return build
