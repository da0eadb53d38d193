"""Checks of what runs: model endpoint, tokens of chat platforms, daemon and service unit."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

from hermes import __version__
from hermes.cli.doctor.finding import CheckResult, Subject, failed, ok, sentence, skipped, warning
from hermes.cli.output import one_line
from hermes.domain.errors import ConfigError, HermesError, ModelError, NotRunningError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hermes.config.settings import Config
    from hermes.ports.agent import Model

MODEL_TIMEOUT_S = 30.0
_NOT_VALID = "Not checked: the configuration is not valid."
_BUILT_IN = "offline"


# ---------------------------------------------------------------- model


def check_model(subject: Subject) -> Iterator[CheckResult]:
    name = "model.endpoint"
    if (config := subject.config) is None:
        yield skipped(name, _NOT_VALID)
    elif config.model.provider == _BUILT_IN:
        text = "The built-in offline model answers; it is not an AI model."
        yield warning(name, text, "Choose a model with `hermes setup`.")
    elif config.model.provider == "local":
        yield skipped(name, "Not checked: loading the local model takes long.")
    else:
        yield _model_finding(name, config, subject.environ)


def _model_finding(name: str, config: Config, environ: Mapping[str, str]) -> CheckResult:
    from hermes.app.factories.models import make_models

    try:
        answer = asyncio.run(ask_once(make_models(config, environ).chain[0]))
    except ModelError as error:
        what, _, remedy = str(error).partition("; ")
        return failed(name, f"{one_line(what)}.", f"{one_line(remedy[:1].upper() + remedy[1:])}.")
    except ConfigError as error:
        return failed(name, f"{error}.", "Correct it with `hermes config edit`.")
    except TimeoutError:
        text = f"The model {config.model.name} did not answer within {MODEL_TIMEOUT_S:g} s."
        return failed(name, text, "Try again later, or choose another model with `hermes config set model.name`.")
    if answer.kind is AnswerKind.EMPTY:
        return warning(name, f"The model {config.model.name} answered without text.", answer.remark)
    size = f"({len(answer.text)} characters)" if answer.text else f"without text. {answer.remark}"
    return ok(name, f"The model {config.model.name} answered {size.removesuffix('.')}.")


class AnswerKind(Enum):
    TEXT = "text"
    CUT = "cut"  # the output limit was used up before any text, as by reasoning
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """Answer of a model to the check."""

    text: str
    kind: AnswerKind

    @property
    def remark(self) -> str:
        """Return what a person should know about an answer without text; empty for one with text."""
        match self.kind:
            case AnswerKind.TEXT:
                return ""
            case AnswerKind.CUT:
                return (
                    "It works, but used up its output limit before the first word, as reasoning models do. "
                    "If answers stay empty, raise the limit of the endpoint, or set `model.reasoning` lower."
                )
            case AnswerKind.EMPTY:
                return "It answered without any text. The model may need another protocol or chat template."
        assert_never(self.kind)


async def ask_once(model: Model) -> CheckAnswer:
    """Ask the model for one word and return its answer. Raises ModelError, TimeoutError."""
    from hermes.domain.ids import SessionId
    from hermes.domain.turn.message import EncodedMessage
    from hermes.ports.agent import ModelDone, ModelRequest, ModelText

    message = json.dumps({"role": "user", "content": "Reply with the word ok."}).encode()
    request = ModelRequest(session=SessionId("doctor"), messages=[EncodedMessage(message)])
    text, is_cut = "", False
    try:
        async with asyncio.timeout(MODEL_TIMEOUT_S):
            async for chunk in model.stream(request):
                if isinstance(chunk, ModelText):
                    text += chunk.text
                elif isinstance(chunk, ModelDone):
                    is_cut = chunk.finish_reason == "length"
    finally:
        await model.close()
    if text.strip():
        return CheckAnswer(text, AnswerKind.TEXT)
    return CheckAnswer(text, AnswerKind.CUT if is_cut else AnswerKind.EMPTY)


# ---------------------------------------------------------------- chat platforms


def check_platforms(subject: Subject) -> Iterator[CheckResult]:
    from hermes.config.platforms import PLATFORMS

    for name in PLATFORMS:
        check = f"platform.{name}"
        if subject.config is None:
            yield skipped(check, _NOT_VALID)
        elif not subject.config.platforms()[name].enabled:
            yield skipped(check, f"{name.capitalize()} is not set up (`hermes setup {name}`).")
        else:
            yield _platform_finding(check, name, subject.config, subject.environ)


def _platform_finding(check: str, name: str, config: Config, environ: Mapping[str, str]) -> CheckResult:
    from hermes.cli.setup.platform_check import BadTokenError, UnreachableError
    from hermes.config.platforms import PLATFORMS

    try:
        accounts = import_module(PLATFORMS[name].set_up_by).accounts(config, environ)
    except BadTokenError as error:
        return failed(check, f"{error}.", f"Run `hermes setup {name}` with a new token.")
    except UnreachableError as error:
        return failed(check, f"{str(error).removesuffix('; nothing was changed')}.", "Check the network and proxies.")
    except ConfigError as error:
        return failed(check, f"{error}.", f"Run `hermes setup {name}`.")
    return ok(check, f"{name.capitalize()} accepts the tokens ({one_line(', '.join(accounts))}).")


# ---------------------------------------------------------------- daemon, service


def check_daemon(subject: Subject) -> Iterator[CheckResult]:
    from hermes.cli.client import AdminClient
    from hermes.cli.previous_boot import last_end

    try:
        info = AdminClient(subject.home.socket).info()
    except NotRunningError:
        crash = last_end(subject.home)
        start = "Start it with `hermes daemon`, or `hermes service install` for a service."
        yield warning("daemon.health", f"No daemon runs{f': {crash}' if crash else ''}.", start)
        return
    except HermesError as error:
        yield failed("daemon.health", f"{error}.", "See its log with `hermes logs`.")
        return
    yield from daemon_findings(info)
    yield from _configuration_findings(subject)


def daemon_findings(info: Mapping[str, Any]) -> Iterator[CheckResult]:
    """Judge the state that the daemon reports."""
    if info["ready"]:
        yield ok("daemon.health", f"The daemon is ready (pid {info['pid']}).")
    else:
        yield failed(
            "daemon.health", f"The daemon is not ready: {info['reason']}.", "See its log with `hermes logs`."
        )
    if info["version"] != __version__:
        text = f"The daemon is version {info['version']}, this command is {__version__}."
        yield warning("daemon.version", text, "Run `hermes restart`.")
    for each in info.get("platforms", ()):
        if each["problem"]:
            text = f"{each['name'].capitalize()} has a problem: {one_line(each['problem'])}."
            yield warning(f"daemon.{each['name']}", text, "It retries by itself; `hermes status` shows its state.")
    yield from _mcp_findings(info.get("mcp") or {})


def _mcp_findings(mcp: Mapping[str, Any]) -> Iterator[CheckResult]:
    for name, problem in mcp.get("problems", {}).items():
        text = f"The MCP server {name} has a problem: {one_line(problem)}."
        yield warning(f"daemon.mcp.{name}", text, f"Correct it, then run `hermes mcp test {name}`.")
    for name, count in mcp.get("waiting_for_approval", {}).items():
        text = f"{count} tools of the MCP server {name} are new or changed, and withheld."
        yield warning(
            f"daemon.mcp.{name}.tools",
            text,
            f"See `hermes mcp show {name}`; `hermes mcp approve {name}` accepts them.",
        )


def _configuration_findings(subject: Subject) -> Iterator[CheckResult]:
    """Compare the configuration file with what the daemon uses, in the daemon's environment."""
    from hermes.cli.commands.reload import pending_changes

    try:
        pending = pending_changes(subject.home)
    except ConfigError as error:
        text = f"The daemon has an older configuration, and refuses the file: {sentence(error)}"
        yield warning("daemon.config", text, "Correct it with `hermes config edit`, then run `hermes reload`.")
        return
    if pending is not None:
        yield configuration_finding(pending)


