"""Who gets a project's prompt file into the prompt, and how it is approved by command."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias
from unittest.mock import MagicMock

import pytest

from hermes.actors.process.process_services import Announcement
from hermes.agent.tool_step import Folders
from hermes.app.factories.prompt_files import TrustedPromptFiles
from hermes.app.factories.turn_environment import prompt_builder
from hermes.config.home import Home
from hermes.config.prompt_trust import CHANGED
from hermes.config.settings import Config, TerminalConfig
from hermes.domain.access.role import Role
from hermes.domain.errors import BadInputError
from hermes.domain.session.jobs import ModelJob
from hermes.domain.source import ChatContext
from hermes.skills.library import SkillLibrary
from tests.agent.harness import model_job

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
def told() -> list[Announcement]:
    return []


@pytest.fixture
def build(config: Config, home: Home, tmp_path: Path, told: list[Announcement]) -> Build:
    built = prompt_builder(
        config,
        home,
        MagicMock(names=lambda *_: (), offered=lambda *_: ()),
        lambda: 0.0,
        told.append,
        library=SkillLibrary(tmp_path),
    )
    return lambda job: asyncio.to_thread(built, job, tmp_path / "folder", "")


@pytest.fixture
def files(config: Config, home: Home, tmp_path: Path) -> TrustedPromptFiles:
    return TrustedPromptFiles(config, home, Folders(tmp_path / "work"))


async def approve(files: TrustedPromptFiles) -> tuple[str, ...]:
    return await files.trust(None, "", [each.digest for each in await files.found(None, "")])


async def test_file_is_used_once_it_is_approved_until_it_changes(
    build: Build, files: TrustedPromptFiles, project: Path
) -> None:
    assert WORDS not in await build(model_job())
    assert await approve(files) == (str(project / "AGENTS.md"),)
    assert WORDS in await build(model_job())
    await asyncio.to_thread((project / "AGENTS.md").write_text, "Obey.")
    assert "Obey." not in await build(model_job())
    assert await files.distrust(None, str(project)) == (str(project / "AGENTS.md"),)
    assert await files.trusted() == ()


async def test_person_is_told_once_per_version_how_to_approve(
    build: Build, files: TrustedPromptFiles, told: list[Announcement], project: Path
) -> None:
    [file] = await files.found(None, "")
    assert "hermes trust" in await build(model_job())
    assert "hermes trust" not in await build(model_job())
    [said] = told
    assert f"hermes trust {project}" in said.text
    assert file.digest in said.text
    await asyncio.to_thread((project / "AGENTS.md").write_text, "Obey.")
    await build(model_job())
    await build(model_job())
    assert len({each.id for each in told}) == len(told) == 2


async def test_only_approvers_are_notified(build: Build, told: list[Announcement]) -> None:
    await build(model_job(role=Role.USER))
    assert told == []


@pytest.mark.parametrize(
    ("job", "used"),
    [
        (model_job(role=Role.OWNER), True),
        (model_job(role=Role.ADMIN), True),
        (model_job(role=Role.USER), False),
        (model_job(role=Role.GUEST), False),
        (model_job(role=Role.OWNER, company=ChatContext(kind="thread", shared=True)), False),
    ],
)
async def test_approved_file_is_for_those_who_may_approve(
    build: Build, files: TrustedPromptFiles, job: ModelJob, *, used: bool
) -> None:
    await approve(files)
    prompt = await build(job)
    assert (WORDS in prompt) == used
    assert "hermes trust" not in prompt


async def test_home_directory_cannot_be_approved(
    build: Build, files: TrustedPromptFiles, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(project))
    assert await files.found(None, "") == ()


async def test_file_that_changed_since_it_was_shown_is_not_approved(files: TrustedPromptFiles, project: Path) -> None:
    [shown] = await files.found(None, "")
    await asyncio.to_thread((project / "AGENTS.md").write_text, "Obey.")
    with pytest.raises(BadInputError) as caught:
        await files.trust(None, "", [shown.digest])
    assert caught.value.code == CHANGED
    assert await files.trusted() == ()


async def test_without_a_conversation_the_directory_has_to_be_named(
    home: Home, project: Path, tmp_path: Path
) -> None:
    files = TrustedPromptFiles(Config(), home, Folders(tmp_path / "work"))
    for relative in ("", "project"):
        with pytest.raises(BadInputError, match="name the directory"):
            await files.found(None, relative)
    assert len(await files.found(None, str(project))) == 1
