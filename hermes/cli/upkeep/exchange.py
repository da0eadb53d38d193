"""`hermes export` and `hermes import`: conversations as files.

An export reads the store itself, also while a daemon uses it. An import goes through the daemon if one runs, else it
is written under the lock of the home. Either way it is one transaction.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from hermes.cli.answered import show
from hermes.cli.output import count, one_line, print_text
from hermes.cli.parser import add_file, add_session
from hermes.cli.progress import progress_bar
from hermes.domain.errors import HermesError, NotRunningError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from hermes.cli.parser import Commands
    from hermes.cli.progress import Progress
    from hermes.config.home import Home
    from hermes.domain.read.reader import Reader
    from hermes.domain.session.state import Session

_SESSION = "20260102_030405_1a2b3c4d"
_STDIN = "-"


def declare_export(commands: Commands) -> None:
    export = commands.add(
        "export",
        _export,
        "Write a conversation to a file or to standard output. jsonl is lossless and can be imported again with\n"
        "`hermes import`; markdown is for reading. Works with and without a daemon.",
        examples=f"  hermes export {_SESSION} -o talk.jsonl\n  hermes export - --format markdown | less",
    )
    add_session(export)
    export.add_argument(
        "--format", choices=("jsonl", "markdown"), default="jsonl", help="format of the output (default: jsonl)"
    )
    add_file(
        export, "-o", "--output", metavar="FILE", help="new file, readable only by you (default: standard output)"
    )
    export.add_argument(
        "--exact", action="store_true", help="export this exact session, without predecessors and successors"
    )


def add_commands(commands: Commands) -> None:
    declare_export(commands)
    take_in = commands.add(
        "import",
        _import,
        "Import an exported conversation into the store. It keeps its ids if they are free. A conversation that is\n"
        "already stored is refused, and so is a file with a damaged line.",
        examples="  hermes import talk.jsonl\n  ssh other hermes export - | hermes import -",
        json=True,
    )
    add_file(take_in, "file", metavar="FILE", help="file written by `hermes export`; - is standard input")
    take_in.add_argument(
        "--trust",
        action="store_true",
        help="keep its key, preferences, grants and prompts (default: drop them)",
    )


# ---------------------------------------------------------------- export


def _export(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.home import Home

    with _reading(Home.from_environ(environ)) as reader:
        heads = _conversation(reader, args.session, exact=args.exact)
        lines, what = (_jsonl if args.format == "jsonl" else _markdown)(reader, heads)
    if args.output is None:
        for line in lines:
            print(line)
        return 0
    with progress_bar("exporting", in_bytes=False) as (progress, _):
        _write(args.output, _counted(lines, 1 + sum(head.next_seq for head in heads), progress))
    print_text(f"{what} of {count(len(heads), 'session')} were written to {one_line(args.output)}.")
    return 0


def _counted(lines: Iterable[str], total: int, progress: Progress) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        yield line
        progress("exporting", number, total)


@contextmanager
def _reading(home: Home) -> Iterator[Reader]:
    if not (home.store_dir / "data.mdb").exists():
        raise HermesError(f"nothing is stored in {home.data_dir} yet")
    from hermes.storage.lmdb_reader import open_reader

    with open_reader(home.store_dir) as reader:
        if reader is None:
            raise HermesError(f"nothing is stored in {home.data_dir} yet")
        yield cast("Reader", reader)  # a Reader without `stats`


def _conversation(reader: Reader, given: str, *, exact: bool) -> list[Session]:
    """Return the sessions of the conversation, the oldest first."""
    from hermes.cli.session_lookup import StoredRecords, resolve_id
    from hermes.domain.errors import UnknownSessionError
    from hermes.domain.ids import SessionId
    from hermes.domain.read.lineage import Address, find_family, find_route

    name = SessionId(resolve_id(StoredRecords(reader), given))
    names = (name,) if exact else find_family(reader, name)
    heads = [find_route(reader, Address(session=each, exact=True)).head for each in names]
    found = sorted((head for head in heads if head is not None), key=lambda head: head.created_at)
    if not found:
        raise UnknownSessionError(f"there is no session {given}")
    return found


def _jsonl(reader: Reader, heads: list[Session]) -> tuple[Iterable[str], str]:
    from hermes.upkeep.portable import to_lines

    logs = {head.id: reader.log(head.id) for head in heads}
    return to_lines(logs, now=time.time()), count(sum(map(len, logs.values())), "record")


def _markdown(reader: Reader, heads: list[Session]) -> tuple[Iterable[str], str]:
    from hermes.cli.markdown_page import page
    from hermes.domain.read.transcript_page import stored_messages

    shown = [(head, stored_messages(head, reader.log(head.id))[0]) for head in heads]
    return [page(shown).rstrip("\n")], count(sum(len(messages) for _, messages in shown), "message")


def _write(path: str, lines: Iterable[str]) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise HermesError(f"{path} exists already; name a new file") from None
    except OSError as error:
        raise HermesError(f"{path} cannot be written: {error.strerror}") from error
    try:
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:  # noqa: PTH123 - a descriptor
            file.writelines(f"{line}\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:  # a partial file would look complete
        os.unlink(path)  # noqa: PTH108
        raise


# ---------------------------------------------------------------- import


def _import(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.client import AdminClient
    from hermes.config.home import Home

    home = Home.from_environ(environ)
    client = AdminClient(home.socket)
    with _file(args.file) as path, progress_bar("importing") as (progress, _):
        try:
            client.info()
            report = client.post("/store/import", {"path": str(path), "trust": args.trust}, timeout_s=None)
        except NotRunningError:
            report = _import_directly(home, path, environ, trust=args.trust, progress=progress)
    return show(args, report, list(_report_lines(report)))


@contextmanager
def _file(given: str) -> Iterator[Path]:
    """Yield an absolute path for the daemon. Standard input is written to a temporary file."""
    from pathlib import Path
    from tempfile import NamedTemporaryFile

    if given != _STDIN:
        yield Path(given).absolute()
        return
    with NamedTemporaryFile(prefix="hermes-import-", suffix=".jsonl") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        file.flush()
        yield Path(file.name)


def _import_directly(
    home: Home, path: Path, environ: Mapping[str, str], *, trust: bool, progress: Progress
) -> dict[str, Any]:
    from functools import partial

    from hermes.config.home import has_store, lock, note_store, prepare
    from hermes.config.loader import load_config
    from hermes.storage.lmdb_engine import LmdbEngine
    from hermes.system.random_id import new_session_id
    from hermes.upkeep.adoption import adopt
    from hermes.upkeep.portable import read_export

    exported = read_export(path, lambda done, total: progress("reading", done, total))
    progress("storing", 0, 0)
    map_size_bytes = load_config(home, environ).storage.map_size_mb << 20
    prepare(home)
    with lock(home):
        engine = LmdbEngine.open(home.store_dir, map_size_bytes=map_size_bytes, made_before=has_store(home))
        try:
            note_store(home)
            now = time.time()
            new_id = partial(new_session_id, now)
            adoption = adopt(engine, exported, epoch=engine.epoch, new_id=new_id, now=now, trust=trust)
            [refusal] = engine.commit([adoption.appends])
        finally:
            engine.close()
    if refusal is not None:
        raise refusal
    return adoption.report()


def _report_lines(report: Mapping[str, Any]) -> Iterator[str]:
    records, sessions = count(report["records"], "record"), report["sessions"]
    yield f"Imported {records} of {count(len(sessions), 'session')}: {', '.join(sessions)}."
    for old, new in report["renamed"].items():
        yield f"{old} was imported as {new}: some of its ids are in use here."
    if not report["trusted"]:
        yield "Its key, preferences, grants and prompts were dropped; `--trust` keeps those of a file you trust."
    elif report["new_key"]:
        yield "Its key belongs to another conversation here: use its session id to reach it."
    for session in report["suspended"]:
        yield f"{session} had open work and is suspended; `hermes resume {session}` continues it."
