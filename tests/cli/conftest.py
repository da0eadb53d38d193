from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes.config.home import Home
from tests.cli.fake_admin import FakeAdmin

Hermes = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    return Home.from_environ({"HERMES_HOME": str(tmp_path)})


@pytest.fixture
def admin(home: Home) -> Iterator[FakeAdmin]:
    with FakeAdmin(home.socket) as server:
        yield server


@pytest.fixture
def hermes(home: Home) -> Hermes:
    """The command in a process of its own, on the test's home."""

    def run(*argv: str, input: str | None = None, **environ: str) -> subprocess.CompletedProcess[str]:  # noqa: A002
        return subprocess.run(
            command(*argv),
            env={**os.environ, "HERMES_HOME": str(home.data_dir), **environ},
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def command(*argv: str) -> list[str]:
    return [sys.executable, "-m", "hermes.cli.main", *argv]
