"""Checkpoints of a conversation: its working directory before the first change of each turn, and `/rollback`.

They are in the conversation's folder, outside of the working directory, and are deleted with the conversation.
"""

from __future__ import annotations

import difflib
import json
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from loguru import logger

from hermes.domain.access.role import Role
from hermes.domain.checkpoint import Checkpoint, Rollback
from hermes.domain.errors import BadInputError
from hermes.domain.values import dataclass
from hermes.ports.given import Clock
from hermes.system.durable_file import replace_file
from hermes.tools.checkpoint.git_store import LINK, GitStore
from hermes.tools.checkpoint.snapshot import Snapshot, SnapshotLimits, files_of, put_back
from hermes.tools.tool import ToolContext

_FOLDER: Final = "checkpoints"
_LIST: Final = "checkpoints.json"
_DIFF_BYTES: Final = 200_000  # of a file whose lines are compared
_DIFF_LINES: Final = 400
_KNOWN: Final = 20  # directories whose files are remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSettings:
    max_snapshots: int = 50
    max_bytes: int = 500 << 20  # of the store of one conversation
    limits: SnapshotLimits = SnapshotLimits()


class Checkpoints:
    """Blocking: call the methods in a thread."""

    def __init__(self, settings: CheckpointSettings, *, work_of: Callable[[Path, Role], str], clock: Clock) -> None:
        self._settings = settings
        self._work_of = work_of
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, dict[bytes, tuple[int, int, int, str]]] = {}

    def before(self, tool: str, context: ToolContext) -> None:
        """Take a checkpoint before the first change of a turn. A failure is logged: the call runs anyway."""
        try:
            with self._lock:
                self._before(tool, context)
        except (OSError, ValueError, BadInputError) as error:
            logger.warning("session {}: no checkpoint before {}: {}", context.session, tool, error)

    def _before(self, tool: str, context: ToolContext) -> None:
        folder = context.folder
        found = listed(folder)
        work = os.path.realpath(self._work_of(folder, context.role))
        if found and (found[-1].turn, found[-1].directory) == (context.turn, work):
            return
        self._take(folder, work, found, turn=context.turn, reason=f"before {tool}")

    def _take(
        self,
        folder: Path,
        work: str,
        found: list[Checkpoint],
        *,
        turn: str,
        reason: str,
        also: tuple[str, ...] = (),
    ) -> Checkpoint:
        """Take a checkpoint. `also`: commits that are still needed."""
        store = GitStore(folder / _FOLDER)
        store.make()
        if len(self._known) > _KNOWN:
            self._known.clear()
        tree = Snapshot(store, self._settings.limits, self._known.setdefault(f"{folder}\0{work}", {})).take(work)
        parent = found[-1].commit if found else ""
        commit = store.put_commit(tree, parent, f"{reason}\n\nturn {turn}", self._clock())
        made = Checkpoint(commit=commit, at=self._clock(), turn=turn, reason=reason, directory=work)
        kept = [*found, made]
        if len(kept) > self._settings.max_snapshots or store.size_bytes() > self._settings.max_bytes:
            kept = kept[-max(1, min(self._settings.max_snapshots, len(kept) * 3 // 4)) :]
            store.keep_only({*also, *(each.commit for each in kept)})
            self._known.clear()
        _save(folder, kept)
        return made

    def compare(self, folder: Path, number: int) -> Rollback:
        """Return what a return to the n-th last checkpoint would change.

        Raises OSError, ValueError and BadInputError.
        """
        with self._lock:
            return self._rollback(folder, number, apply=False)

    def restore(self, folder: Path, number: int) -> Rollback:
        """Return to the n-th last checkpoint, after a checkpoint of the present state."""
        with self._lock:
            return self._rollback(folder, number, apply=True)

    def _rollback(self, folder: Path, number: int, *, apply: bool) -> Rollback:
        found = listed(folder)
        if not 0 < number <= len(found):
            raise BadInputError(f"there is no checkpoint {number}; there are {len(found)}", code="no_checkpoint")
        wanted = found[-number]
        store = GitStore(folder / _FOLDER)
        known = self._known.setdefault(f"{folder}\0{wanted.directory}", {})
        now = files_of(store, Snapshot(store, self._settings.limits, known).take(wanted.directory))
        then = files_of(store, store.commit_tree(wanted.commit))
        changed = sorted(path for path in {*now, *then} if now.get(path) != then.get(path))
        diff = _diff(store, now, then, changed)
        if apply and changed:
            self._take(folder, wanted.directory, found, turn="", reason="before /rollback", also=(wanted.commit,))
            put_back(store, wanted.directory, now, then)
        names = tuple(os.fsdecode(path).encode(errors="replace").decode() for path in changed)
        return Rollback(checkpoint=wanted, changed=names, diff=diff)


def listed(folder: Path) -> list[Checkpoint]:
    """Return the checkpoints of a conversation, oldest first."""
    try:
        found: Any = json.loads((folder / _FOLDER / _LIST).read_bytes())
        return [Checkpoint(**each) for each in found]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError) as error:
        raise BadInputError(f"the list of checkpoints in {folder} is damaged", code="checkpoint_damaged") from error


def _save(folder: Path, kept: Sequence[Checkpoint]) -> None:
    fields = ("commit", "at", "turn", "reason", "directory")
    rows = [{name: getattr(each, name) for name in fields} for each in kept]
    replace_file(folder / _FOLDER / _LIST, json.dumps(rows))


def _diff(store: GitStore, now: Any, then: Any, changed: Sequence[bytes]) -> str:
    """Return a unified diff from the present state to the checkpoint."""
    lines: list[str] = []
    for path in changed:
        name = os.fsdecode(path).encode(errors="replace").decode()
        before, after = _text(store, now.get(path)), _text(store, then.get(path))
        if before is None or after is None:
            lines.append(f"{name}: binary or large file")
        else:
            lines += difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", lineterm="")
        if len(lines) > _DIFF_LINES:
            return "\n".join([*lines[:_DIFF_LINES], f"… {len(changed)} changed files"])
    return "\n".join(lines)


def _text(store: GitStore, entry: tuple[str, str] | None) -> list[str] | None:
    """Return the lines of a file; none if it does not exist. None: it is not a short text."""
    if entry is None:
        return []
    data = store.get(entry[1])
    if entry[0] == LINK:
        return [f"link to {data.decode(errors='replace')}"]
    if len(data) > _DIFF_BYTES or b"\0" in data:
        return None
    return data.decode(errors="replace").splitlines()
