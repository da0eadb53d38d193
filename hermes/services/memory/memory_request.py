"""Request of a person about memory, and the answer to it: the same for commands, the admin socket and no daemon."""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from hermes.domain.change import Change, ChangeAction, ChangeAuthor
from hermes.domain.child.review_summary import count_entries
from hermes.domain.memory.edit import MemoryEdit, MemoryProblem, memory_refusal, read_edit
from hermes.domain.memory.note_file import entries_of
from hermes.domain.memory.reconcile import text_after
from hermes.domain.memory.scope import MemoryScope, MemoryTarget, parse_scope
from hermes.domain.values import dataclass
from hermes.ports.memory import ChangeOrigin, MemoryNotes, MemoryOutcome
from hermes.services.memory.memory_service import MemoryService


class MemoryVerb(StrEnum):
    SHOW = "show"
    ADD = "add"
    REPLACE = "replace"
    REMOVE = "remove"
    LOG = "log"
    DIFF = "diff"
    REVERT = "revert"
    PENDING = "pending"
    APPROVE = "approve"
    REJECT = "reject"
    PEOPLE = "people"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRequest:
    verb: MemoryVerb
    target: MemoryTarget | None = None  # None: both, or the one that was changed last
    number: int | None = None  # of a change, of a proposal, or of an entry to replace or remove
    content: str = ""
    old_text: str = ""
    by: str = ""  # platform and user of the person
    operation: str = ""  # id that makes the request idempotent; empty: a new one


def scope_named(service: MemoryService, person: str) -> MemoryScope:
    """Return the scope that an operator names. Raises BadInputError."""
    scope = service.scope(parse_scope(person))
    if scope is None:
        raise memory_refusal(MemoryProblem.INVALID, "memory is off in the configuration")
    return scope


async def perform(service: MemoryService, scope: MemoryScope, asked: MemoryRequest) -> dict[str, Any]:
    """Do what was asked. Raises BadInputError and StorageError."""
    match asked.verb:
        case MemoryVerb.SHOW:
            return await _show(service, scope)
        case MemoryVerb.PEOPLE:
            return {"people": [each.text for each in await service.scopes()]}
        case MemoryVerb.LOG:
            return {"person": scope.text, "changes": await _log(service, scope, asked)}
        case MemoryVerb.DIFF:
            return await _diff(service, scope, asked)
        case MemoryVerb.PENDING:
            return {"person": scope.text, "pending": [each.plain() for each in await service.proposals(scope)]}
        case _:
            return await _changed(service, scope, asked)


# ---------------------------------------------------------------- reading


async def _show(service: MemoryService, scope: MemoryScope) -> dict[str, Any]:
    notes = [{**_plain(each), "path": str(service.path(scope, each.target))} for each in await service.read(scope)]
    return {"person": scope.text, "notes": notes, "pending": len(await service.proposals(scope))}


async def _histories(
    service: MemoryService, scope: MemoryScope, asked: MemoryRequest
) -> list[tuple[MemoryTarget, list[Change]]]:
    targets = [each.target for each in await service.read(scope)] if asked.target is None else [asked.target]
    return [(target, await service.log(scope, target)) for target in targets]


async def _log(service: MemoryService, scope: MemoryScope, asked: MemoryRequest) -> list[dict[str, Any]]:
    """Return all changes, newest first."""
    rows = []
    for target, changes in await _histories(service, scope, asked):
        before = ""
        for change in changes:
            after = text_after(change)
            rows.append(_row(target, change, before, after))
            before = after or ""
    return sorted(rows, key=lambda row: (-row["at"], -row["number"]))


async def _last(
    service: MemoryService, scope: MemoryScope, asked: MemoryRequest
) -> tuple[MemoryTarget, list[Change]]:
    """Return the history of the target, or of the one that was changed last."""
    histories = [each for each in await _histories(service, scope, asked) if each[1]]
    if not histories:
        raise memory_refusal(MemoryProblem.NO_MATCH, "nothing was changed yet")
    return max(histories, key=lambda each: each[1][-1].at)


