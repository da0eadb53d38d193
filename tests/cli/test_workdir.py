"""Working directory of a chat."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.config.trust import read_answers
from tests.cli.conftest import command
from tests.cli.test_chat import terminal
from tests.support.daemon_process import DaemonProcess
from tests.support.scripted_model import ScriptedModel

QUESTION = "? (yes/no) "


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonProcess]:
    with ScriptedModel() as model, DaemonProcess(config=model.config) as daemon:
        yield daemon


@pytest.fixture
def project() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="project-") as project:  # short: a terminal breaks long lines
        yield Path(project).resolve()


def pwd(daemon: DaemonProcess, directory: Path, *options: str) -> str:
    """The directory of the command that a single question asks for."""
    return subprocess.run(
        command("chat", *options, "-z", "run pwd"),
        cwd=directory,
        env=daemon.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def test_oneshot_works_in_its_directory_only_if_trusted(daemon: DaemonProcess, project: Path) -> None:
    assert str(project) not in pwd(daemon, project)
    assert str(project) in pwd(daemon, project, "--trust")
    assert str(project) in pwd(daemon, project)  # it is remembered
    below = project / "below"
    below.mkdir()
    assert str(project) not in pwd(daemon, below)  # that directory and no other


def test_it_is_asked_once_and_the_conversation_keeps_its_directory(daemon: DaemonProcess, project: Path) -> None:
    with terminal("chat", cwd=project, HERMES_HOME=str(daemon.home)) as person:
        person.expect(f"Let the agent work in {project}{QUESTION}")
        person.type("perhaps\n")
        person.expect(QUESTION)
        person.type("yes\n")
        session = person.expect("Working directory:").split()[-3].rstrip(".")
        person.expect("you> ")
        person.type("run pwd\n")
        person.expect(f"results: {project}")
        person.type("/quit\n")
    daemon.terminate()
    daemon.start()
    elsewhere = pwd(daemon, Path.home(), "-r", session)
    assert str(project) in elsewhere
    with terminal("chat", cwd=project, HERMES_HOME=str(daemon.home)) as person:
        assert QUESTION not in person.expect("you> ")
        person.type("/new\n")
        person.expect("you> ")
        person.type("run pwd\n")
        person.expect(f"results: {project}")
        person.type("/quit\n")


def test_a_refusal_is_remembered_too_and_can_be_taken_back(daemon: DaemonProcess, project: Path) -> None:
    with terminal("chat", cwd=project, HERMES_HOME=str(daemon.home)) as person:
        person.expect(QUESTION)
        person.type("no\n")
        assert "Working directory:" not in person.expect("you> ")
        person.type("/quit\n")
    assert read_answers(daemon.home)[str(project)] is False
    assert str(project) not in pwd(daemon, project)
    assert str(project) in pwd(daemon, project, "--trust")


def test_home_directory_cannot_be_trusted(daemon: DaemonProcess, project: Path) -> None:
    environ = {**daemon.environ, "HOME": str(project)}
    with terminal("chat", cwd=project, HERMES_HOME=str(daemon.home), HOME=str(project)) as person:
        assert QUESTION not in person.expect("you> ")
        person.type("/quit\n")
    done = subprocess.run(
        command("chat", "--trust", "-z", "hello"),
        cwd=project,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == f"hermes: the agent cannot work in {project}: it contains your home directory\n"