def configuration_finding(pending: Mapping[str, Any]) -> CheckResult:
    """Judge the changes that a reload would make."""
    now = [*pending["applied"], *pending.get("files_applied", ())]
    later = [*pending["needs_restart"], *pending.get("files_need_restart", ())]
    if not now and not later:
        return ok("daemon.config", "The daemon uses the configuration file as it is.")
    text = f"The running daemon has older values of {one_line(', '.join((*now, *later)))}."
    return warning("daemon.config", text, f"Run `hermes {'restart' if later else 'reload'}`.")


def check_service(subject: Subject) -> Iterator[CheckResult]:
    from hermes.cli.service_actions import is_up_to_date
    from hermes.cli.systemd import ServiceError, Systemd

    name = "service.unit"
    found = [Systemd(system=system, environ=subject.environ) for system in (False, True)]
    installed = next((each for each in found if each.unit_file.exists()), None)
    if installed is None:
        yield skipped(name, "Hermes is not installed as a service (`hermes service install`).")
        return
    option = " --system" if installed.system else ""
    try:
        installed.require()
        state = installed.properties()
    except ServiceError as error:
        yield failed(name, f"{error}.", "Log in directly, or install the service with --system.")
        return
    active = state.get("ActiveState", "unknown")
    if active == "failed":
        yield failed(name, f"The service failed ({state.get('Result')}).", f"See `{installed.journal}`.")
    elif active != "active":
        yield warning(name, f"The service is {active}.", f"Run `hermes service start{option}`.")
    elif not is_up_to_date(installed, subject.environ):
        text = f"{Path(installed.unit_file).name} does not match the settings."
        yield warning(name, text, f"Run `hermes service install{option}`.")
    else:
        yield ok(name, f"The service is active (pid {state.get('MainPID')}).")
