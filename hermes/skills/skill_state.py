"""State of skills beside their files: `skills/.lock.json`, replaced atomically.

It says where an installed skill comes from, with the hashes of its files, and which skills are disabled, pinned, or
accepted although the scan found something. All functions block.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from hermes.domain.skill.skill import SkillError
from hermes.domain.values import dataclass, replace
from hermes.system.durable_file import replace_file

LOCK_FILE: Final = ".lock.json"
_FORMAT: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillState:
    installed: Mapping[str, Mapping[str, Any]]  # source, tier, verdict, digest, files, at
    disabled: frozenset[str] = frozenset()
    pinned: frozenset[str] = frozenset()  # the curator leaves them alone
    accepted: Mapping[str, str]  # digests of SKILL.md that a person accepted in spite of a finding
    installing: Mapping[str, Mapping[str, Any]]  # entries of installations under way, by name


EMPTY_STATE: Final = SkillState(installed={}, accepted={}, installing={})


class SkillStateFile:
    def __init__(self, root: Path) -> None:
        self._file = root / LOCK_FILE
        self._read: tuple[tuple[int, int, int], SkillState] | None = None

    def load(self) -> SkillState:
        """Return the state; empty if there is no file. Raises SkillError if it cannot be read."""
        try:
            status = self._file.stat()
        except FileNotFoundError:
            return EMPTY_STATE
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        if self._read is None or self._read[0] != stamp:
            self._read = (stamp, self._parsed())
        return self._read[1]

    def save(self, state: SkillState) -> None:
        fields = {
            "format": _FORMAT,
            "skills": {name: dict(state.installed[name]) for name in sorted(state.installed)},
            "disabled": sorted(state.disabled),
            "pinned": sorted(state.pinned),
            "accepted": dict(sorted(state.accepted.items())),
        }
        if state.installing:
            fields["installing"] = {name: dict(state.installing[name]) for name in sorted(state.installing)}
        self._file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        replace_file(self._file, json.dumps(fields, indent=1, ensure_ascii=False) + "\n")

    def forget(self, name: str) -> None:
        state = self.load()
        if name in state.installed or name in state.accepted:
            kept = {each: state.installed[each] for each in state.installed if each != name}
            accepted = {each: state.accepted[each] for each in state.accepted if each != name}
            self.save(replace(state, installed=kept, accepted=accepted))

    def begin(self, name: str, entry: Mapping[str, Any]) -> None:
        """Note an installation before it is done."""
        state = self.load()
        self.save(replace(state, installing={**state.installing, name: entry}))

    def settle(self, name: str, digest: str) -> None:
        """Note that an installation is done if the skill has its digest now, else that it is not."""
        state = self.load()
        if (entry := state.installing.get(name)) is None:
            return
        state = replace(state, installing={each: state.installing[each] for each in state.installing if each != name})
        if entry.get("digest") == digest:
            entry = dict(entry)
            accepted = {each: state.accepted[each] for each in state.accepted if each != name}
            if text := entry.pop("accepted", ""):
                accepted[name] = text
            state = replace(state, installed={**state.installed, name: entry}, accepted=accepted)
        self.save(state)

    def _parsed(self) -> SkillState:
        try:
            fields = json.loads(self._file.read_bytes())
            if fields["format"] != _FORMAT:
                raise SkillError(f"{self._file} was written by a newer Hermes")
            return SkillState(
                installed={str(name): dict(entry) for name, entry in fields["skills"].items()},
                disabled=frozenset(map(str, fields["disabled"])),
                pinned=frozenset(map(str, fields["pinned"])),
                accepted={str(name): str(digest) for name, digest in fields["accepted"].items()},
                installing={str(name): dict(entry) for name, entry in fields.get("installing", {}).items()},
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            raise SkillError(
                f"{self._file} is damaged: repair it, or remove it to install the skills again"
            ) from None
