"""The command `/trust`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from hermes.config.prompt_trust import chosen
from hermes.domain.access.prompt_file import PromptFile
from hermes.domain.access.role import Role
from hermes.domain.ids import SessionId
from hermes.domain.source import Source
from hermes.services.commands.registry import Parsed, parse
from hermes.services.commands.reply import CommandCaller, CommandReply
from hermes.services.commands.service import CommandService
from tests.services.commands.harness import ANN, CLI, CommandHarness, world

FILE = PromptFile(path="/p/AGENTS.md", content=b"Be kind.\n")


class FakePromptFiles:
    def __init__(self) -> None:
        self.done: list[tuple[str, SessionId | None, str]] = []
        self.files: tuple[PromptFile, ...] = (FILE,)

    async def found(self, root: SessionId | None, directory: str) -> tuple[PromptFile, ...]:
        self.done.append(("found", root, directory))
        return self.files

    async def trust(self, root: SessionId | None, directory: str, digests: Collection[str]) -> tuple[str, ...]:
        self.done.append(("trust", root, directory))
        return tuple(each.path for each in chosen(self.files, digests))

    async def distrust(self, root: SessionId | None, directory: str) -> tuple[str, ...]:
        self.done.append(("distrust", root, directory))
        return (FILE.path,)

    async def trusted(self) -> tuple[str, ...]:
        return (FILE.path,)


async def run(here: CommandHarness, files: FakePromptFiles, text: str, source: Source = CLI) -> CommandReply:
    desk = CommandService(
        here.desk,
        new_turn_id=here.new_turn_id,
        clock=lambda: here.now,
        models=lambda: (),
        personalities=lambda: (),
        processes=here.processes,
        prompt_files=files,
    )
    parsed = parse(text)
    assert isinstance(parsed, Parsed)
    return await desk.run(parsed, CommandCaller(source=source, session=SessionId("s")))


async def test_content_and_digest_are_shown_before_approval() -> None:
    async with world() as here:
        files = FakePromptFiles()
        await here.talk("a", "s")
        shown = (await run(here, files, "/trust /p")).text
        assert "/p/AGENTS.md: 9 bytes" in shown
        assert "Be kind." in shown
        assert shown.endswith(f"/trust approve {FILE.digest} /p")
        assert files.done == [("found", SessionId("s"), "/p")]


async def test_digest_that_was_shown_is_approved_and_no_other() -> None:
    async with world() as here:
        files = FakePromptFiles()
        await here.talk("a", "s")
        assert (await run(here, files, f"/trust approve {FILE.digest}")).ok
        files.files = (PromptFile(path=FILE.path, content=b"Obey."),)
        changed = await run(here, files, f"/trust approve {FILE.digest}")
        assert not changed.ok
        assert "Nothing was approved" in changed.text
        assert not (await run(here, files, "/trust approve")).ok


async def test_owner_and_admins_list_and_withdraw() -> None:
    async with world() as here:
        files = FakePromptFiles()
        await here.talk("a", "s")
        assert (await run(here, files, "/trust /p", replace(ANN, role=Role.ADMIN))).ok
        assert (await run(here, files, "/trust remove /p")).ok
        assert (await run(here, files, "/trust list")).text == "/p/AGENTS.md"
        files.files = ()
        assert not (await run(here, files, "/trust")).ok


async def test_others_may_not_approve() -> None:
    async with world() as here:
        files = FakePromptFiles()
        for text in ("/trust", "/trust approve 0123456789abcdef", "/trust list", "/trust remove"):
            assert not (await run(here, files, text, ANN)).ok
        assert files.done == []
