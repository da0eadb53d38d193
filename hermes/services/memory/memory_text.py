"""Answers about memory as text, for terminals and chats. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hermes.domain.change import ChangeAuthor
from hermes.services.memory.memory_request import MemoryVerb

Moment = Callable[[float], str]  # a time as text
MAX_ROWS = 30


def text_of(verb: MemoryVerb, answer: Mapping[str, Any], moment: Moment, *, most: int = MAX_ROWS) -> str:
    """Return the text of an answer, with at most `most` rows."""
    match verb:
        case MemoryVerb.SHOW:
            lines = _shown(answer)
        case MemoryVerb.PEOPLE:
            lines = iter(answer["people"] or ["Nobody has notes yet."])
        case MemoryVerb.LOG:
            lines = _logged(answer, moment, most)
        case MemoryVerb.DIFF:
            lines = iter([answer["diff"] or "It changed nothing."])
        case MemoryVerb.PENDING:
            lines = _pending(answer)
        case MemoryVerb.REJECT:
            lines = iter([f"Change {answer['proposal']['number']} was rejected."])
        case _:
            lines = _done(answer)
    return "\n".join(lines)


def _shown(answer: Mapping[str, Any]) -> Iterator[str]:
    for notes in answer["notes"]:
        yield from _notes(notes)
    if not answer["notes"]:
        yield "Memory is off."
    if waiting := answer["pending"]:
        verb = "change waits" if waiting == 1 else "changes wait"
        yield f"{waiting} {verb} for your approval: `pending` lists them."


def _notes(notes: Mapping[str, Any]) -> Iterator[str]:
    yield f"{notes['target']}: {notes['size']:,} of {notes['limit']:,} characters"
    for number, entry in enumerate(notes["entries"], 1):
        yield f"{number}. {entry}"
    if not notes["entries"]:
        yield "no entries"
    for each in notes["withheld"]:
        which = f"Entry {each['entry']} is" if each["entry"] else "The entries are"
        yield f"{which} left out of prompts: {each['reason']}."


def _logged(answer: Mapping[str, Any], moment: Moment, most: int) -> Iterator[str]:
    rows = answer["changes"]
    for row in rows[:most]:
        who = _who(row["author"], row["by"])
        where = f" in session {row['session']}" if row["session"] else ""
        counts = ", ".join(f"{row[verb]} {verb}" for verb in ("added", "changed", "removed") if row[verb])
        done = "damaged" if row["damaged"] else counts or "nothing changed"
        yield f"{row['target']} {row['number']}  {moment(row['at'])}  {row['action']} by {who}{where}: {done}"
    if not rows:
        yield "Nothing was changed yet."
    if len(rows) > most:
        yield f"{len(rows) - most} earlier changes"


def _who(author: ChangeAuthor, by: str) -> str:
    if author == ChangeAuthor.PERSON:
        return by or "a person"
    return f"{author} for {by}" if by else str(author)


def _pending(answer: Mapping[str, Any]) -> Iterator[str]:
    for proposal in answer["pending"]:
        where = f" in session {proposal['session']}" if proposal["session"] else ""
        yield f"{proposal['number']}: proposed by {proposal['author']}{where}"
        for each in proposal["operations"]:
            texts = " → ".join(filter(None, (each.get("old_text"), each.get("content"))))
            yield f"   {each['action']} {proposal['target']}: {texts}"
    yield "`approve N` or `reject N` decides." if answer["pending"] else "No change waits for approval."


def _done(answer: Mapping[str, Any]) -> Iterator[str]:
    if (state := answer.get("state_of")) is None:
        yield f"Stored as change {answer['change']}."
    else:
        then = f"after change {state}" if state else "before the first change"
        yield (
            f"Stored as change {answer['change']}: the notes are those {then}. "
            f"`revert {answer['change'] - 1}` takes this back."
        )
    yield from _notes(answer)
