"""From settings to the sandbox, and what operators are told about it."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loguru import logger

from hermes.home import Home
from hermes.settings import Config

if TYPE_CHECKING:
    from hermes.sandbox.network import SandboxNetwork
    from hermes.sandbox.probe import Probe
    from hermes.sandbox.sandbox import Sandbox


class SandboxOpener:
    """Opens the sandbox once, for whichever thread needs it first, and remembers what was found."""

    def __init__(self, config: Config, home: Home) -> None:
        self._config = config
        self._home = home
        self._lock = threading.Lock()
        self._opened: Sandbox | None = None
        self._network: SandboxNetwork | None = None

    def __call__(self) -> Sandbox:
        """Blocking. Raises ConfigError."""
        from hermes.sandbox.sandbox import open_sandbox  # noqa: PLC0415 - not needed for the start

        with self._lock:
            if self._opened is None:
                self._opened = open_sandbox(
                    _rules(self._config, self._home),
                    home=os.path.expanduser("~"),  # noqa: PTH111 - never raises
                    enabled=self._config.sandbox.mode != "off",
                    user_name=self._config.sandbox.user,
                )
                _log(self._opened)
            return self._opened

    @property
    def network(self) -> SandboxNetwork | None:
        """What sandboxes reach; None: nothing. Its parts belong to the event loop."""
        if self._network is None and self._config.sandbox.network == "proxy" and self().works:
            from hermes.sandbox.host_list import allowed_hosts  # noqa: PLC0415
            from hermes.sandbox.network import SandboxNetwork  # noqa: PLC0415

            self._network = SandboxNetwork(allowed_hosts(self._config.sandbox.allowed_hosts))
        return self._network

    async def close(self) -> None:
        if self._network is not None:
            await self._network.close()

    def status(self) -> Mapping[str, Any]:
        """For `hermes status` and the API. Empty until it was opened."""
        if self._opened is None:
            return {}
        probe = self._opened.probe
        return {
            "works": probe.works,
            "cause": probe.cause.value,
            "filtered": probe.filtered,
            "text": sandbox_text(probe),
            "remedy": probe.remedy,
        }


def sandbox_text(probe: Probe) -> str:
    """One sentence for people: what holds, or what does not and why."""
    if probe.works:
        return "on (bubblewrap and seccomp)" if probe.filtered else "on (bubblewrap, without a seccomp filter)"
    why = f" ({probe.detail})" if probe.detail else ""
    return f"OFF: tools can read and change everything that this user can. Cause: {probe.cause.value}{why}"


def secret_paths(config: Config, home: Home) -> tuple[str, ...]:
    """Hermes' own directories, and every file that a setting names as the place of a key."""
    named = [
        config.api.key_file,
        config.model.api_key_file,
        *(
            getattr(settings, name, "")
            for settings in config.platforms().values()
            for name in ("token_file", "tokens_file")
        ),
    ]
    files = [os.path.realpath(Path(each).expanduser()) for each in named if each]
    return tuple(dict.fromkeys((str(home.data_dir), str(home.config_file.parent), *files)))


def _rules(config: Config, home: Home) -> Any:
    from hermes.sandbox.plan import Rules  # noqa: PLC0415

    return Rules(
        read_paths=config.sandbox.read_paths,
        write_paths=config.sandbox.write_paths,
        secret_paths=secret_paths(config, home),
        git_config_writable=config.sandbox.git_config == "rw",
        debuggers=config.sandbox.debuggers,
    )


def _log(sandbox: Sandbox) -> None:
    text = sandbox_text(sandbox.probe)
    if sandbox.works:
        logger.info("sandbox: {}", text)
    else:
        logger.warning("sandbox: {}. Remedy: {}", text, sandbox.probe.remedy)
