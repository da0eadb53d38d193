"""File tools: read_file, write_file, patch, search_files.

With a sandbox they work inside it (`boxed_files`), and its mounts decide what they reach. Without one, symbolic links
are resolved before a gate judges a path. The path is judged again when the call runs, because a link may change while
approval is pending. A conversation may always read its own long outputs and received files.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

from hermes.domain.process.sandbox_launch import Box
from hermes.domain.turn.tool_call import Effect, Gate, Verdict
from hermes.tools.files.boxed_files import BoxedFiles
from hermes.tools.files.file_operations import Operation, patched_paths, perform
from hermes.tools.files.search_files import FileMatches, FileQuery, search
from hermes.tools.tool import Tool, ToolContext, ToolError, tool
from hermes.tools.workplace import Workplace

# Arguments: an absolute path without links, whether it is written, and the conversation's working directory.
GatePath: TypeAlias = Callable[[str, bool, str], Gate]
P = ParamSpec("P")
T = TypeVar("T")

ASKED_INSIDE = frozenset({"prompt-write"})  # rules that need approval inside a sandbox too
_MAX_CONTEXT = 20
_MAX_RESULTS = 1_000
_SEVERITY = (Verdict.ALLOW, Verdict.ASK, Verdict.BLOCK)


def file_tools(workplace: Workplace, gate_path: GatePath, boxed: BoxedFiles | None = None) -> tuple[Tool, ...]:
    """Return the tools. `gate_path` judges real paths without a sandbox, and paths as given with one."""
    files: _Files = _Direct(workplace, gate_path) if boxed is None else _Inside(workplace, gate_path, boxed)
    return _read_file(files), _write_file(files), _patch(files), _search_files(files)


class _Files(Protocol):
    """File access of a conversation, with its permission checks."""

    def gate(self, context: ToolContext, path: str, *, writing: bool) -> Gate:
        """Blocking."""

    async def perform(self, context: ToolContext, operation: Operation, arguments: Mapping[str, Any]) -> str: ...

    async def search(self, context: ToolContext, query: FileQuery) -> FileMatches: ...

    def shown(self, context: ToolContext, real: str) -> str:
        """Blocking."""


class _Inside:
    """File access through a worker in the conversation's sandbox."""

    def __init__(self, workplace: Workplace, gate_path: GatePath, boxed: BoxedFiles) -> None:
        self._workplace = workplace
        self._gate_path = gate_path
        self._boxed = boxed

    def gate(self, context: ToolContext, path: str, *, writing: bool) -> Gate:
        if not writing:
            return Gate()
        given = os.path.join(self._workplace.cwd_of(context.folder, context.role), path)  # noqa: PTH118 - text
        work = self._workplace.work_of(context.folder, context.role)
        found = self._gate_path(os.path.normpath(given), writing, work)
        return found if ASKED_INSIDE.intersection(found.rules) else Gate()

    async def perform(self, context: ToolContext, operation: Operation, arguments: Mapping[str, Any]) -> str:
        return await self._boxed.perform(context, operation, arguments)

    async def search(self, context: ToolContext, query: FileQuery) -> FileMatches:
        box: Box = await self._boxed.box(context)
        return await search(query, lambda _: True, box=box)

    def shown(self, context: ToolContext, real: str) -> str:
        cwd = self._workplace.cwd_of(context.folder, context.role)
        return os.path.relpath(real, cwd) if real.startswith(f"{cwd}/") else real


