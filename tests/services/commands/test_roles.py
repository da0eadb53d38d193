"""Commands by role: one table, and nothing of others for whoever may not see it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes.domain.access.role import Role
from hermes.domain.ids import SessionId, SessionKey
from hermes.domain.source import Source
from hermes.services.commands.command_help import help_text
from hermes.services.commands.registry import COMMANDS, menu
from tests.services.commands.harness import ANN, CommandHarness, world
from tests.support.fakes import process_view

ADMIN = {"restart", "approve", "grants", "yolo", "sethome", "trust", "insights"}
USER = {
    "memory",
    "profile",
    "agents",
    "background",
    "cron",
    "goal",
    "rollback",
    "skills",
    "model",
    "reasoning",
    "processes",
    "handoff",
}
EVE = Source(platform="telegram", user="eve", role=Role.GUEST)
EVES = "agent:main:telegram:dm:eve"
ANNS = "agent:main:telegram:dm:ann"


def allowed(role: Role) -> set[str]:
    return {command.name for command in COMMANDS if role.includes(command.needs)}


def test_the_table() -> None:
    every = {command.name for command in COMMANDS}
    assert allowed(Role.OWNER) == allowed(Role.ADMIN) == every
    assert allowed(Role.USER) == every - ADMIN
    assert allowed(Role.GUEST) == every - ADMIN - USER


@pytest.mark.parametrize("role", Role)
def test_help_and_menu_list_what_the_role_may_use(role: Role) -> None:
    assert {entry["name"] for entry in menu(role)} == allowed(role)
    told = help_text(role=role)
    for command in COMMANDS:
        assert (f"/{command.name} " in f"{told} ".replace("\n", " ")) is (command.name in allowed(role)), command.name


@pytest.mark.parametrize("name", sorted(ADMIN | USER))
async def test_a_guest_is_refused_with_a_clear_sentence(name: str) -> None:
    async with world() as here:
        await here.talk("a", key=EVES, source=EVE)
        reply = await here.command(f"/{name}", key=EVES, source=EVE)
        assert not reply.ok
        assert reply.text.startswith(f"/{name} is for ")
        assert reply.text.endswith("You are a guest here.")
        assert here.restarts == []


async def test_the_role_counts_on_the_api_too() -> None:
    async with world() as here:
        await here.talk("a", "s")
        named_key = Source(platform="api", user="key-1", role=Role.USER)
        assert not (await here.command("/yolo on", "s", source=named_key)).ok
        assert not (await here.session("s")).preferences.yolo
        assert (await here.command("/yolo on", "s", source=Source(platform="api"))).ok


# ---------------------------------------------------------------- nothing of others


async def of_ann(here: CommandHarness) -> SessionId:
    session = await here.talk("the secret of Ann", key=ANNS, source=ANN)
    await here.command("/title Ann's own", key=ANNS, source=ANN)
    here.processes.known = {"proc_a": process_view("proc_a", session=session)}
    return session


@pytest.mark.parametrize("who", [EVE, replace(EVE, role=Role.USER)])
@pytest.mark.parametrize("text", [
    "/sessions", "/sessions 50", "/resume", "/resume 1", "/resume {ann}", "/resume Ann's own", "/resume Ann",
    "/processes", "/processes kill 1", "/processes kill proc_a", "/insights", "/branch", "/undo", "/retry", "/title",
    "/status", "/why", "/usage", "/whoami", "/compress", "/grants",
])  # fmt: skip
async def test_no_command_tells_or_takes_anything_of_others(text: str, who: Source) -> None:
    async with world() as here:
        ann = await of_ann(here)
        before = await here.session(ann)
        own = await here.talk("mine", key=EVES, source=who)
        reply = await here.command(text.format(ann=ann), key=EVES, source=who)
        shown = " ".join([reply.text, *(cell for row in reply.rows for cell in row)])
        for private in (str(ann), "secret of Ann", "Ann's own", "proc_a:"):
            assert private not in shown.replace(text.format(ann=ann).removeprefix("/resume "), "")
        assert await here.desk.bound(SessionKey(EVES)) != ann
        assert await here.session(ann) == before
        assert here.processes.known["proc_a"].ended_at is None
        assert own != ann
