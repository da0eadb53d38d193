"""The file tools: read_file, write_file, patch, search_files.

Paths are relative to the conversation's current directory and lose their symbolic links before a gate judges them;
the judgement is made again when the call runs, since a link may have changed while somebody was asked for leave. A
conversation may always read its own spilled outputs and the files that people sent to it. All disk work is done in
threads.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec, TypeAlias, TypeVar

from hermes.tools import patching, v4a
from hermes.tools.reading import check_regular, missing, read_page
from hermes.tools.replacement import replace_file
from hermes.tools.search import Found, Query, search
from hermes.tools.tool import Tool, ToolContext, ToolError, tool
from hermes.tools.workplace import Workplace
from hermes.types import Effect, Gate, Verdict

GatePath: TypeAlias = Callable[[str, bool], Gate]  # of an absolute path without links, and whether it is written
P = ParamSpec("P")
T = TypeVar("T")

_CONTEXT_MOST = 20
_RESULTS_MOST = 1_000
_SEVERITY = (Verdict.ALLOW, Verdict.ASK, Verdict.BLOCK)


def file_tools(workplace: Workplace, gate_path: GatePath) -> tuple[Tool, ...]:
    paths = _Paths(workplace, gate_path)
    return _read_file(paths), _write_file(paths), _patch(paths), _search_files(paths)


class _Paths:
    """What a path means in a conversation, and what may be done there."""

    def __init__(self, workplace: Workplace, gate_path: GatePath) -> None:
        self._workplace = workplace
        self._gate_path = gate_path

    def gate(self, context: ToolContext, path: str, *, writing: bool) -> Gate:
        return self._gate(context, self._workplace.resolve(context.folder, path), writing=writing)

    def usable(self, context: ToolContext, path: str, *, writing: bool) -> str:
        """The real path, unless it is blocked by now."""
        real = self._workplace.resolve(context.folder, path)
        gate = self._gate(context, real, writing=writing)
        if gate.verdict is Verdict.BLOCK:
            raise ToolError(f"{path} may not be {'written' if writing else 'read'}: {gate.reason}")
        return real

    def readable_below(self, context: ToolContext, root: str) -> Callable[[str], bool]:
        """Of the files below a real path: which may be read without asking. What comes back looks at no disk."""
        own = _is_own_output(context, root)
        return lambda real: own or self._gate_path(real, False).verdict is Verdict.ALLOW

    def shown(self, context: ToolContext, real: str) -> str:
        return self._workplace.shown(context.folder, real)

    def _gate(self, context: ToolContext, real: str, *, writing: bool) -> Gate:
        own = not writing and _is_own_output(context, real)
        return Gate() if own else self._gate_path(real, writing)


def _is_own_output(context: ToolContext, real: str) -> bool:
    """Whether it is one of the conversation's long outputs, or a file that a person sent there."""
    own = (context.folder / "outputs", *(() if context.media is None else (context.media,)))
    return any(Path(real).is_relative_to(os.path.realpath(each)) for each in own)


def _joint(gates: Iterable[Gate]) -> Gate:
    """One gate for several paths: the strictest verdict, with every reason for it."""
    given = list(gates)
    worst = max((gate.verdict for gate in given), key=_SEVERITY.index)
    strict = [gate for gate in given if gate.verdict is worst]
    reason = "; ".join(dict.fromkeys(gate.reason for gate in strict if gate.reason))
    return Gate(
        verdict=worst, reason=reason, rules=tuple(dict.fromkeys(rule for gate in strict for rule in gate.rules))
    )


async def _in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        return await asyncio.to_thread(function, *args, **kwargs)
    except OSError as error:
        where = f"{os.fsdecode(error.filename)}: " if error.filename is not None else ""
        raise ToolError(f"{where}{error.strerror or error}") from error


