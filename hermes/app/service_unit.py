"""systemd unit, generated from the settings. Pure.

The unit matches the daemon's behaviour. The daemon reports that it is ready and alive (Type=notify, watchdog). It
exits within `shutdown.timeout_s`, so systemd waits a little longer. Background processes survive a stop if
`processes.keep_on_stop` is set. Exit codes that a restart cannot cure prevent it. An agent's commands are children of
the daemon: the unit does not restrict their files, network or namespaces, and one that runs out of memory does not
end the daemon.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Final

from hermes.config.settings import Config
from hermes.domain.values import dataclass

NAME: Final = "hermes.service"
MARK: Final = "# Made by `hermes service install`, which also renews it: changes belong into a drop-in file"
HOPELESS: Final = (78,)  # exit codes: the configuration or the home cannot be used
STOP_MARGIN_S: Final = 5
START_TIMEOUT_S: Final = 600  # an older store is migrated before the daemon is ready
WATCHDOG_S: Final = 60  # three times STUCK_S of operations.py

# For a dedicated user. None of this restricts a command that such a user can run.
_HARDENING: Final = (
    "NoNewPrivileges=yes",
    "ProtectSystem=full",
    "ProtectKernelTunables=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelLogs=yes",
    "ProtectClock=yes",
    "ProtectHostname=yes",
    "RestrictSUIDSGID=yes",
    "RestrictRealtime=yes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Values of this machine that go into the unit."""

    command: tuple[str, ...]  # runs `hermes daemon`
    environment_file: Path  # can hold keys; need not exist
    hermes_home: Path | None = None  # None: the platform's own directories
    user: str = ""  # for a system service; empty: a user service
    state_directory: str = ""  # systemd creates it under /var/lib


def make_unit(config: Config, installation: Installation) -> str:
    system = bool(installation.user)
    unit = [
        "Description=Hermes keeps conversations with AI agents alive",
        *(("Wants=network-online.target", "After=network-online.target") if system else ()),
        "StartLimitIntervalSec=120",
        "StartLimitBurst=5",
    ]
    install = [f"WantedBy={'multi-user.target' if system else 'default.target'}"]
    sections = {"Unit": unit, "Service": _service(config, installation), "Install": install}
    return "\n".join([MARK, *(line for name, lines in sections.items() for line in ("", f"[{name}]", *lines)), ""])


def _service(config: Config, installation: Installation) -> list[str]:
    timeout_s = math.ceil(config.shutdown.timeout_s) + STOP_MARGIN_S
    return [
        "Type=notify",
        "NotifyAccess=main",
        f"ExecStart={' '.join(map(_word, installation.command))}",
        "ExecReload=/bin/kill -HUP $MAINPID",
        *_place(installation),
        f"KillMode={'process' if config.processes.keep_on_stop else 'mixed'}",
        f"TimeoutStartSec={START_TIMEOUT_S}",
        f"TimeoutStopSec={timeout_s}",
        f"WatchdogSec={WATCHDOG_S}",
        "Restart=on-failure",
        "RestartSec=2",
        f"RestartPreventExitStatus={' '.join(map(str, HOPELESS))}",
        "OOMPolicy=continue",
        *_groups(config, installation),
        *(_HARDENING if installation.user else ()),
    ]


def _groups(config: Config, installation: Installation) -> list[str]:
    """Control groups for sandboxes. With delegation, surviving background processes would block the next start."""
    if not config.processes.keep_on_stop:
        return ["Delegate=yes"]
    return ["ProtectControlGroups=yes"] if installation.user else []


def _place(installation: Installation) -> list[str]:
    lines = ["WorkingDirectory=~"]
    if installation.user:
        lines.append(f"User={installation.user}")
    if installation.state_directory:
        lines += [f"StateDirectory={installation.state_directory}", "StateDirectoryMode=0700"]
    if installation.hermes_home is not None:
        lines.append(f"Environment={_quoted(f'HERMES_HOME={installation.hermes_home}')}")
    return [*lines, f"EnvironmentFile=-{_without_specifiers(str(installation.environment_file))}"]


def _word(text: str) -> str:
    """Quote a text as one word of a command line in a unit."""
    return _quoted(text.replace("$", "$$"))


def _quoted(text: str) -> str:
    escaped = _without_specifiers(text).replace("\\", "\\\\").replace('"', '\\"')
    return escaped if text and not set(text) & set(" \t'\"\\;") else f'"{escaped}"'


def _without_specifiers(text: str) -> str:
    return text.replace("%", "%%")
