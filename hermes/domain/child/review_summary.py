"""Summary of what a review changed, in one line for the person. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hermes.domain.change import Change, ChangeAction
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryCount:
    """Entries of a memory file that changes have added, changed and removed."""

    added: int = 0
    changed: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    entries: Sequence[EntryCount] = ()
    waiting: int = 0  # changes of memory that need the person's approval
    skills: Sequence[tuple[str, Change]] = ()  # changes by name, oldest first


_VERBS = {
    ChangeAction.CREATE: "created",
    ChangeAction.DELETE: "deleted",
    ChangeAction.PROPOSE: "waits for your approval (/skills pending)",
}


def count_entries(before: Sequence[str], after: Sequence[str]) -> EntryCount:
    """Return what differs between two lists of entries. A new entry in place of an old one is a change."""
    old, new = Counter(before), Counter(after)
    added, removed = (new - old).total(), (old - new).total()
    changed = min(added, removed)
    return EntryCount(added=added - changed, changed=changed, removed=removed - changed)


def summary_of(learned: Learned) -> str:
    """Return one line; empty if nothing was changed."""
    return " ".join(filter(None, (_memory(learned), *_skills(learned.skills))))


def _memory(learned: Learned) -> str:
    totals = {verb: sum(getattr(each, verb) for each in learned.entries) for verb in ("added", "changed", "removed")}
    parts = [f"{count} {'entry' if count == 1 else 'entries'} {verb}" for verb, count in totals.items() if count]
    if learned.waiting:
        proposed = "1 change waits" if learned.waiting == 1 else f"{learned.waiting} changes wait"
        parts.append(f"{proposed} for your approval (/memory pending)")
    return f"Memory updated: {', '.join(parts)}." if parts else ""


def _skills(changes: Sequence[tuple[str, Change]]) -> list[str]:
    told: dict[str, str] = {}
    for name, change in changes:
        verb = _VERBS.get(change.action, "changed")
        if told.get(name) != _VERBS[ChangeAction.CREATE]:  # the first version, however often it was patched since
            told[name] = verb
    return [f"Skill {name} {verb}." for name, verb in told.items()]
