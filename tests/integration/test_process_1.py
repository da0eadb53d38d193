"""The daemon as process 1, as in a container: signals reach it, orphans are buried, its exit code is that of all."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.config.home import Home
from hermes.config.loader import load_config
from hermes.config.platforms import PLATFORMS
from hermes.config.settings import Config
from tests.support.daemon_process import DaemonProcess
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[2]
IS_ROOT = os.geteuid() == 0
INSIDE = ("unshare", *(() if IS_ROOT else ("--map-root-user",)), "--pid", "--fork", "--mount-proc")


def can_be_process_1() -> bool:
    try:
        done = subprocess.run([*INSIDE, "sh", "-c", "echo $$"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return False
    return done.stdout == "1\n"


needs_namespaces = pytest.mark.skipif(not can_be_process_1(), reason="no process namespaces here")


@pytest.fixture
def container() -> Iterator[DaemonProcess]:
    with DaemonProcess(prefix=(*INSIDE, "--kill-child")) as daemon:
        yield daemon


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def process_1(container: DaemonProcess) -> int:
    """By its number outside."""
    assert container.process is not None
    [pid] = children_of(container.process.pid)
    return pid


def entering(first: int) -> list[str]:
    """What runs a command beside process 1 of a container."""
    user = () if IS_ROOT else ("--user", "--preserve-credentials")
    return ["nsenter", f"--target={first}", *user, "--pid", "--mount"]


@needs_namespaces
def test_a_stop_of_the_container_is_a_stop_of_the_daemon(container: DaemonProcess) -> None:
    session = container.ask("My name is Ada.").session
    assert container.admin.get("/info")["pid"] != 1
    assert container.hermes("status").returncode == 0
    os.kill(process_1(container), signal.SIGTERM)
    assert container.process is not None
    assert container.process.wait(20) == 0
    assert "asked to stop by SIGTERM" in container.stderr()
    container.kill()
    container.start()
    assert "Ada" in container.ask("Who am I?", session).text


@needs_namespaces
def test_a_restart_of_the_daemon_leaves_the_container_running(container: DaemonProcess) -> None:
    first = process_1(container)
    done = container.hermes("restart")
    assert done.returncode == 0, done.stderr
    assert container.hermes("status").returncode == 0
    assert process_1(container) == first


@needs_namespaces
def test_orphans_are_buried_and_the_daemons_own_children_are_not(container: DaemonProcess) -> None:
    first = process_1(container)
    [daemon] = children_of(first)
    orphan = "(setsid sleep 0.1 > /dev/null 2>&1 &)"  # whose parent is gone at once
    for _ in range(5):
        subprocess.run([*entering(first), "sh", "-c", orphan], check=True)
    command = json.dumps({"command": f"{orphan}; exit 7"})
    assert "[exit code 7]" in container.ask(f"!tool terminal {command}").text
    eventually(lambda: children_of(first) == [daemon])
    eventually(lambda: not children_of(daemon))


@needs_namespaces
def test_the_end_of_the_daemon_is_the_end_of_the_container(container: DaemonProcess) -> None:
    [daemon] = children_of(process_1(container))
    os.kill(daemon, signal.SIGKILL)
    assert container.process is not None
    assert container.process.wait(20) == 128 + signal.SIGKILL


@needs_namespaces
def test_a_configuration_that_cannot_be_used_ends_it_with_its_own_code(tmp_path: Path) -> None:
    done = subprocess.run(
        [*INSIDE, "--kill-child", sys.executable, "-m", "hermes.cli.main", "daemon"],
        env={**os.environ, "HERMES_HOME": str(tmp_path), "HERMES_API_PORT": "many"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 78


@needs_namespaces
@pytest.mark.skipif(IS_ROOT, reason="nothing is hidden from root")
def test_process_1_shows_the_tools_none_of_its_environment() -> None:
    """Looked at from inside, as nobody special: who made the namespace may see everything in it."""
    prefix = ("unshare", "--map-current-user", *INSIDE[2:], "--kill-child")
    with DaemonProcess(prefix=prefix) as container:
        look = [*entering(process_1(container)), "cat"]
        found = subprocess.run([*look, "/proc/1/environ"], capture_output=True, text=True, check=False)
        assert (found.returncode, found.stdout) == (1, "")
        assert "Permission denied" in found.stderr
        assert (
            "Pid:\t1\n"
            in subprocess.run([*look, "/proc/1/status"], capture_output=True, text=True, check=True).stdout
        )


# ---------------------------------------------------------------- the file itself


CONTAINERFILE = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} +(.+)$", CONTAINERFILE, re.MULTILINE)


def test_the_settings_of_the_image_are_settings(tmp_path: Path) -> None:
    [variables] = instructions("ENV")
    environ = dict(each.split("=", 1) for each in shlex.split(variables))
    config = load_config(Home.from_environ({"HERMES_HOME": str(tmp_path)}), environ)
    assert config.api.host == "0.0.0.0"
    assert config.shutdown.timeout_s < 10  # what `docker stop` waits
    assert instructions("EXPOSE") == [str(Config().api.port)]
    assert instructions("VOLUME") == [environ["HERMES_HOME"]]


def test_the_image_is_made_of_what_is_there_and_of_no_secrets() -> None:
    copied = [each for line in instructions("COPY") if "--from" not in line for each in line.split()[:-1]]
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for name in copied:
        assert (ROOT / name).exists(), name
        assert f"!{name}" in ignored, name
    assert not re.search(r"(?i)(api_key|token|secret) *=", CONTAINERFILE)


def test_the_image_has_every_platform_that_can_be_configured() -> None:
    assert "--require-hashes -r /src/requirements/chat.txt" in CONTAINERFILE
    locked = Path("requirements/chat.txt").read_text()
    extras = tomllib.loads(Path("pyproject.toml").read_text())["project"]["optional-dependencies"]
    for name in PLATFORMS:
        for requirement in extras[name]:
            assert f"\n{re.split('[<>=]', requirement)[0]}==" in f"\n{locked}", requirement


def test_image_runs_as_ordinary_user_without_a_shell() -> None:
    assert instructions("USER") == ["hermes"]
    assert (instructions("ENTRYPOINT"), instructions("CMD")) == (['["hermes"]'], ['["daemon"]'])
    assert 'CMD ["hermes", "status"]' in instructions("HEALTHCHECK")[0]
