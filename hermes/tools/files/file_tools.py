"""The file tools: read_file, write_file, patch, search_files.

Where there is a sandbox they work inside it (`boxed_files`), and its mounts decide what they reach. Elsewhere paths
lose their symbolic links before a gate judges them, and the judgement is made again when the call runs, since a link
may have changed while somebody was asked. A conversation may always read its own long outputs and the files that
people sent to it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

from hermes.domain.process.box import Box
from hermes.domain.types import Effect, Gate, Verdict
from hermes.tools.files.boxed_files import BoxedFiles
from hermes.tools.files.operations import Operation, patched_paths, perform
from hermes.tools.files.search_files import FileMatches, FileQuery, search
from hermes.tools.own_folder import anothers_folders
from hermes.tools.tool import Tool, ToolContext, ToolError, tool
from hermes.tools.workplace import Workplace

# Of an absolute path without links, whether it is written, and the conversation's working directory.
GatePath: TypeAlias = Callable[[str, bool, str], Gate]
P = ParamSpec("P")
T = TypeVar("T")

ASKED_INSIDE = frozenset({"prompt-write"})  # in a sandbox, too: what a later prompt would trust
_MAX_CONTEXT = 20
_MAX_RESULTS = 1_000
_SEVERITY = (Verdict.ALLOW, Verdict.ASK, Verdict.BLOCK)


def file_tools(workplace: Workplace, gate_path: GatePath, boxed: BoxedFiles | None = None) -> tuple[Tool, ...]:
    """`gate_path` judges real paths where there is no sandbox, and in one the paths as they were given."""
    files: _Files = _Direct(workplace, gate_path) if boxed is None else _Inside(workplace, gate_path, boxed)
    return _read_file(files), _write_file(files), _patch(files), _search_files(files)


class _Files(Protocol):
    """How a conversation reaches files, and what may be done with them."""

    def gate(self, context: ToolContext, path: str, *, writing: bool) -> Gate:
        """Blocking."""

    async def perform(self, context: ToolContext, operation: Operation, arguments: Mapping[str, Any]) -> str: ...

    async def search(self, context: ToolContext, query: FileQuery) -> FileMatches: ...

    def shown(self, context: ToolContext, real: str) -> str:
        """Blocking."""


class _Inside:
    """Through a worker in the conversation's sandbox."""

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
    """In threads of the daemon, for machines without a sandbox."""

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
            cancelled.set()  # the thread may still be at it

    async def search(self, context: ToolContext, query: FileQuery) -> FileMatches:
        own = await asyncio.to_thread(_is_own_output, context, query.root)
        others = await asyncio.to_thread(anothers_folders, context.folder, self._workplace.hermes_home)
        work = await asyncio.to_thread(self._workplace.work_of, context.folder, context.role)

        def allowed(real: str) -> bool:
            return own or (not others(real) and self._gate_path(real, False, work).verdict is Verdict.ALLOW)

        return await search(query, allowed)

    def shown(self, context: ToolContext, real: str) -> str:
        return self._workplace.shown(context.folder, real, context.role)

    def usable(self, context: ToolContext, path: str, *, writing: bool) -> str:
        """The real path, unless it is blocked by now."""
        real = self._workplace.resolve(context.folder, path, context.role)
        gate = self._gate(context, real, writing=writing)
        if gate.verdict is Verdict.BLOCK:
            raise ToolError(f"{path} may not be {'written' if writing else 'read'}: {gate.reason}")
        return real

    def _gate(self, context: ToolContext, real: str, *, writing: bool) -> Gate:
        if not writing and _is_own_output(context, real):
            return Gate()
        if anothers_folders(context.folder, self._workplace.hermes_home)(real):
            return Gate(verdict=Verdict.BLOCK, reason=f"{real} belongs to another conversation")
        return self._gate_path(real, writing, self._workplace.work_of(context.folder, context.role))


class _Checked:
    """The names of one call."""

    def __init__(self, files: _Direct, context: ToolContext) -> None:
        self._files = files
        self._context = context

    def resolve(self, path: str, *, writing: bool) -> str:
        return self._files.usable(self._context, path, writing=writing)

    def shown(self, real: str) -> str:
        return self._files.shown(self._context, real)


def _is_own_output(context: ToolContext, real: str) -> bool:
    """Whether it is one of the conversation's long outputs, or a file that a person sent there."""
    own = (str(context.folder / "outputs"), *context.received)
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


def _read_file(paths: _Files) -> Tool:
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
        path: Annotated[str, "the file; missing directories are made"],
        content: Annotated[str, "the whole content"],
    ) -> str:
        """Write a file, replacing what it held. To change parts of a file use patch."""

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
        given = {
            "mode": mode,
            "path": path,
            "old_string": old_string,
            "new_string": new_string,
            "patch": patch,
            "replace_all": replace_all,
        }
        patched_paths(given)  # what is missing is said before anything is looked at
        return await paths.perform(context, Operation.PATCH, given)

    return patch


def _search_files(paths: _Files) -> Tool:
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
        notes.append(f"nothing found{' beyond that offset' if seen else ''}")
    if seen > query.most:
        notes.append(f"there is more: go on with offset={query.most}")
    if found.protected:
        notes.append(f"{found.protected} protected files were left out")
    if found.timed_out:
        notes.append("time was up before everything was searched: give a narrower path or pattern")
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
