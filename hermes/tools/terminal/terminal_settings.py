"""Settings of the terminal tool, and the checks of a call that depend on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from hermes.domain.access.role import Role
from hermes.domain.values import dataclass
from hermes.processes.child import ChildLimits
from hermes.tools.tool import ToolError

_COMMAND_MAX_BYTES: Final = 100_000  # the kernel takes 128 KB in one argument


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalSettings:
    environ: Mapping[str, str] = field(repr=False)  # the daemon's environment; most of it is not passed on
    work_of: Callable[[Path, Role], str]  # returns a conversation's working directory
    timeout_s: float = 180.0
    timeout_max_s: float = 600.0
    passed_names: tuple[str, ...] = ()  # more variables to pass on
    memory_bytes: int = 0  # heap of each process in a sandbox
    kept_bytes: int = 50_000  # of an output, for the model
    stored_max_bytes: int = 20 * 2**20  # of an output, in its file
    limits: ChildLimits = ChildLimits()


def offered_parameters(
    parameters: Mapping[str, Any], settings: TerminalSettings, *, boxed: bool, network: bool
) -> dict[str, Any]:
    """Return the tool's parameters as this machine supports them, with the configured timeouts."""
    absent = {"outside_sandbox": not boxed, "network_hosts": not (boxed and network)}
    properties = {name: value for name, value in parameters["properties"].items() if not absent.get(name)}
    timeout = (
        f"seconds until the command is killed; default {settings.timeout_s:g}, maximum {settings.timeout_max_s:g}"
    )
    properties["timeout"] = {**properties["timeout"], "description": timeout}
    return {**parameters, "properties": properties}


def check_command(command: str) -> None:
    """Raise ToolError for a command that no shell can run."""
    if not command.strip():
        raise ToolError("The command is empty.")
    try:
        size = len(command.encode())
    except UnicodeEncodeError:
        raise ToolError("The command is not valid text: it contains a lone surrogate.") from None
    if "\0" in command:
        raise ToolError("The command contains a NUL character, which a shell cannot read. Use printf '\\0' instead.")
    if size > _COMMAND_MAX_BYTES:
        raise ToolError(
            f"The command has {size} bytes; the maximum is {_COMMAND_MAX_BYTES}. "
            "Write it to a file with write_file and run that file."
        )


def checked_timeout(timeout_s: float | None, settings: TerminalSettings, *, background: bool) -> float:
    """Return the command's timeout. `background`: background processes are available."""
    most = settings.timeout_max_s
    if timeout_s is None:
        return min(settings.timeout_s, most)
    if timeout_s <= 0:
        raise ToolError("timeout must be more than 0 seconds.")
    if timeout_s > most:
        advice = "Use background=true or split the work." if background else "Split the work."
        raise ToolError(f"timeout must be at most {most:g} seconds, not {timeout_s:g}. {advice}")
    return timeout_s