def _read_file(paths: _Paths) -> Tool:
    def decide(arguments: Mapping[str, Any], context: ToolContext) -> Gate:
        return paths.gate(context, arguments["path"], writing=False)

    @tool("file", parallel=True, effect=Effect.PURE, decide=decide)
    async def read_file(
        context: ToolContext,
        *,
        path: Annotated[str, "the file, absolute, with ~, or relative to the current directory"],
        offset: Annotated[int, "the number of the first line to show"] = 1,
        limit: Annotated[int, "how many lines to show, 2000 at most"] = 500,
    ) -> str:
        """Read a text file. Each line comes as NUMBER|TEXT; the numbers are not part of the file.

        The last line says how many lines there are and where to go on. A directory is listed.
        """
        cancelled = threading.Event()

        def read() -> str:
            return read_page(paths.usable(context, path, writing=False), offset, limit, cancelled.is_set)

        try:
            return await _in_thread(read)
        finally:
            cancelled.set()  # the thread may still be at it

    return read_file


def _write_file(paths: _Paths) -> Tool:
    def decide(arguments: Mapping[str, Any], context: ToolContext) -> Gate:
        return paths.gate(context, arguments["path"], writing=True)

    @tool("file", decide=decide)
    async def write_file(
        context: ToolContext,
        *,
        path: Annotated[str, "the file; missing directories are made"],
        content: Annotated[str, "the whole content"],
    ) -> str:
        """Write a file, replacing what it held. To change parts of a file use patch."""

        def write() -> str:
            return _written(paths.usable(context, path, writing=True), content)

        return await _in_thread(write)

    return write_file


def _written(path: str, content: str) -> str:
    try:
        data = content.encode()
    except UnicodeEncodeError:
        raise ToolError("the content holds half of a surrogate pair, which no file can hold") from None
    file = Path(path)
    try:
        check_regular(file.stat().st_mode, path)
        done = "overwritten"
    except FileNotFoundError:
        file.parent.mkdir(parents=True, exist_ok=True)
        done = "created"
    replace_file(file, data)
    return f"{path} was {done}: {len(data):,} bytes, {len(content.splitlines()):,} lines"


def _patch(paths: _Paths) -> Tool:
    def decide(arguments: Mapping[str, Any], context: ToolContext) -> Gate:
        named = _patched_paths(arguments)
        return _joint(paths.gate(context, path, writing=True) for path in named)

    @tool("file", decide=decide)
    async def patch(
        context: ToolContext,
        *,
        mode: Annotated[Literal["replace", "patch"], "replace one text, or apply a patch to files"] = "replace",
        path: Annotated[str | None, "replace: the file"] = None,
        old_string: Annotated[str | None, "replace: the text to find, with enough around it to be unique"] = None,
        new_string: Annotated[str | None, "replace: what comes in its place; empty to delete"] = None,
        replace_all: Annotated[bool, "replace: every place where old_string is"] = False,
        patch: Annotated[str | None, "patch: the text in V4A format"] = None,
    ) -> str:
        """Change parts of files; answers with a diff.

        Mode replace finds old_string in one file, forgiving differences in white space, and puts new_string there.
        Mode patch changes several files, all or none:
        *** Begin Patch
        *** Update File: path      (then optionally *** Move to: path)
        @@ a line before the change, where one is needed to find it
         a line that stays
        -a line that goes
        +a line that comes
        *** Add File: path         (then lines with +)
        *** Delete File: path
        *** End Patch
        """
        given = {"mode": mode, "path": path, "old_string": old_string, "new_string": new_string, "patch": patch}
        return await _in_thread(_patched, paths, context, given, every=replace_all)

    return patch


def _patched_paths(arguments: Mapping[str, Any]) -> list[str]:
    if arguments.get("mode") == "patch":
        if not arguments.get("patch"):
            raise ToolError("mode patch needs the argument patch")
        return v4a.paths(v4a.parse(arguments["patch"]))
    for name in ("path", "old_string", "new_string"):
        if arguments.get(name) is None:
            raise ToolError(f"mode replace needs the argument {name}")
    return [arguments["path"]]


def _patched(paths: _Paths, context: ToolContext, arguments: Mapping[str, Any], *, every: bool) -> str:
    real = {path: paths.usable(context, path, writing=True) for path in _patched_paths(arguments)}
    if arguments["mode"] == "patch":
        changes = patching.plan_patch(v4a.parse(arguments["patch"]), real.__getitem__)
        said = f"{len(changes)} files changed" if len(changes) != 1 else "1 file changed"
    else:
        old, new = arguments["old_string"], arguments["new_string"]
        change, places = patching.plan_replace(real[arguments["path"]], old, new, every=every)
        changes, said = [change], f"changed in {places}"
    patching.apply(changes)
    return "\n".join([said, *(patching.diff(change, paths.shown(context, change.path)) for change in changes)])


