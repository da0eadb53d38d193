"""Factory of the sandbox, and its status for operators."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loguru import logger

from hermes.app.host.os_process import own_cgroups
from hermes.config.home import Home
from hermes.config.settings import Config
from hermes.domain.errors import ConfigError
from hermes.domain.values import replace

if TYPE_CHECKING:
    from hermes.ports.processes import NetworkedProcesses
    from hermes.sandbox.cgroup import Cgroups
    from hermes.sandbox.network.network import SandboxNetwork
    from hermes.sandbox.sandbox import Sandbox


class SandboxOpener:
    """Opens the sandbox once, in the first thread that needs it, and keeps the result."""

    def __init__(self, config: Config, home: Home) -> None:
        self._config = config
        self._home = home
        self._lock = threading.Lock()
        self._opened: Sandbox | None = None
        self._network: SandboxNetwork | None = None

    def __call__(self) -> Sandbox:
        """Return the sandbox. Blocks; raises ConfigError."""
        with self._lock:
            if self._opened is None:
                found = probe_sandbox(self._config, self._home)
                self._opened = replace(found, cgroups=_cgroups(self._config)) if found.works else found
                _log(self._opened)
            return self._opened

    @property
    def network(self) -> SandboxNetwork | None:
        """Return the network of sandboxes; None: they have none. It belongs to the event loop."""
        if self._network is None and self._config.sandbox.network == "proxy" and self().works:
            from hermes.sandbox.network.host_list import allowed_hosts  # noqa: PLC0415
            from hermes.sandbox.network.network import SandboxNetwork  # noqa: PLC0415

            self._network = SandboxNetwork(allowed_hosts(self._config.sandbox.allowed_hosts))
        return self._network

    async def serve_again(self, processes: NetworkedProcesses) -> None:
        """Serve the network of background commands that an earlier daemon started."""
        handles = await processes.networked()
        if not handles or self.network is None:
            return
        from hermes.tools.process_tool import serve_again  # noqa: PLC0415 - most starts find no such command

        await serve_again(self.network, handles)

    async def close(self) -> None:
        if self._network is not None:
            await self._network.close()

    def status(self) -> Mapping[str, Any]:
        """Return the status for `hermes status` and the API. Empty until the sandbox is open."""
        if self._opened is None:
            return {}
        probe = self._opened.probe
        return {
            "works": probe.works,
            "cause": probe.cause.value,
            "filtered": probe.filtered,
            "limits": _limits(self._opened),
            "text": sandbox_text(self._opened),
            "remedy": probe.remedy,
        }


def probe_sandbox(config: Config, home: Home) -> Sandbox:
    """Prove that a sandbox works here. Blocks; raises ConfigError. The result has no control groups yet."""
    from hermes.sandbox.sandbox import open_sandbox  # noqa: PLC0415 - not needed for the start

    return open_sandbox(
        _rules(config, home),
        home=os.path.expanduser("~"),  # noqa: PTH111 - never raises
        enabled=config.sandbox.mode != "off",
        user_name=config.sandbox.user,
    )


def sandbox_text(sandbox: Sandbox) -> str:
    """Describe the protection, or its absence and the cause, in a few sentences, without the last full stop."""
    probe = sandbox.probe
    if probe.works:
        parts = "bubblewrap and seccomp" if probe.filtered else "bubblewrap, without a seccomp filter"
        return f"on ({parts}; limits: {_limits(sandbox)}){_root_text(sandbox)}"
    why = f" ({probe.detail})" if probe.detail else ""
    whose = "" if probe.cause.value == "off" else "; users and guests have no terminal and file tools"
    return f"OFF: tools can read and change everything that this user can{whose}. Cause: {probe.cause.value}{why}"


def _root_text(sandbox: Sandbox) -> str:
    if sandbox.user is None:
        return ""
    text = f". The daemon runs as root, and tools run as uid {sandbox.user.uid}"
    if sandbox.cgroups:
        return text
    return f"{text}. In directories of other users, tools run as root and without a limit on processes"


def _limits(sandbox: Sandbox) -> str:
    """Return the mechanism that limits commands in the sandbox."""
    return "rlimits" if sandbox.cgroups is None else "cgroup"


def _cgroups(config: Config) -> Cgroups | None:
    """Open control groups, if they are enabled. Blocks; moves the daemon into another group."""
    from hermes.processes.shim.member import below  # noqa: PLC0415
    from hermes.sandbox.cgroup import GroupLimits  # noqa: PLC0415
    from hermes.sandbox.delegation import CgroupRefusal, open_cgroups  # noqa: PLC0415

    opened = open_cgroups(
        GroupLimits(memory_bytes=config.sandbox.memory_mb << 20, processes=config.sandbox.max_processes),
        membership=own_cgroups(),
        ours=lambda: (os.getpid(), *below(os.getpid())),
        outlived=config.processes.keep_on_stop,
        new_id=lambda: secrets.token_hex(4),
    )
    if isinstance(opened, CgroupRefusal):
        logger.debug("sandbox: no control groups: {}", opened.value)
        return None
    return opened


def _rules(config: Config, home: Home) -> Any:
    from hermes.app.factories.own_place import secret_paths  # noqa: PLC0415
    from hermes.sandbox.sandbox_plan import SandboxRules  # noqa: PLC0415

    return SandboxRules(
        read_paths=_existing("read_paths", config.sandbox.read_paths),
        write_paths=_existing("write_paths", config.sandbox.write_paths),
        secret_paths=(str(home.data_dir), *secret_paths(config, home)),
        git_config_writable=config.sandbox.git_config == "rw",
        debuggers=config.sandbox.debuggers,
    )


def check_opened_paths(config: Config, _environ: Mapping[str, str]) -> None:
    """Raise ConfigError for a directory with which no command could start."""
    from hermes.sandbox.sandbox_plan import hides_own  # noqa: PLC0415

    settings = {"read_paths": config.sandbox.read_paths, "write_paths": config.sandbox.write_paths}
    problems = [
        f"sandbox.{setting}: {path} would hide {own} of the sandbox; name the directories below it that are needed"
        for setting, paths in settings.items()
        for path in paths
        if (own := hides_own(os.path.realpath(path))) is not None
    ]
    if problems:
        raise ConfigError(*problems)


def _existing(setting: str, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Drop missing paths: bubblewrap refuses to start with one, and no tool would work."""
    found = tuple(os.path.realpath(path) for path in paths if Path(path).exists())
    for path in paths:
        if not Path(path).exists():
            logger.warning("sandbox.{}: {} does not exist; tools go without it", setting, path)
    return found


def _log(sandbox: Sandbox) -> None:
    text = sandbox_text(sandbox)
    if sandbox.works:
        logger.info("sandbox: {}", text)
    else:
        logger.warning("sandbox: {}. Remedy: {}", text, sandbox.probe.remedy)
