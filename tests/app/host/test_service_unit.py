"""The unit says what the settings mean, survives strange paths, and systemd itself finds nothing wrong with it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.app.host.service_unit import STOP_MARGIN_S, Installation, make_unit
from hermes.app.operations import STUCK_S
from hermes.config.settings import Config, ProcessesConfig, ShutdownConfig
from hermes.domain.errors import ConfigError, HomeError, StorageFormatError

MINE = Installation(command=(sys.executable, "daemon"), environment_file=Path("/home/ada/.config/hermes/service.env"))
MACHINES = replace(MINE, user="root", hermes_home=Path("/var/lib/hermes"), state_directory="hermes")


def settings_of(unit: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in unit.splitlines() if "=" in line and not line.startswith("#"))


def unit(config: Config | None = None, installation: Installation = MINE) -> dict[str, str]:
    return settings_of(make_unit(config or Config(), installation))


def test_unit_uses_notify_and_watchdog() -> None:
    found = unit()
    assert (found["Type"], found["NotifyAccess"]) == ("notify", "main")
    assert int(found["WatchdogSec"]) > 2 * STUCK_S


@pytest.mark.parametrize(("timeout_s", "expected"), [(10.0, 10), (0.5, 1), (31.2, 32)])
def test_stop_timeout_of_unit_is_longer_than_of_daemon(timeout_s: float, expected: int) -> None:
    config = Config(shutdown=ShutdownConfig(timeout_s=timeout_s, drain_s=0))
    assert int(unit(config)["TimeoutStopSec"]) == expected + STOP_MARGIN_S


@pytest.mark.parametrize(("keep", "mode"), [(True, "process"), (False, "mixed")])
def test_kill_mode_follows_keep_on_stop(keep: bool, mode: str) -> None:
    assert unit(Config(processes=ProcessesConfig(keep_on_stop=keep)))["KillMode"] == mode


@pytest.mark.parametrize("installation", [MINE, MACHINES])
def test_control_groups_are_delegated_where_no_process_outlives_the_service(installation: Installation) -> None:
    found = unit(Config(processes=ProcessesConfig(keep_on_stop=False)), installation)
    assert found["Delegate"] == "yes"
    assert "ProtectControlGroups" not in found  # would make the delegated group read-only
    assert "Delegate" not in unit(installation=installation)


def test_permanent_failures_prevent_a_restart() -> None:
    found = unit()
    assert found["Restart"] == "on-failure"
    hopeless = set(map(int, found["RestartPreventExitStatus"].split()))
    assert {error.exit_code for error in (ConfigError, HomeError, StorageFormatError)} == hopeless


def test_user_service_is_not_restricted() -> None:
    assert "NoNewPrivileges" not in unit()
    assert "User" not in unit()
    assert unit()["WantedBy"] == "default.target"


def test_system_service_has_a_user_a_home_and_restrictions() -> None:
    found = unit(installation=MACHINES)
    assert (found["User"], found["StateDirectory"], found["StateDirectoryMode"]) == ("root", "hermes", "0700")
    assert found["NoNewPrivileges"] == "yes"
    assert found["WantedBy"] == "multi-user.target"
    assert "PrivateTmp" not in found  # a background process would lose its files with a restart


def test_special_characters_in_paths_are_quoted() -> None:
    odd = replace(MINE, command=("/o p/py$thon", 'a"b\\', "50%"), hermes_home=Path("/a $b%c"))
    text = make_unit(Config(), odd)
    assert 'ExecStart="/o p/py$$thon" "a\\"b\\\\" 50%%\n' in text
    assert 'Environment="HERMES_HOME=/a $b%%c"\n' in text


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze here")
@pytest.mark.parametrize("installation", [MINE, MACHINES, replace(MINE, hermes_home=Path("/a $b%c"))])
@pytest.mark.parametrize("keep", [True, False])
def test_systemd_analyze_accepts_the_unit(tmp_path: Path, installation: Installation, keep: bool) -> None:
    file = tmp_path / "hermes.service"
    file.write_text(make_unit(Config(processes=ProcessesConfig(keep_on_stop=keep)), installation))
    manager = "--system" if installation.user else "--user"
    environ = {"XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        ["systemd-analyze", manager, "--man=no", "verify", str(file)],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    warnings = [line for line in done.stderr.splitlines() if "hermes.service" in line]
    assert warnings == []
    assert done.returncode == 0 or "hermes.service" not in done.stderr
