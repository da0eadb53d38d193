"""systemd, asked by its own commands: the system's manager or a person's, and whether it can be asked at all."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.app.service_unit import NAME
from hermes.domain.errors import HermesError
from hermes.domain.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

_ASKED = (
    "LoadState", "ActiveState", "SubState", "UnitFileState", "MainPID", "NRestarts", "Result", "ExecMainStatus",
    "ActiveEnterTimestamp", "StatusText",
)  # fmt: skip
_BOOTED = Path("/run/systemd/system")  # there where systemd started the machine


class ServiceError(HermesError):
    """The service manager cannot do that, or there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Systemd:
    system: bool
    environ: Mapping[str, str]

    @property
    def level(self) -> str:
        return "system" if self.system else "user"

    @property
    def unit_file(self) -> Path:
        """Where an operator's own units belong."""
        if given := self.environ.get("SYSTEMD_UNIT_PATH", "").strip(":"):  # systemd's own variable
            return Path(given.partition(":")[0]) / NAME
        if self.system:
            return Path("/etc/systemd/system") / NAME
        config = self.environ.get("XDG_CONFIG_HOME") or Path(self.environ.get("HOME", "~")).expanduser() / ".config"
        return Path(config) / "systemd" / "user" / NAME

    @property
    def journal(self) -> str:
        return f"journalctl {'' if self.system else '--user '}-e -u {NAME}"

    def require(self) -> None:
        """Raises ServiceError with what to do where there is no systemd."""
        done = self._run("show", "--property=Version")
        if done is not None and done.returncode == 0:
            return
        said = "there is no systemctl" if done is None else _first_line(done.stderr)
        if self.system or not _BOOTED.is_dir():
            raise ServiceError(
                f"this machine does not run systemd ({said}). `hermes daemon` stays in the foreground and ends well "
                "on SIGTERM: let whatever starts programs here run it. In a container make it the command (see "
                "Containerfile); on macOS a launchd agent can hold it"
            )
        raise ServiceError(
            f"your own systemd cannot be reached ({said}): log in as yourself rather than by su or sudo, or run "
            "`export XDG_RUNTIME_DIR=/run/user/$(id -u)` first; or use --system"
        )

    def do(self, *arguments: str) -> None:
        done = self._run(*arguments)
        if done is None or done.returncode:
            said = _first_line(done.stderr) if done else "there is no systemctl"
            raise ServiceError(f"systemctl {' '.join(arguments)} failed: {said or 'no reason was given'}")

    def properties(self) -> dict[str, str]:
        done = self._run("show", NAME, f"--property={','.join(_ASKED)}")
        lines = done.stdout.splitlines() if done else []
        return {name: value for name, found, value in (line.partition("=") for line in lines) if found}

    def lingers(self) -> bool:
        """Whether a person's services run without that person being logged in."""
        try:
            done = self._command("loginctl", "show-user", str(os.getuid()), "--property=Linger", "--value")
        except FileNotFoundError:
            return False
        return done.stdout.strip() == "yes"

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str] | None:
        try:
            return self._command("systemctl", *(() if self.system else ("--user",)), "--no-pager", *arguments)
        except FileNotFoundError:
            return None

    def _command(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, env=dict(self.environ), capture_output=True, text=True, check=False)  # noqa: S603


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
