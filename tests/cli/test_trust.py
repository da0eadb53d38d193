"""`hermes trust`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hermes.config.home import Home, prepare
from hermes.config.trust import read_answers, remember_answer
from tests.cli.conftest import Hermes


@pytest.fixture
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("elsewhere")


def test_files_are_approved_listed_and_withdrawn(hermes: Hermes, elsewhere: Path) -> None:
    project = elsewhere / "list"  # a directory may be called like an action
    project.mkdir()
    assert hermes("trust", str(project)).returncode != 0
    (project / "AGENTS.md").write_text("hello")
    path = str((project / "AGENTS.md").resolve())
    assert "there is no directory" in hermes("trust", str(project / "missing")).stderr
    shown = hermes("trust", str(project))
    assert shown.returncode == 3
    assert "hello" in shown.stdout
    digest = re.search(r"--digest (\w{16})$", shown.stdout.strip())
    assert digest is not None
    assert json.loads(hermes("trust", "list", "--json").stdout)["prompt_files"] == []
    added = json.loads(hermes("trust", "add", str(project), "--digest", digest[1], "--json").stdout)
    assert [each["path"] for each in added["approved"]] == [path]
    [listed] = json.loads(hermes("trust", "list", "--json").stdout)["prompt_files"]
    assert (listed["path"], listed["current"]) == (path, True)
    (project / "AGENTS.md").write_text("changed")
    assert hermes("trust", "add", str(project), "--digest", digest[1]).returncode not in (0, 3)
    assert "changed" in hermes("trust", "list").stdout
    assert path in hermes("trust", "remove", str(project)).stdout
    assert json.loads(hermes("trust", "list", "--json").stdout) == {"prompt_files": [], "work_directories": []}


def test_work_directories_are_listed_and_withdrawn(hermes: Hermes, home: Home, elsewhere: Path) -> None:
    assert "no work directory is trusted" in hermes("trust", "list").stdout
    prepare(home)
    remember_answer(home.data_dir, elsewhere, trusted=True)
    assert [line.split()[:3] for line in hermes("trust", "list").stdout.splitlines()[1:]] == [
        ["work", "directory", "trusted"]
    ]
    [listed] = json.loads(hermes("trust", "list", "--json").stdout)["work_directories"]
    assert listed == {"path": str(elsewhere), "trusted": True}
    assert "asks again" in hermes("trust", "remove", str(elsewhere)).stdout
    assert read_answers(home.data_dir) == {}


def test_help_prints_the_whole_description(hermes: Hermes) -> None:
    overview = " ".join(hermes("--help").stdout.split())
    assert "(such as AGENTS.md), list and withdraw trust" in overview


def test_home_directory_is_refused(hermes: Hermes, elsewhere: Path) -> None:
    (elsewhere / "AGENTS.md").write_text("hello")
    done = hermes("trust", str(elsewhere), HOME=str(elsewhere))
    assert done.returncode != 0
    assert "your home directory itself is never searched" in done.stderr
