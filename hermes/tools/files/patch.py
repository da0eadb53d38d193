"""Changes to files: planned in memory, then applied all or none. Blocking: call it in a thread.

Files keep their line endings, bytes that are not UTF-8, and a missing newline at the end. If a file changed between
reading and writing, nothing is written.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path
from typing import assert_never

from hermes.domain.values import dataclass
from hermes.tools.files import fuzzy
from hermes.tools.files.file_reader import missing, open_regular
from hermes.tools.files.replacement import Draft, replace_file
from hermes.tools.files.v4a import Add, Change, Delete, Hunk, Update
from hermes.tools.tool import ToolError

_MAX_SIZE = 20 * 2**20
_MAX_DIFF_LINES = 5_000
_NORMAL_FORMS: tuple[Callable[[list[str]], list[str]], ...] = (
    lambda lines: lines,
    lambda lines: [line.rstrip() for line in lines],
    fuzzy.dedented,
    lambda lines: [line.strip() for line in lines],
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """A file before the change; `data` is None if it does not exist."""

    data: bytes | None
    mode: int | None = None
    stamp: tuple[int, int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    path: str
    before: Original
    after: bytes | None  # None: delete it
    mode: int | None = None  # of a new file


def read_original(path: str) -> Original:
    try:
        file = open_regular(path)
    except FileNotFoundError:
        return Original(data=None)
    with file:
        status = os.fstat(file.fileno())
        data = file.read(_MAX_SIZE + 1)
    if len(data) > _MAX_SIZE:
        raise ToolError(f"{path} has more than {_MAX_SIZE:,} bytes. Change it with a program like sed.")
    return Original(data=data, mode=stat.S_IMODE(status.st_mode), stamp=_stamp(status))


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_mtime_ns, status.st_size


def plan_replace(path: str, old: str, new: str, *, every: bool) -> tuple[FileChange, str]:
    """Return the change, and a note about how the text was found."""
    before = read_original(path)
    if before.data is None:
        raise ToolError(missing(path))
    text, line_end = _decoded(before.data, path)
    done = fuzzy.replace(text, _plain(old, line_end), _plain(new, line_end), every=every)
    places = "1 place" if done.count == 1 else f"{done.count} places"
    note = places if done.strategy == "exact" else f"{places} ({done.strategy})"
    return FileChange(path=path, before=before, after=_encoded(done.text, line_end)), note


def plan_patch(changes: tuple[Change, ...], resolve: Callable[[str], str]) -> list[FileChange]:
    plan = _Plan()
    for change in changes:
        plan.add(change, resolve)
    return plan.file_changes()


class _Plan:
    """Planned content of the files; a later change sees the result of an earlier one."""

    def __init__(self) -> None:
        self._before: dict[str, Original] = {}
        self._after: dict[str, bytes | None] = {}
        self._modes: dict[str, int | None] = {}

    def add(self, change: Change, resolve: Callable[[str], str]) -> None:
        path = resolve(change.path)
        match change:
            case Add(lines=lines):
                self._vacant(path)
                self._after[path] = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
            case Delete():
                self._present(path)
                self._after[path] = None
            case Update(hunks=hunks, move_to=move_to):
                data = self._present(path)
                if hunks:
                    text, line_end = _decoded(data, path)
                    data = _encoded(_with_hunks(text, hunks, path), line_end)
                self._after[path] = data
                if move_to is not None and (target := resolve(move_to)) != path:
                    self._vacant(target)
                    self._after[target], self._after[path] = data, None
                    self._modes[target] = self._before[path].mode
            case _:
                assert_never(change)

    def file_changes(self) -> list[FileChange]:
        return [
            FileChange(path=path, before=self._before[path], after=after, mode=self._modes.get(path))
            for path, after in self._after.items()
            if after != self._before[path].data
        ]

    def _data(self, path: str) -> bytes | None:
        if path not in self._before:
            self._before[path] = read_original(path)
            self._after[path] = self._before[path].data
        return self._after[path]

    def _present(self, path: str) -> bytes:
        data = self._data(path)
        if data is None:
            raise ToolError(f"{missing(path)} Nothing was changed.")
        return data

    def _vacant(self, path: str) -> None:
        if self._data(path) is not None:
            raise ToolError(f"{path} already exists. Nothing was changed. Use '*** Update File: ' or another name.")


def _with_hunks(text: str, hunks: tuple[Hunk, ...], path: str) -> str:
    lines = text.split("\n")
    ended = lines[-1] == ""
    if ended:
        lines.pop()
    cursor = 0
    for number, hunk in enumerate(hunks, 1):
        at, old_count, put = _placed(lines, cursor, hunk, f"part {number} for {path}")
        lines[at : at + old_count] = put
        cursor = at + len(put)
    return "\n".join(lines) + ("\n" if ended and lines else "")


def _placed(lines: list[str], cursor: int, hunk: Hunk, where: str) -> tuple[int, int, list[str]]:
    """Return the hunk's position, the number of lines it replaces, and the new lines."""
    for anchor in hunk.anchors:
        cursor = _anchored(lines, cursor, anchor, where)
    old = [line[1:] for line in hunk.lines if line[0] != "+"]
    if not old:
        at = cursor + 1 if hunk.anchors and not hunk.at_end else len(lines)
        return at, 0, [line[1:] for line in hunk.lines]
    at = cursor + _match(lines[cursor:], old, hunk, where, cursor)
    return at, len(old), _filled(hunk, lines[at : at + len(old)], old)


