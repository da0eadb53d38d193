"""File search program for machines without ripgrep. Its output has the format of `rg --json`.

It runs in its own process, because a hostile pattern can keep Python's regex engine busy forever and only a process
can be killed. It needs only the standard library and reads its request as JSON from standard input.
"""

from __future__ import annotations

import base64
import json
import os
import re
import stat
import sys
from collections import deque
from collections.abc import Callable, Iterator
from io import BufferedReader
from typing import Any

_LINE_BYTES = 2**20  # only the start of a longer line is searched
_SHOWN_BYTES = 16_384
_SAMPLE_BYTES = 65_536

Rule = tuple[re.Pattern[str], bool, bool, str]  # pattern, negated, directories only, base directory
Rules = tuple[Rule, ...]


def main() -> int:
    request = json.load(sys.stdin)
    wanted = _name_test(request["glob"]) if request["glob"] else None
    if request["pattern"] is None:
        for path in _files(request["root"], wanted):
            _report("file", path)
        return 0
    try:
        pattern = re.compile(request["pattern"])
    except (re.error, RecursionError, OverflowError) as error:
        sys.stdout.write(json.dumps({"type": "refused", "data": {"text": str(error)}}) + "\n")
        return 2
    for path in _files(request["root"], wanted):
        _search(path, pattern, request["context"])
    return 0


def _report(kind: str, path: str, **more: Any) -> None:
    data = {"path": _text(os.fsencode(path)), **more}
    sys.stdout.write(json.dumps({"type": kind, "data": data}) + "\n")


def _text(data: bytes) -> dict[str, str]:
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(data).decode()}


def _files(root: str, wanted: Callable[[str], bool] | None) -> Iterator[str]:
    """Yield all regular files, sorted by path, without ignored ones. Links are not followed."""
    if not os.path.isdir(root):  # noqa: PTH112 - paths are plain text here: fast, and any bytes
        yield root
        return
    waiting: list[tuple[str, bool, Rules]] = [(root, True, _outer_rules(root))]
    while waiting:
        path, is_directory, rules = waiting.pop()
        if is_directory:
            waiting += reversed(_entries(path, rules))
        elif wanted is None or wanted(os.path.relpath(path, root)):
            yield path


def _entries(directory: str, rules: Rules) -> list[tuple[str, bool, Rules]]:
    try:
        with os.scandir(directory) as found:
            entries = sorted(found, key=lambda entry: os.fsencode(entry.name))
    except OSError:  # unreadable, deleted, or its path is too long
        return []
    names = {entry.name for entry in entries}
    if ".git" in names:
        rules = ()  # a nested repository
    if ".gitignore" in names:
        rules = (*rules, *_rules_of(directory))
    kept = []
    for entry in entries:
        is_directory = entry.is_dir(follow_symlinks=False)
        if entry.name == ".git" or not (is_directory or entry.is_file(follow_symlinks=False)):
            continue
        if not _ignored(entry.path, is_directory=is_directory, rules=rules):
            kept.append((entry.path, is_directory, rules))
    return kept


def _outer_rules(root: str) -> Rules:
    """Return the ignore rules of the parent directories, up to the repository's root."""
    rules: Rules = ()
    directory = root
    while not os.path.lexists(os.path.join(directory, ".git")) and directory != os.path.dirname(directory):  # noqa: PTH118, PTH120
        directory = os.path.dirname(directory)  # noqa: PTH120
        rules = (*_rules_of(directory), *rules)
    return rules


