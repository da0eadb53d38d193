"""Two people and the owner edit, propose, decide, undo and write by hand: nothing of one reaches another's prompt."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.agent.memory_block import memory_block
from hermes.domain.change import ChangeAction, ChangeAuthor
from hermes.domain.errors import BadInputError
from hermes.domain.memory.edit import MemoryEdit
from hermes.domain.memory.scope import MemoryScope, MemoryTarget, parse_scope
from hermes.ports.memory import ChangeOrigin
from hermes.services.memory.memory_service import MemoryService, MemorySettings
from tests.support.journals import LoopJournal

PEOPLE = ("owner", "person:telegram:1", "person:telegram:11", "person:slack:1", "chat:telegram:1")
MARKS = {person: f"MARK{number}X" for number, person in enumerate(PEOPLE)}
EDITS = ("add", "replace", "remove")  # some of them come twice under the same id
STEPS = st.lists(
    st.tuples(
        st.sampled_from(PEOPLE),
        st.sampled_from(["add", "replace", "remove", "revert", "approve", "reject", "by hand"]),
        st.sampled_from(list(MemoryTarget)),
        st.sampled_from([ChangeAuthor.AGENT, ChangeAuthor.REVIEW, ChangeAuthor.PERSON]),
        st.integers(0, 5),
        st.booleans(),  # changes of the agent need an approval
    ),
    max_size=25,
)


@given(STEPS)
@settings(max_examples=25)
def test_notes_of_people_never_mix(steps: list[tuple[str, str, MemoryTarget, ChangeAuthor, int, bool]]) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(_go_through(steps, Path(folder)))


async def _go_through(steps: list[tuple[str, str, MemoryTarget, ChangeAuthor, int, bool]], folder: Path) -> None:
    times = iter(range(10**6))
    service = MemoryService(journal=LoopJournal(), directory=folder, clock=lambda: float(next(times)))
    for place, (person, verb, target, author, number, waits) in enumerate(steps):
        service.settings = MemorySettings(write_approval=waits)
        scope = parse_scope(person)
        origin = ChangeOrigin(
            author=author, operation=f"{verb}:{number if number < 2 and verb in EDITS else place}", by=person
        )
        try:
            await _do(service, scope, verb, target, f"{MARKS[person]} fact {number}", number, origin)
        except BadInputError:
            continue
        await _check(service)


async def _do(  # noqa: PLR0917 - a step as it was generated
    service: MemoryService,
    scope: MemoryScope,
    verb: str,
    target: MemoryTarget,
    text: str,
    number: int,
    origin: ChangeOrigin,
) -> None:
    match verb:
        case "by hand":
            if target in scope.targets:
                await asyncio.to_thread(_write, service.path(scope, target), f"{text} by hand\n")
        case "revert":
            await service.revert(scope, target, None, origin)
        case "approve":
            await service.approve(scope, number, origin)
        case "reject":
            await service.reject(scope, number, origin)
        case _:
            edit = MemoryEdit(action=ChangeAction(verb), content="" if verb == "remove" else text, old_text=text[:13])
            await service.change(scope, target, [edit], origin)


async def _check(service: MemoryService) -> None:
    for person, mark in MARKS.items():
        scope = parse_scope(person)
        seen = memory_block(await service.read(scope))
        seen += "".join(str(each.plain()) for each in await service.proposals(scope))
        for target in scope.targets:
            seen += await asyncio.to_thread(_text, service.path(scope, target))
            seen += "".join(str(change.payload) for change in await service.log(scope, target))
        assert not [other for other in MARKS.values() if other != mark and other in seen]


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""
