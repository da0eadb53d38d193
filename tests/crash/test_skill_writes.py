"""Kill -9 at each step of a skill write: the call is done once, the skill is whole, and the log agrees with it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from hermes.domain.errors import HermesError
from tests.support.daemon_process import DaemonProcess
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(180)

TEXT = "---\nname: pdf\ndescription: Reads PDFs.\n---\n\n{}\n"
POINTS = (
    "skill: staged",
    "before AppendChange",
    "after AppendChange",
    "skill: recorded",
    "skill: swapped",
    "turn: a tool has run",
)


@pytest.fixture
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess() as daemon:
        yield daemon


def manage(daemon: DaemonProcess, **arguments: str) -> str:
    named = json.dumps(arguments)
    with suppress(OSError, HTTPException):
        return daemon.ask(f"!tool skill_manage {named}\n!echo over", "s").text
    return ""


def ended(daemon: DaemonProcess) -> None:
    assert daemon.process is not None
    assert daemon.process.wait(30) == -signal.SIGKILL
    daemon.kill()  # closes its pipes


def log(daemon: DaemonProcess) -> list[str]:
    return [each["action"] for each in daemon.admin.post("/skills/log", {"name": "pdf"})["changes"]]


@pytest.mark.parametrize("point", POINTS)
def test_killed_creation_is_done_once(daemon: DaemonProcess, point: str) -> None:
    daemon.kill()
    daemon.start(environ={"HERMES_TEST_CRASH": point})
    manage(daemon, action="create", name="pdf", content=TEXT.format("First."))
    ended(daemon)
    daemon.start(environ={"HERMES_TEST_CRASH": ""})
    skills = daemon.home / "skills"
    eventually((skills / "pdf" / "SKILL.md").exists)  # the call runs again, under the same id
    assert (skills / "pdf" / "SKILL.md").read_text(encoding="utf-8") == TEXT.format("First.")
    eventually(lambda: not list((skills / ".staging").iterdir()))
    assert log(daemon) == ["create"]


@pytest.mark.parametrize("point", POINTS)
def test_killed_edit_is_done_once(daemon: DaemonProcess, point: str) -> None:
    manage(daemon, action="create", name="pdf", content=TEXT.format("First."))
    daemon.kill()
    daemon.start(environ={"HERMES_TEST_CRASH": point})
    manage(daemon, action="edit", name="pdf", content=TEXT.format("Second."))
    ended(daemon)
    daemon.start(environ={"HERMES_TEST_CRASH": ""})
    skills = daemon.home / "skills"
    text = skills / "pdf" / "SKILL.md"
    eventually(lambda: text.read_text(encoding="utf-8") == TEXT.format("Second."))
    eventually(lambda: not list((skills / ".staging").iterdir()))
    assert log(daemon) == ["edit", "create"]


INSTALL_POINTS = ("skill: about to install", "skill: staged", "after AppendChange", "skill: installed")
MORE_POINTS = ("before AppendChange", "skill: recorded", "skill: swapped")


def install(daemon: DaemonProcess, folder: Path, *, update: bool) -> dict[str, Any]:
    source = {"kind": "folder", "address": str(folder), "path": ""}
    answer: dict[str, Any] = daemon.admin.post(
        "/skills/install", {"folder": str(folder), "source": source, "update": update}
    )
    return answer


@pytest.mark.parametrize("point", [*INSTALL_POINTS, *(MORE_POINTS if "HERMES_TEST_ALL_STEPS" in os.environ else ())])
def test_killed_update_leaves_one_whole_version_and_a_lock_file_that_fits(
    daemon: DaemonProcess, point: str, tmp_path: Path
) -> None:
    folder = tmp_path / "pdf"
    folder.mkdir()
    (folder / "SKILL.md").write_text(TEXT.format("First."), encoding="utf-8")
    assert install(daemon, folder, update=False)["installed"]
    daemon.kill()
    daemon.start(environ={"HERMES_TEST_CRASH": point})
    (folder / "SKILL.md").write_text(TEXT.format("Second."), encoding="utf-8")
    with suppress(HermesError, OSError, HTTPException):
        install(daemon, folder, update=True)
    ended(daemon)
    daemon.start(environ={"HERMES_TEST_CRASH": ""})
    skills = daemon.home / "skills"
    eventually(lambda: not list((skills / ".staging").iterdir()))
    eventually(lambda: "installing" not in json.loads((skills / ".lock.json").read_bytes()))
    recorded = point not in ("skill: about to install", "skill: staged", "before AppendChange")
    assert (skills / "pdf" / "SKILL.md").read_text(encoding="utf-8") == TEXT.format(
        "Second." if recorded else "First."
    )
    assert log(daemon) == (["update", "install"] if recorded else ["install"])
    [audited] = daemon.admin.post("/skills/audit", {})["skills"]
    assert not audited["changed"]
    assert install(daemon, folder, update=True)["installed"]