class _Direct:
    """File access in threads of the daemon, for machines without a sandbox."""

    def __init__(self, workplace: Workplace, gate_path: GatePath) -> None:
        self._workplace = workplace
        self._gate_path = gate_path

    def gate(self, context: ToolContext, path: str, *, writing: bool) -> Gate:
        real = self._workplace.resolve(context.folder, path, context.role)
        return self._gate(context, real, writing=writing)

    async def perform(self, context: ToolContext, operation: Operation, arguments: Mapping[str, Any]) -> str:
        cancelled = threading.Event()
        try:
            return await _in_thread(perform, operation, arguments, _Checked(self, context), cancelled.is_set)
        finally:
            cancelled.set()  # the thread may still be running

    async def search(self, context: ToolContext, query: FileQuery) -> FileMatches:
        own = await asyncio.to_thread(_is_own_output, context, query.root)
        others = await asyncio.to_thread(_anothers_folders, context.folder, self._workplace.hermes_home)
        work = await asyncio.to_thread(self._workplace.work_of, context.folder, context.role)

        def allowed(real: str) -> bool:
            return own or (not others(real) and self._gate_path(real, False, work).verdict is Verdict.ALLOW)

        return await search(query, allowed)

    def shown(self, context: ToolContext, real: str) -> str:
        return self._workplace.shown(context.folder, real, context.role)

    def usable(self, context: ToolContext, path: str, *, writing: bool) -> str:
        """Return the real path. Raises ToolError if it is blocked now."""
        real = self._workplace.resolve(context.folder, path, context.role)
        gate = self._gate(context, real, writing=writing)
        if gate.verdict is Verdict.BLOCK:
            raise ToolError(f"{path} must not be {'written' if writing else 'read'}: {gate.reason}.")
        return real

    def _gate(self, context: ToolContext, real: str, *, writing: bool) -> Gate:
        if not writing and _is_own_output(context, real):
            return Gate()
        if _anothers_folders(context.folder, self._workplace.hermes_home)(real):
            return Gate(verdict=Verdict.BLOCK, reason=f"{real} belongs to another conversation")
        return self._gate_path(real, writing, self._workplace.work_of(context.folder, context.role))


class _Checked:
    """Path resolution for one call, with the gate's check."""

    def __init__(self, files: _Direct, context: ToolContext) -> None:
        self._files = files
        self._context = context

    def resolve(self, path: str, *, writing: bool) -> str:
        return self._files.usable(self._context, path, writing=writing)

    def shown(self, real: str) -> str:
        return self._files.shown(self._context, real)


def _is_own_output(context: ToolContext, real: str) -> bool:
    """Return whether the path is one of the conversation's long outputs or received files."""
    own = (str(context.folder / "outputs"), *context.received)
    return any(Path(real).is_relative_to(os.path.realpath(each)) for each in own)


def _joint(gates: Iterable[Gate]) -> Gate:
    """Return one gate for several paths: the strictest verdict, with all its reasons."""
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


def _read_file(paths: _Files) -> Tool:
    def decide(arguments: Mapping[str, Any], context: ToolContext) -> Gate:
        return paths.gate(context, arguments["path"], writing=False)

    @tool("file", parallel=True, effect=Effect.PURE, decide=decide)
    async def read_file(
        context: ToolContext,
        *,
        path: Annotated[str, "the file: absolute, with ~, or relative to the current directory"],
        offset: Annotated[int, "first line to show"] = 1,
        limit: Annotated[int, "number of lines to show, maximum 2000"] = 500,
    ) -> str:
        """Read a text file, or list a directory.

        Each line is shown as NUMBER|TEXT; the number is not part of the file. The last line gives the total number
        of lines and the offset to continue with.
        """
        given = {"path": path, "offset": offset, "limit": limit}
        return await paths.perform(context, Operation.READ, given)

    return read_file


def _write_file(paths: _Files) -> Tool:
    def decide(arguments: Mapping[str, Any], context: ToolContext) -> Gate:
        return paths.gate(context, arguments["path"], writing=True)

    @tool("file", decide=decide)
    async def write_file(
        context: ToolContext,
        *,
        path: Annotated[str, "the file; missing directories are created"],
        content: Annotated[str, "the complete content"],
    ) -> str:
        """Write a file and replace its old content. To change part of a file, use patch."""
        return await paths.perform(context, Operation.WRITE, {"path": path, "content": content})

    return write_file