async def _diff(service: MemoryService, scope: MemoryScope, asked: MemoryRequest) -> dict[str, Any]:
    target, changes = await _last(service, scope, asked)
    number = changes[-1].number if asked.number is None else asked.number
    if not 0 < number <= changes[-1].number:
        raise memory_refusal(
            MemoryProblem.NO_MATCH,
            f"there is no change {number} of {target}; memory and user count their own changes",
        )
    before = (text_after(changes[number - 2]) or "") if number > 1 else ""
    after = text_after(changes[number - 1]) or ""
    name = target.file_name
    import difflib  # noqa: PLC0415 - only when someone reads a request

    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"before/{name}", f"after/{name}", lineterm=""
    )
    return {"person": scope.text, "target": target, "number": number, "diff": "\n".join(lines)}


# ---------------------------------------------------------------- changing


async def _changed(service: MemoryService, scope: MemoryScope, asked: MemoryRequest) -> dict[str, Any]:
    operation = asked.operation or f"{asked.verb}:{time.time_ns()}"
    origin = ChangeOrigin(author=ChangeAuthor.PERSON, operation=operation, by=asked.by)
    target = asked.target or MemoryTarget.MEMORY
    match asked.verb:
        case MemoryVerb.APPROVE:
            return _outcome(scope, asked.verb, await service.approve(scope, _number(asked), origin))
        case MemoryVerb.REJECT:
            rejected = await service.reject(scope, _number(asked), origin)
            return {"person": scope.text, "done": asked.verb, "proposal": rejected.plain()}
        case MemoryVerb.REVERT:
            target, _ = await _last(service, scope, asked)
            return _outcome(scope, asked.verb, await service.revert(scope, target, asked.number, origin))
    old_text = asked.old_text if asked.number is None else await _entry(service, scope, target, asked.number)
    given = {"action": asked.verb.value, "content": asked.content, "old_text": old_text}
    edits: Sequence[MemoryEdit] = (read_edit(given),)
    return _outcome(scope, asked.verb, await service.change(scope, target, edits, origin))


async def _entry(service: MemoryService, scope: MemoryScope, target: MemoryTarget, number: int) -> str:
    notes = await service.read(scope)
    entries = next((each.entries for each in notes if each.target is target), ())
    if not 0 < number <= len(entries):
        raise memory_refusal(MemoryProblem.NO_MATCH, f"{target} has no entry {number}, but {len(entries)} entries")
    return entries[number - 1]


def _number(asked: MemoryRequest) -> int:
    if asked.number is None:
        raise memory_refusal(MemoryProblem.INVALID, "give the number of the change")
    return asked.number


# ---------------------------------------------------------------- as data


def _outcome(scope: MemoryScope, verb: MemoryVerb, outcome: MemoryOutcome) -> dict[str, Any]:
    state = {} if outcome.state_of is None else {"state_of": outcome.state_of}
    return {"person": scope.text, "done": verb, "change": outcome.change, **state, **_plain(outcome.notes)}


def _plain(notes: MemoryNotes) -> dict[str, Any]:
    return {
        "target": notes.target,
        "entries": list(notes.entries),
        "size": notes.size,
        "limit": notes.limit,
        "last_change": notes.change,
        "withheld": [{"entry": each.number, "reason": each.reason} for each in notes.withheld],
    }


def _row(target: MemoryTarget, change: Change, before: str, after: str | None) -> dict[str, Any]:
    entries = count_entries(entries_of(before), entries_of(after or ""))
    return {
        "target": target,
        "number": change.number,
        "at": change.at,
        "action": change.action,
        "author": change.author,
        "by": change.by,
        "session": change.session,
        "turn": change.turn,
        "damaged": change.action is ChangeAction.DAMAGED,
        "added": entries.added,
        "changed": entries.changed,
        "removed": entries.removed,
    }
