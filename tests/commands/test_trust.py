"""The command `/trust`."""

from __future__ import annotations

from dataclasses import replace

from hermes.commands.desk import CommandDesk
from hermes.commands.registry import Parsed, parse
from hermes.commands.reply import Caller, Reply
from hermes.role import Role
from hermes.types import SessionId, Source
from tests.commands.world import ANN, CLI, World, world


class FakePromptFiles:
    def __init__(self) -> None:
        self.done: list[tuple[str, SessionId | None, str]] = []
        self.found: tuple[str, ...] = ("/p/AGENTS.md",)

    async def trust(self, root: SessionId | None, directory: str) -> tuple[str, ...]:
        self.done.append(("trust", root, directory))
        return self.found

    async def distrust(self, root: SessionId | None, directory: str) -> tuple[str, ...]:
        self.done.append(("distrust", root, directory))
        return self.found

    async def trusted(self) -> tuple[str, ...]:
        return self.found


async def run(here: World, files: FakePromptFiles, text: str, source: Source = CLI) -> Reply:
    desk = CommandDesk(
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
    return await desk.run(parsed, Caller(source=source, session=SessionId("s")))


async def test_owner_and_admins_approve_list_and_withdraw() -> None:
    async with world() as here:
        files = FakePromptFiles()
        await here.talk("a", "s")
        assert "/p/AGENTS.md" in (await run(here, files, "/trust")).text
        assert (await run(here, files, "/trust /p", replace(ANN, role=Role.ADMIN))).ok
        assert (await run(here, files, "/trust remove /p")).ok
        assert (await run(here, files, "/trust list")).text == "/p/AGENTS.md"
        root = SessionId("s")
        assert files.done == [("trust", root, ""), ("trust", root, "/p"), ("distrust", root, "/p")]
        files.found = ()
        assert not (await run(here, files, "/trust")).ok


async def test_others_may_not_approve() -> None:
    async with world() as here:
        files = FakePromptFiles()
        for text in ("/trust", "/trust list", "/trust remove"):
            assert not (await run(here, files, text, ANN)).ok
        assert files.done == []
