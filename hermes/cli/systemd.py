"""Access to systemd through systemctl and loginctl: the system manager or the user manager."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.app.host.service_unit import NAME
from hermes.domain.errors import HermesError
from hermes.domain.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

_ASKED = (
    "LoadState", "ActiveState", "SubState", "UnitFileState", "MainPID", "NRestarts", "Result", "ExecMainStatus",
    "ActiveEnterTimestamp", "StatusText",
)  # fmt: skip
_BOOTED = Path("/run/systemd/system")  # exists if systemd booted the machine


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
        """Return the path of the unit file."""
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
        """Raise ServiceError with a remedy if systemd cannot be used."""
        done = self._run("show", "--property=Version")
        if done is not None and done.returncode == 0:
            return
        reason = "there is no systemctl" if done is None else _first_line(done.stderr)
        if self.system or not _BOOTED.is_dir():
            raise ServiceError(
                f"this machine does not run systemd ({reason}). Let your service manager run `hermes daemon`: it "
                "stays in "
                "the foreground and stops cleanly on SIGTERM. In a container make it the command (see "
                "Containerfile); "
                "on macOS use a launchd agent"
            )
        raise ServiceError(
            f"your systemd user manager cannot be reached ({reason}): log in directly instead of with su or sudo, "
            "or run "
            "`export XDG_RUNTIME_DIR=/run/user/$(id -u)` first; or use --system"
        )

    def do(self, *arguments: str) -> None:
        done = self._run(*arguments)
        if done is None or done.returncode:
            reason = _first_line(done.stderr) if done else "there is no systemctl"
            raise ServiceError(f"systemctl {' '.join(arguments)} failed: {reason or 'no reason was given'}")

    def properties(self) -> dict[str, str]:
        done = self._run("show", NAME, f"--property={','.join(_ASKED)}")
        lines = done.stdout.splitlines() if done else []
        return {name: value for name, found, value in (line.partition("=") for line in lines) if found}

    def lingers(self) -> bool:
        """Return whether user services keep running after logout."""
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
