"""`hermes service` with a fake systemd that records commands."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from hermes.config.home import Home, lock, prepare
from tests.cli.conftest import Hermes

SYSTEMCTL = f"""#!{sys.executable}
import os, sys
here = os.path.dirname(os.path.abspath(__file__))
arguments = [each for each in sys.argv[1:] if each != "--no-pager"]
with open(os.path.join(here, "told"), "a") as file:
    file.write(" ".join(arguments) + "\\n")
if os.environ.get("FAKE_FAILS", "nothing") in arguments:
    sys.exit("Job for hermes.service failed.")
if "hermes.service" in arguments and "show" in arguments:
    print(open(os.path.join(here, "properties")).read())
"""
LOGINCTL = f"""#!{sys.executable}
import os
print(os.environ.get("FAKE_LINGER", "no"))
"""
IDLE = "LoadState=loaded\nActiveState=inactive\nSubState=dead\nUnitFileState=enabled\nMainPID=0\nNRestarts=0"
RUNNING = (
    "LoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\nMainPID=4711\nNRestarts=2\n"
    "Result=success\nExecMainStatus=0\nActiveEnterTimestamp=Mon 2026-11-16 08:00:00 UTC\nStatusText=3 turns"
)
FAILED = "LoadState=loaded\nActiveState=failed\nSubState=failed\nResult=exit-code\nExecMainStatus=78"


class FakeSystemd:
    def __init__(self, directory: Path) -> None:
        self.bin = directory / "bin"
        self.units = directory / "units"
        self.bin.mkdir(parents=True)
        for name, text in (("systemctl", SYSTEMCTL), ("loginctl", LOGINCTL)):
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)
        self.state = IDLE

    @property
    def unit(self) -> Path:
        return self.units / "hermes.service"

    @property
    def environ(self) -> dict[str, str]:
        return {"PATH": f"{self.bin}:{os.environ['PATH']}", "SYSTEMD_UNIT_PATH": f"{self.units}:"}

    @property
    def state(self) -> str:
        return (self.bin / "properties").read_text()

    @state.setter
    def state(self, text: str) -> None:
        (self.bin / "properties").write_text(text)

    def told(self) -> list[str]:
        file = self.bin / "told"
        lines = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return [line for line in lines if " show " not in f" {line} "]


@pytest.fixture
def systemd(tmp_path_factory: pytest.TempPathFactory) -> FakeSystemd:
    return FakeSystemd(tmp_path_factory.mktemp("systemd"))


def test_a_service_from_its_installation_to_its_end(systemd: FakeSystemd, home: Home, hermes: Hermes) -> None:
    environ = systemd.environ
    printed = hermes("service", "install", "--print", **environ).stdout
    assert not systemd.unit.exists()
    assert systemd.told() == []

    done = hermes("service", "install", **environ)
    assert done.stderr == ""
    assert done.stdout.startswith(
        f"Installed {systemd.unit}; the service starts at boot.\n  Next: hermes service start\n"
    )
    assert f"into {home.data_dir}/service.env" in done.stdout
    assert "loginctl enable-linger" in done.stdout
    assert systemd.unit.read_text() == printed
    assert f"Environment=HERMES_HOME={home.data_dir}\n" in printed
    assert systemd.told() == ["--user daemon-reload", "--user enable hermes.service"]
    assert hermes("service", "install", **environ).stdout.startswith("Updated")
    systemd.told()

    assert hermes("service", "start", **environ).stdout == "The service is running and ready.\n"
    assert hermes("service", "restart", **environ).returncode == 0
    assert hermes("service", "stop", **environ).stdout == "The service has stopped.\n"
    assert hermes("service", "uninstall", **environ).stdout.startswith("The service is removed; everything in ")
    assert systemd.told() == [
        "--user start hermes.service",
        "--user restart hermes.service",
        "--user stop hermes.service",
        "--user disable --now hermes.service",
        "--user daemon-reload",
    ]
    assert not systemd.unit.exists()
    assert "run `hermes service install` first" in hermes("service", "start", **environ).stderr


def test_the_machines_service_has_its_own_home_and_user(systemd: FakeSystemd, home: Home, hermes: Hermes) -> None:
    unknown = hermes("service", "install", "--system", "--run-as", "nobody-at-all", **systemd.environ)
    assert "useradd --system --create-home --shell /bin/bash nobody-at-all" in unknown.stderr
    assert not systemd.unit.exists()
    done = hermes("service", "install", "--system", "--run-as", "root", HERMES_HOME="", **systemd.environ)
    assert done.stderr == ""
    assert "Next: hermes service start --system" in done.stdout
    assert "linger" not in done.stdout
    unit = systemd.unit.read_text()
    assert "User=root\nStateDirectory=hermes\n" in unit
    assert "Environment=HERMES_HOME=/var/lib/hermes\n" in unit
    assert systemd.told() == ["daemon-reload", "enable hermes.service"]


def test_the_unit_follows_the_settings_that_the_service_will_see(
    systemd: FakeSystemd, home: Home, hermes: Hermes
) -> None:
    environ = {**systemd.environ, "HERMES_SHUTDOWN_TIMEOUT_S": "99"}
    done = hermes("service", "install", **environ)
    assert "It does not see HERMES_SHUTDOWN_TIMEOUT_S of this shell: " in done.stdout
    assert "TimeoutStopSec=15\n" in systemd.unit.read_text()
    assert json.loads(hermes("service", "status", "--json", **systemd.environ).stdout)["up_to_date"] is True

    home.config_file.write_text("processes: {keep_on_stop: false}\n")
    (home.data_dir / "service.env").write_text("# mine\nHERMES_SHUTDOWN_TIMEOUT_S='40'\n")
    assert json.loads(hermes("service", "status", "--json", **systemd.environ).stdout)["up_to_date"] is False
    assert "hermes service install` updates it" in hermes("service", "status", **systemd.environ).stdout
    hermes("service", "install", **systemd.environ)
    unit = systemd.unit.read_text()
    assert "TimeoutStopSec=45\n" in unit
    assert "KillMode=mixed\n" in unit

    home.config_file.write_text("shutdwon: {}\n")
    assert hermes("service", "install", **systemd.environ).returncode == 78
    assert json.loads(hermes("service", "status", "--json", **systemd.environ).stdout)["up_to_date"] is False


def test_missing_keys_are_named_and_the_unit_holds_none(home: Home, hermes: Hermes) -> None:
    home.config_file.write_text("model: {provider: openai, name: m}\ntelegram: {enabled: true}\n")
    shell = {"HERMES_API_KEY": "k" * 20, "OPENAI_API_KEY": "sk-of-this-shell", "TELEGRAM_BOT_TOKEN": "1:token"}
    printed = hermes("service", "install", "--print", **shell)
    assert printed.returncode == 0
    assert not any(value in printed.stdout for value in shell.values())
    told = " ".join(printed.stderr.split())
    assert "It does not see HERMES_API_KEY of this shell: set them" in told
    assert "the model's key is missing: the environment variable OPENAI_API_KEY" in told
    assert "the Telegram bot's token is missing" in told

    private = home.data_dir / "service.env"
    private.write_text("".join(f"{name}={value}\n" for name, value in shell.items()))
    private.chmod(0o644)
    told = hermes("service", "install", "--print", **shell).stderr
    assert " ".join(told.split()).endswith(f"is readable by other users; run `chmod 600 {private}`")
    private.chmod(0o600)
    assert hermes("service", "install", "--print", **shell).stderr == ""


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (RUNNING, (0, "running  yes      4711  2")),
        (IDLE, (3, "dead")),
        (FAILED, (3, "It failed with exit-code, exit code 78; see `journalctl --user -e -u hermes.service`.")),
    ],
)
def test_service_status_as_table_and_json(
    systemd: FakeSystemd, home: Home, hermes: Hermes, state: str, expected: tuple[int, str]
) -> None:
    code, said = expected
    hermes("service", "install", **systemd.environ)
    systemd.state = state
    done = hermes("service", "status", **systemd.environ)
    assert (done.returncode, done.stderr) == (code, "")
    assert said in done.stdout
    told = json.loads(hermes("service", "status", "--json", **systemd.environ).stdout)
    assert told["installed"] is True
    assert told["active"] == dict(line.split("=") for line in state.splitlines()[:2])["ActiveState"]


def test_status_of_a_service_that_is_not_installed(systemd: FakeSystemd, home: Home, hermes: Hermes) -> None:
    systemd.state = "LoadState=not-found\nActiveState=inactive\nSubState=dead"
    done = hermes("service", "status", **systemd.environ)
    assert done.returncode == 3
    assert done.stdout == "The service is not installed; run `hermes service install`.\n"


def test_failed_start_names_the_journal(systemd: FakeSystemd, home: Home, hermes: Hermes) -> None:
    hermes("service", "install", **systemd.environ)
    done = hermes("service", "start", FAKE_FAILS="start", **systemd.environ)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Job for hermes.service failed. (see `journalctl --user -e -u hermes.service`)" in done.stderr


def test_a_service_does_not_start_beside_another_daemon(systemd: FakeSystemd, home: Home, hermes: Hermes) -> None:
    hermes("service", "install", **systemd.environ)
    systemd.told()
    prepare(home)
    with lock(home):
        done = hermes("service", "start", **systemd.environ)
    assert done.returncode == 75
    assert "run `hermes stop` first" in done.stderr
    assert systemd.told() == []


def test_foreign_unit_is_never_replaced(systemd: FakeSystemd, home: Home, hermes: Hermes) -> None:
    systemd.units.mkdir()
    systemd.unit.write_text("[Unit]\nDescription=another Hermes\n")
    done = hermes("service", "install", **systemd.environ)
    assert "was not written by Hermes" in done.stderr
    assert "another Hermes" in systemd.unit.read_text()


@pytest.mark.parametrize("action", ["install", "start", "status", "uninstall"])
@pytest.mark.parametrize("level", [[], ["--system"]])
def test_without_systemd_a_remedy_is_printed(
    tmp_path: Path, home: Home, hermes: Hermes, action: str, level: list[str]
) -> None:
    done = hermes("service", action, *level, PATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert "this machine does not run systemd" in done.stderr or "your own systemd cannot be reached" in done.stderr


def test_no_linger_hint_if_it_is_on(systemd: FakeSystemd, home: Home, hermes: Hermes) -> None:
    assert "enable-linger" not in hermes("service", "install", FAKE_LINGER="yes", **systemd.environ).stdout
