"""The systemd unit, made from the settings. Pure.

What it promises must fit what the daemon does: it says itself when it is ready and that it is alive (Type=notify,
the watchdog), it leaves within `shutdown.timeout_s` by itself, so systemd waits a little longer; background processes
stay when it stops, if `processes.keep_on_stop` says so; exit codes that trying again cannot cure end the matter. An
agent's commands are its children: nothing here takes away what they need (files, network, their own namespaces), and
one of them that runs out of memory does not take the daemon with it.
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
WATCHDOG_S: Final = 60  # three times what counts as stuck; see operations.py

# For a user of its own: none of this is in the way of a command that such a user may run.
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
    """What of this machine goes into the unit."""

    command: tuple[str, ...]  # that runs `hermes daemon`
    environment_file: Path  # may hold keys, and need not exist
    hermes_home: Path | None = None  # None: the platform's own directories
    user: str = ""  # whom it runs as, for the system's own manager; empty: for a person's
    state_directory: str = ""  # that systemd makes under /var/lib


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
    """Control groups for sandboxes. Background processes that stay would keep the service from starting again."""
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
    """As one word of a command line in a unit, whatever it holds."""
    return _quoted(text.replace("$", "$$"))


def _quoted(text: str) -> str:
    escaped = _without_specifiers(text).replace("\\", "\\\\").replace('"', '\\"')
    return escaped if text and not set(text) & set(" \t'\"\\;") else f'"{escaped}"'


def _without_specifiers(text: str) -> str:
    return text.replace("%", "%%")