def _rules_of(directory: str) -> Rules:
    try:
        with _open(os.path.join(directory, ".gitignore")) as file:  # noqa: PTH118
            lines = file.read(_LINE_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return ()
    return tuple(rule for line in lines if (rule := _rule(line, directory)))


def _rule(line: str, base: str) -> Rule | None:
    line = line.rstrip() if not line.endswith("\\ ") else line
    if not line or line.startswith("#"):
        return None
    negated = line.startswith("!")
    body = line[negated:].removeprefix("\\")
    directories_only = body.endswith("/")
    body = body.rstrip("/")
    rooted = "/" in body
    body = body.lstrip("/")
    try:
        return re.compile(_glob(body if rooted else f"**/{body}")), negated, directories_only, base
    except re.error:
        return None


def _ignored(path: str, *, is_directory: bool, rules: Rules) -> bool:
    for pattern, negated, directories_only, base in reversed(rules):
        if directories_only and not is_directory:
            continue
        if pattern.fullmatch(path[len(base.rstrip("/")) + 1 :]):
            return not negated
    return False


def _name_test(glob: str) -> Callable[[str], bool]:
    """Return a test for paths. A glob with a slash matches the path below the root, one without matches the name."""
    body = glob.removeprefix("./").lstrip("/")
    patterns = [re.compile(_glob(each if "/" in each else f"**/{each}")) for each in _braces(body)]
    return lambda path: any(pattern.fullmatch(path) for pattern in patterns)


def _braces(glob: str) -> list[str]:
    """Expand braces: `*.{ts,tsx}` becomes two globs."""
    found = re.search(r"\{([^{}]*)\}", glob)
    if not found or len(glob) > 1_000:
        return [glob]
    parts = found[1].split(",")
    return [each for part in parts for each in _braces(glob[: found.start()] + part + glob[found.end() :])][:1_000]


def _glob(glob: str) -> str:
    """Return a regular expression for a glob. `*` matches within a name, `**` across directories."""
    out = []
    for part in re.findall(r"\*\*/|/\*\*$|\*+|\?|\[[!^]?\]?[^\]]*\]|\\.|.", glob, re.DOTALL):
        if part == "**/":
            out.append("(?:.*/)?")
        elif part == "/**":
            out.append("/.*")
        elif part[0] == "*":
            out.append("[^/]*")
        elif part == "?":
            out.append("[^/]")
        elif part[0] == "[" and len(part) > 2:
            out.append(_character_set(part[1:-1]))
        else:
            out.append(re.escape(part[1:] if part[0] == "\\" and len(part) == 2 else part))
    return f"(?s:{''.join(out)})"


def _character_set(body: str) -> str:
    escaped = body.replace("\\", r"\\").replace("[", r"\[")
    return f"(?!/)[^{escaped[1:]}]" if escaped[0] in "!^" else f"[{escaped}]"


def _open(path: str) -> BufferedReader:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError("not a regular file")
    return open(descriptor, "rb")  # noqa: PTH123 - a descriptor has no path


def _search(path: str, pattern: re.Pattern[str], context: int) -> None:
    try:
        with _open(path) as file:
            if b"\0" not in file.peek(_SAMPLE_BYTES)[:_SAMPLE_BYTES]:
                _search_lines(path, file, pattern, context)
    except OSError:  # unreadable or deleted
        return


def _search_lines(path: str, file: BufferedReader, pattern: re.Pattern[str], context: int) -> None:
    earlier: deque[tuple[int, bytes]] = deque(maxlen=context)
    count = after = 0
    binary = False
    for number, line in enumerate(_lines(file), 1):
        binary = binary or b"\0" in line
        if binary:
            break
        if pattern.search(line.decode("utf-8", "replace")):
            for each in earlier:
                _report_line("context", path, *each)
            earlier.clear()
            _report_line("match", path, number, line)
            count, after = count + 1, context
        elif after:
            _report_line("context", path, number, line)
            after -= 1
        else:
            earlier.append((number, line))
    if count:
        _report("end", path, binary_offset=0 if binary else None, stats={"matched_lines": count})
        sys.stdout.flush()


def _report_line(kind: str, path: str, number: int, line: bytes) -> None:
    _report(kind, path, lines=_text(line[:_SHOWN_BYTES]), line_number=number)


def _lines(file: BufferedReader) -> Iterator[bytes]:
    while piece := file.readline(_LINE_BYTES):
        yield piece.removesuffix(b"\n").removesuffix(b"\r")
        while not piece.endswith(b"\n") and (piece := file.readline(_LINE_BYTES)):
            pass


if __name__ == "__main__":
    sys.exit(main())
