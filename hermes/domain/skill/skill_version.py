"""Version of a skill: the manifest in its change log. Pure.

The subject of a skill is `skill/NAME`. The payload of each change is the version that it made: place, digest and the
hashes of the files. A version without files means that the skill is not there. Proposals wait for a person.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from hermes.domain.change import Change, ChangeAction, ChangeAuthor
from hermes.domain.values import dataclass

PREFIX: Final = "skill/"
_WAITING: Final = frozenset({ChangeAction.PROPOSE, ChangeAction.REJECT, ChangeAction.DAMAGED})


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillOrigin:
    """Where a change comes from."""

    author: ChangeAuthor
    operation: str  # unique: the id of a tool call or command
    by: str = ""
    session: str = ""
    turn: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillVersion:
    place: str  # below the skills directory
    files: Mapping[str, tuple[str, bool]]  # path: hash, and whether it is executable
    digest: str = ""  # of all files; empty: the skill is not there
    note: str = ""  # for people
    settles: int = 0  # number of the proposal that this approves or rejects
    wish: str = ""  # of a proposal: the action that waits

    @property
    def is_there(self) -> bool:
        return bool(self.digest)


def subject_of(name: str) -> str:
    return f"{PREFIX}{name}"


def encoded(version: SkillVersion) -> bytes:
    fields = {
        "place": version.place,
        "digest": version.digest,
        "files": {path: [digest, executable] for path, (digest, executable) in sorted(version.files.items())},
        "note": version.note,
        "settles": version.settles,
        "wish": version.wish,
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def version_in(change: Change) -> SkillVersion | None:
    """Return the version that a change made; None if it cannot be read."""
    try:
        fields = json.loads(change.payload)
        return SkillVersion(
            place=fields["place"],
            digest=fields["digest"],
            files={path: (digest, executable) for path, (digest, executable) in fields["files"].items()},
            note=fields["note"],
            settles=fields["settles"],
            wish=fields["wish"],
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def current(changes: Sequence[Change]) -> SkillVersion | None:
    """Return the version that should be on disk; None if there never was one."""
    made = (version_in(change) for change in reversed(changes) if change.action not in _WAITING)
    return next((version for version in made if version is not None), None)


def waiting(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Return the proposals that nobody has approved or rejected."""
    settled = {version.settles for each in changes if (version := version_in(each)) is not None}
    return tuple(each for each in changes if each.action is ChangeAction.PROPOSE and each.number not in settled)


def before(changes: Sequence[Change], digest: str) -> Change | None:
    """Return the change that made the version before the last one with this digest."""
    made = [each for each in changes if each.action not in _WAITING]
    for older, newer in zip(reversed(made[:-1]), reversed(made), strict=False):
        version = version_in(newer)
        if version is not None and version.digest == digest:
            found = version_in(older)
            return older if found is not None and found.is_there else None
    return None