def _search_files(paths: _Paths) -> Tool:
    def decide(arguments: Mapping[str, Any], context: ToolContext) -> Gate:
        return paths.gate(context, arguments.get("path", "."), writing=False)

    @tool("file", parallel=True, effect=Effect.PURE, decide=decide)
    async def search_files(
        context: ToolContext,
        *,
        pattern: Annotated[str, "a regular expression, or for target files a glob like *.py or src/**/test_*"],
        target: Annotated[Literal["content", "files"], "search inside of files, or for files by name"] = "content",
        path: Annotated[str, "the directory or file to search"] = ".",
        file_glob: Annotated[str | None, "content: only files with such names, like *.{ts,tsx}"] = None,
        output_mode: Annotated[
            Literal["content", "files", "count"], "content: matching lines, file names, or counts per file"
        ] = "content",
        limit: Annotated[int, "how many results to show"] = 50,
        offset: Annotated[int, "how many results to skip"] = 0,
        context_lines: Annotated[int, "content: lines to show before and after a match"] = 0,
    ) -> str:
        """Search for text in files or for files by name, below a directory.

        What .gitignore names, .git and binary files are left out. Results are in the order of their paths.
        """
        offset, limit = max(0, offset), max(1, min(limit, _RESULTS_MOST))
        by_name = target == "files"
        root, readable = await _in_thread(_search_place, paths, context, path)
        query = Query(
            root=root,
            pattern=None if by_name else pattern,
            glob=pattern if by_name else file_glob,
            context=max(0, min(context_lines, _CONTEXT_MOST)),
            lines=output_mode == "content",
            most=offset + limit,
        )
        found = await search(query, readable)
        return await _in_thread(_shown, found, query, offset, lambda real: paths.shown(context, real), output_mode)

    return search_files


def _search_place(paths: _Paths, context: ToolContext, path: str) -> tuple[str, Callable[[str], bool]]:
    root = paths.usable(context, path, writing=False)
    try:
        if not Path(root).is_dir():
            check_regular(Path(root).stat().st_mode, root)
    except (FileNotFoundError, NotADirectoryError):
        raise ToolError(missing(root)) from None
    return root, paths.readable_below(context, root)


def _shown(found: Found, query: Query, offset: int, name: Callable[[str], str], output_mode: str) -> str:
    if query.pattern is not None and query.lines:
        matches = [line for line in found.lines if line.is_match]
        results, seen = (
            _lines(found, {(x.path, x.number) for x in matches[offset : query.most]}, query, name),
            len(matches),
        )
    else:
        count = output_mode == "count" and query.pattern is not None
        files = found.files[offset : query.most]
        results, seen = [f"{name(path)}:{n}" if count else name(path) for path, n in files], len(found.files)
    notes = []
    if not results:
        notes.append(f"nothing found{' beyond that offset' if seen else ''}")
    if seen > query.most:
        notes.append(f"there is more: go on with offset={query.most}")
    if found.protected:
        notes.append(f"{found.protected} protected files were left out")
    if found.timed_out:
        notes.append("time was up before everything was searched: give a narrower path or pattern")
    return "\n".join([*results, *(f"[{note}]" for note in notes)])


def _lines(found: Found, wanted: set[tuple[str, int]], query: Query, name: Callable[[str], str]) -> list[str]:
    near = {(path, number + by) for path, number in wanted for by in range(-query.context, query.context + 1)}
    names: dict[str, str] = {}
    shown: list[str] = []
    before: tuple[str, int] | None = None
    for line in found.lines:
        place = line.path, line.number
        if place not in near or (line.is_match and place not in wanted):
            continue
        if query.context and before is not None and before != (line.path, line.number - 1):
            shown.append("--")
        mark = ":" if line.is_match else "-"
        if line.path not in names:
            names[line.path] = name(line.path)
        shown.append(f"{names[line.path]}{mark}{line.number}{mark}{line.text}")
        before = place
    return shown