def _patch(paths: _Files) -> Tool:
    def decide(arguments: Mapping[str, Any], context: ToolContext) -> Gate:
        named = patched_paths(arguments)
        return _joint(paths.gate(context, path, writing=True) for path in named)

    @tool("file", decide=decide)
    async def patch(
        context: ToolContext,
        *,
        mode: Annotated[Literal["replace", "patch"], "replace text in one file, or apply a patch"] = "replace",
        path: Annotated[str | None, "replace: the file"] = None,
        old_string: Annotated[str | None, "replace: text to find, with enough context to be unique"] = None,
        new_string: Annotated[str | None, "replace: the new text; empty deletes"] = None,
        replace_all: Annotated[bool, "replace: all occurrences of old_string"] = False,
        patch: Annotated[str | None, "patch: text in V4A format"] = None,
    ) -> str:
        """Change parts of files. Returns a diff.

        mode=replace finds old_string in one file, ignoring differences in white space, and replaces it with
        new_string. mode=patch changes several files, all or none:
        *** Begin Patch
        *** Update File: path      (optional next line: *** Move to: path)
        @@ a line before the change, if needed to find it
         an unchanged line
        -a removed line
        +an added line
        *** Add File: path         (then lines with +)
        *** Delete File: path
        *** End Patch
        """
        given = {
            "mode": mode,
            "path": path,
            "old_string": old_string,
            "new_string": new_string,
            "patch": patch,
            "replace_all": replace_all,
        }
        patched_paths(given)  # report missing arguments before reading the disk
        return await paths.perform(context, Operation.PATCH, given)

    return patch


def _search_files(paths: _Files) -> Tool:
    def decide(arguments: Mapping[str, Any], context: ToolContext) -> Gate:
        return paths.gate(context, arguments.get("path", "."), writing=False)

    @tool("file", parallel=True, effect=Effect.PURE, decide=decide)
    async def search_files(
        context: ToolContext,
        *,
        pattern: Annotated[str, "regular expression; for target=files a glob like *.py or src/**/test_*"],
        target: Annotated[Literal["content", "files"], "search file contents or file names"] = "content",
        path: Annotated[str, "directory or file to search"] = ".",
        file_glob: Annotated[str | None, "target=content: only files that match, like *.{ts,tsx}"] = None,
        output_mode: Annotated[
            Literal["content", "files", "count"], "target=content: show matching lines, file names or counts per file"
        ] = "content",
        limit: Annotated[int, "number of results to show"] = 50,
        offset: Annotated[int, "number of results to skip"] = 0,
        context_lines: Annotated[int, "target=content: lines to show before and after a match"] = 0,
    ) -> str:
        """Search file contents or file names below a directory.

        Skips .git, binary files and files ignored by .gitignore. Results are sorted by path.
        """
        offset, limit = max(0, offset), max(1, min(limit, _MAX_RESULTS))
        by_name = target == "files"
        root = await paths.perform(context, Operation.FIND_ROOT, {"path": path})
        query = FileQuery(
            root=root,
            pattern=None if by_name else pattern,
            glob=pattern if by_name else file_glob,
            context=max(0, min(context_lines, _MAX_CONTEXT)),
            lines=output_mode == "content",
            most=offset + limit,
        )
        found = await paths.search(context, query)
        return await _in_thread(_shown, found, query, offset, lambda real: paths.shown(context, real), output_mode)

    return search_files


def _shown(found: FileMatches, query: FileQuery, offset: int, name: Callable[[str], str], output_mode: str) -> str:
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
        notes.append(f"no results{' at that offset' if seen else ''}")
    if seen > query.most:
        notes.append(f"more results: continue with offset={query.most}")
    if found.protected:
        notes.append(f"{found.protected} protected files were skipped")
    if found.timed_out:
        notes.append("the search timed out and is incomplete; use a narrower path or pattern")
    return "\n".join([*results, *(f"[{note}]" for note in notes)])


def _lines(
    found: FileMatches, wanted: set[tuple[str, int]], query: FileQuery, name: Callable[[str], str]
) -> list[str]:
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


def _anothers_folders(folder: Path, hermes_home: str) -> Callable[[str], bool]:
    """Return a check for real paths: True if the path is in another conversation's folder.

    This function reads the disk; the returned check does not.
    """
    work, own = Path(os.path.realpath(hermes_home), "work"), os.path.realpath(folder)
    return lambda real: Path(real).is_relative_to(work) and not Path(real).is_relative_to(own)
