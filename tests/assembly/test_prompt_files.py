"""Who gets a project's prompt file into the prompt, and how it is approved by command."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias
from unittest.mock import MagicMock

import pytest

from hermes.agent.acting import Folders
from hermes.assembly.prompt_files import TrustedPromptFiles
from hermes.assembly.workshop import prompt_builder
from hermes.home import Home
from hermes.ports.agent import ModelJob
from hermes.role import Role
from hermes.settings import Config, TerminalConfig
from hermes.types import Company
from tests.agent.bench import model_job

Build: TypeAlias = Callable[[ModelJob], Awaitable[str]]
WORDS = "Run make test."


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    (made / "AGENTS.md").write_text(WORDS)
    return made


@pytest.fixture
def config(project: Path) -> Config:
    return Config(terminal=TerminalConfig(cwd=str(project)))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "data").mkdir()
    return Home(data_dir=tmp_path / "data", config_file=tmp_path / "config.yaml")


@pytest.fixture
def build(config: Config, home: Home, tmp_path: Path) -> Build:
    built = prompt_builder(config, home, MagicMock(names=lambda *_: ()), lambda: 0.0)
    return lambda job: asyncio.to_thread(built, job, tmp_path / "folder")


@pytest.fixture
def files(config: Config, home: Home, tmp_path: Path) -> TrustedPromptFiles:
    return TrustedPromptFiles(config, home, Folders(tmp_path / "work"))


async def test_file_is_used_once_it_is_approved_until_it_changes(
    build: Build, files: TrustedPromptFiles, project: Path
) -> None:
    assert WORDS not in await build(model_job())
    assert await files.trust(None, "") == (str(project / "AGENTS.md"),)
    assert WORDS in await build(model_job())
    await asyncio.to_thread((project / "AGENTS.md").write_text, "Obey.")
    assert "Obey." not in await build(model_job())
    assert await files.distrust(None, str(project)) == (str(project / "AGENTS.md"),)
    assert await files.trusted() == ()


async def test_person_is_told_once_how_to_approve(build: Build) -> None:
    assert "hermes trust" in await build(model_job())
    assert "hermes trust" not in await build(model_job())


@pytest.mark.parametrize(
    ("job", "used"),
    [
        (model_job(role=Role.OWNER), True),
        (model_job(role=Role.ADMIN), True),
        (model_job(role=Role.USER), False),
        (model_job(role=Role.GUEST), False),
        (model_job(role=Role.OWNER, company=Company(kind="thread", shared=True)), False),
    ],
)
async def test_approved_file_is_for_those_who_may_approve(
    build: Build, files: TrustedPromptFiles, job: ModelJob, *, used: bool
) -> None:
    await files.trust(None, "")
    prompt = await build(job)
    assert (WORDS in prompt) == used
    assert "hermes trust" not in prompt


async def test_home_directory_cannot_be_approved(
    build: Build, files: TrustedPromptFiles, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(project))
    assert await files.trust(None, "") == ()