def _anchored(lines: list[str], cursor: int, anchor: str, where: str) -> int:
    wanted = anchor.strip()
    tests: tuple[Callable[[str], bool], ...] = (
        lambda line: line == anchor,
        lambda line: line.strip() == wanted,
        lambda line: wanted in line,
    )
    for test in tests:
        for at in range(cursor, len(lines)):
            if test(lines[at]):
                return at
    raise ToolError(f"{where}: the anchor line {wanted!r} was not found. Nothing was changed.")


def _match(lines: list[str], old: list[str], hunk: Hunk, where: str, cursor: int) -> int:
    for normal in _NORMAL_FORMS:
        found = fuzzy.line_matches(lines, old, normal)
        if hunk.at_end:
            found = [at for at in found if at + len(old) == len(lines)]
        if len(found) > 1 and not hunk.anchors:
            numbers = ", ".join(str(cursor + at + 1) for at in found[:10])
            raise ToolError(
                f"{where}: its lines occur {len(found)} times, at lines {numbers}. Nothing was changed. "
                "Give more lines around the change, or an '@@ ' line before it."
            )
        if found:
            return found[0]
    raise ToolError(
        f"{where}: its lines were not found. Nothing was changed. {fuzzy.nearest(lines, chr(10).join(old))}"
    )


def _filled(hunk: Hunk, window: list[str], old: list[str]) -> list[str]:
    """Return the new lines: unchanged lines as in the file, added lines with its indentation."""
    before, after = fuzzy.indent_of(old), fuzzy.indent_of(window)
    put, at = [], 0
    for line in hunk.lines:
        if line[0] == "+":
            put += fuzzy.shifted([line[1:]], before, after)
            continue
        if line[0] == " ":
            put.append(window[at])
        at += 1
    return put


def _decoded(data: bytes, path: str) -> tuple[str, str]:
    """Return the text with \\n line endings, and its original line ending. Keeps bytes that are not UTF-8."""
    if b"\0" in data:
        raise ToolError(f"{path} is binary and cannot be changed as text. Nothing was changed.")
    text = data.decode("utf-8", "surrogateescape")
    if "\r\n" in text and text.count("\r\n") == text.count("\n"):
        return text.replace("\r\n", "\n"), "\r\n"
    return text, "\n"


def _encoded(text: str, line_end: str) -> bytes:
    return text.replace("\n", line_end).encode("utf-8", "surrogateescape")


def _plain(text: str, line_end: str) -> str:
    return text.replace("\r\n", "\n") if line_end == "\r\n" else text


def apply(changes: list[FileChange]) -> None:
    """Apply all changes. If one fails, undo those before it."""
    for change in changes:
        _check_unchanged(change)
    drafts: dict[str, Draft] = {}
    made: list[Path] = []
    done: list[FileChange] = []
    try:
        for change in changes:
            if change.after is not None:
                path = Path(change.path)
                _make_parents(path, made)
                drafts[change.path] = Draft(path, change.after, mode=change.mode)
        for change in changes:
            _apply_change(change, drafts)
            done.append(change)
    except OSError:
        for draft in drafts.values():
            draft.discard()
        for change in reversed(done):
            _undo(change)
        for directory in reversed(made):
            directory.rmdir()
        raise


def _check_unchanged(change: FileChange) -> None:
    try:
        stamp = _stamp(Path(change.path).stat())
    except (FileNotFoundError, NotADirectoryError):
        stamp = None
    if stamp != change.before.stamp:
        raise ToolError(
            f"{change.path} was changed by another program in the meantime. Nothing was changed. Read it again."
        )


def _make_parents(path: Path, made: list[Path]) -> None:
    absent = []
    for parent in path.parents:
        if parent.exists():
            break
        absent.append(parent)
    for parent in reversed(absent):
        parent.mkdir()
        made.append(parent)


def _apply_change(change: FileChange, drafts: dict[str, Draft]) -> None:
    if change.after is None:
        Path(change.path).unlink()
    else:
        drafts[change.path].publish()


def _undo(change: FileChange) -> None:
    if change.before.data is None:
        Path(change.path).unlink()
    else:
        replace_file(Path(change.path), change.before.data, mode=change.before.mode)


def diff(change: FileChange, name: str) -> str:
    before, after = ([] if data is None else _diff_lines(data) for data in (change.before.data, change.after))
    if len(before) + len(after) > 2 * _MAX_DIFF_LINES:
        return f"--- {name}\n[the file is too long for a diff: {len(before):,} lines before, {len(after):,} after]"
    old, new = ("/dev/null" if gone else name for gone in (change.before.data is None, change.after is None))
    return "\n".join(line.rstrip("\n") for line in unified_diff(before, after, old, new, lineterm=""))


def _diff_lines(data: bytes) -> list[str]:
    return data.decode("utf-8", "replace").removesuffix("\n").split("\n") if data else []
