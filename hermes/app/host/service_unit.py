"""The systemd unit: the template `hermes.service` beside this file, filled in from the settings.

A line of the template that starts with `#NAME# ` is kept where NAME applies. `@NAME@` is a value. Reasons:

- TimeoutStopSec: the daemon exits within `shutdown.timeout_s` by itself, so systemd waits a little longer.
- TimeoutStartSec: an older store is migrated before the daemon is ready.
- WatchdogSec: three times what counts as stuck (`operations.py`).
- RestartPreventExitStatus: the configuration or the home cannot be used, and a restart does not change that.
- OOMPolicy: a command of the agent that runs out of memory does not end the daemon.
- Delegate: control groups for sandboxes. Background processes that stay would keep the service from starting again.
- Hardening, for a user of its own: nothing that its commands need (files, network, namespaces) is taken away.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Final

from hermes.config.settings import Config
from hermes.domain.values import dataclass

NAME: Final = "hermes.service"
_TEMPLATE: Final = Path(__file__).with_name(NAME).read_text(encoding="utf-8")
MARK: Final = _TEMPLATE.partition("\n")[0]
STOP_MARGIN_S: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Values of this machine for the unit."""

    command: tuple[str, ...]  # that runs `hermes daemon`
    environment_file: Path  # may hold keys, and need not exist
    hermes_home: Path | None = None  # None: the platform's own directories
    user: str = ""  # for the system's manager; empty: for a person's
    state_directory: str = ""  # that systemd makes under /var/lib


def make_unit(config: Config, installation: Installation) -> str:
    system, keep = bool(installation.user), config.processes.keep_on_stop
    applies = {
        "system": system,
        "state": bool(installation.state_directory),
        "home": installation.hermes_home is not None,
        "delegate": not keep,
        "protect": keep and system,  # would make delegated groups read-only
    }
    values = {
        "command": " ".join(_quoted(word.replace("$", "$$")) for word in installation.command),
        "user": installation.user,
        "state_directory": installation.state_directory,
        "home": _quoted(f"HERMES_HOME={installation.hermes_home}"),
        "environment_file": _without_specifiers(str(installation.environment_file)),
        "kill_mode": "process" if keep else "mixed",
        "stop_timeout_s": str(math.ceil(config.shutdown.timeout_s) + STOP_MARGIN_S),
        "target": "multi-user.target" if system else "default.target",
    }
    lines = re.sub(r"(?m)^#(\w+)# (.*\n)", lambda found: found[2] if applies[found[1]] else "", _TEMPLATE)
    return re.sub(r"@(\w+)@", lambda found: values[found[1]], lines)


def _quoted(text: str) -> str:
    escaped = _without_specifiers(text).replace("\\", "\\\\").replace('"', '\\"')
    return escaped if text and not set(text) & set(" \t'\"\\;") else f'"{escaped}"'


def _without_specifiers(text: str) -> str:
    return text.replace("%", "%%")
