"""`hermes trust`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
    added = json.loads(hermes("trust", "add", str(project), "--json").stdout)
    assert [each["path"] for each in added["trusted"]] == [path]
    [listed] = json.loads(hermes("trust", "list", "--json").stdout)["trusted"]
    assert (listed["path"], listed["current"]) == (path, True)
    (project / "AGENTS.md").write_text("changed")
    assert "changed" in hermes("trust", "list").stdout
    assert path in hermes("trust", "remove", str(project)).stdout
    assert json.loads(hermes("trust", "list", "--json").stdout) == {"trusted": []}


def test_home_directory_is_refused(hermes: Hermes, elsewhere: Path) -> None:
    (elsewhere / "AGENTS.md").write_text("hello")
    done = hermes("trust", str(elsewhere), HOME=str(elsewhere))
    assert done.returncode != 0
    assert "never in your home directory" in done.stderr
