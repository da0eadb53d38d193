"""`hermes trust`: approve prompt files of a project (such as `AGENTS.md`), list and withdraw trust.

There are two kinds: prompt files, whose content is used in prompts, and work directories, where `hermes chat` lets
the agent work. It reads and writes the data directory itself, with and without a daemon.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from hermes.cli.answered import confirms, show
from hermes.cli.output import one_line, print_json, print_table, print_text, printable
from hermes.cli.parser import Commands

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from hermes.config.prompt_trust import TrustedPrompt, TrustedPrompts
    from hermes.domain.access.prompt_file import PromptFile

ACTIONS = ("add", "list", "remove")
_NOT_APPROVED = 3  # exit code without a terminal to ask on


def add_commands(commands: Commands) -> None:
    trust = commands.add(
        "trust",
        _trust,
        "Approve the prompt files of a project (such as AGENTS.md), list and withdraw trust.",
        examples=(
            "  hermes trust                      show and approve the prompt files in this directory\n"
            "  hermes trust ~/project            the same in another directory\n"
            "  hermes trust list                 show approved prompt files and trusted work directories\n"
            "  hermes trust remove ~/project     withdraw both for a directory"
        ),
        json=True,
    )
    trust.add_argument("words", nargs="*", metavar="[add|list|remove] [DIR]", help="default: add, in this directory")
    trust.add_argument(
        "--digest", action="append", default=[], metavar="D", help="approve the file with this digest, without asking"
    )


def _trust(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.home import Home, prepare
    from hermes.config.prompt_trust import TrustedPrompts

    words = list(args.words)
    action = words.pop(0) if words and words[0] in ACTIONS else "add"
    if len(words) > (0 if action == "list" else 1):
        args.usage_error(f"too many words after {action}")
    home = Home.from_environ(environ)
    store = TrustedPrompts(home.data_dir)
    if action == "list":
        return _list(store, home.data_dir, args=args)
    directory = _directory(words[0] if words else ".")
    prepare(home)
    if action == "add":
        return _add(store, directory, args.digest, args=args)
    return _remove(store, home.data_dir, directory, args=args)


def _directory(text: str) -> Path:
    from pathlib import Path

    return Path(text).expanduser().resolve()


# ---------------------------------------------------------------- list and remove


def _list(store: TrustedPrompts, data_dir: Path, *, args: argparse.Namespace) -> int:
    from hermes.config.trust import read_answers

    files, directories = store.all(), sorted(read_answers(data_dir).items())
    answer = {
        "prompt_files": [{**_fields(each), "current": each.is_current} for each in files],
        "work_directories": [{"path": path, "trusted": trusted} for path, trusted in directories],
    }
    rows = [["prompt file", "approved" if each.is_current else "changed", _short(each), each.path] for each in files]
    rows += [["work directory", "trusted" if trusted else "refused", "-", path] for path, trusted in directories]
    if not rows:
        return show(args, answer, "No prompt file is approved, and no work directory is trusted.")
    return show(args, answer, lambda: print_table(["KIND", "STATE", "DIGEST", "PATH"], rows))


def _remove(store: TrustedPrompts, data_dir: Path, directory: Path, *, args: argparse.Namespace) -> int:
    from hermes.config.trust import forget_answer

    files, answer = store.remove(directory), forget_answer(data_dir, directory)
    lines = [
        f"Prompt file, no longer used in new conversations: {each.path} (digest {_short(each)})" for each in files
    ]
    if answer is not None:
        lines.append(f"Work directory, `hermes chat` asks again there: {directory}")
    forgotten = [] if answer is None else [{"path": str(directory), "trusted": answer}]
    report = {"prompt_files": [_fields(each) for each in files], "work_directories": forgotten}
    return show(args, report, lines or f"Nothing was trusted in {directory}")


# ---------------------------------------------------------------- add


def _add(store: TrustedPrompts, directory: Path, digests: Sequence[str], *, args: argparse.Namespace) -> int:
    from hermes.config.prompt_trust import chosen

    files = _found(directory)
    if digests:
        return _approve(store, chosen(files, digests), args=args)
    if args.json:
        found = [{"path": each.path, "sha256": each.sha256, "bytes": len(each.content)} for each in files]
        print_json({"found": found, "approved": []})
        return _NOT_APPROVED
    for each in files:
        print_text(printable(each.shown()))
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        how = " ".join(f"--digest {each.digest}" for each in files)
        print_text(one_line(f"Nothing was approved yet. To approve: hermes trust {_quoted(directory)} {how}"))
        return _NOT_APPROVED
    if not confirms(f"Use {'this file' if len(files) == 1 else 'these files'} in prompts?"):
        print_text("Nothing was approved.")
        return 0
    return _approve(store, files, args=args)


def _found(directory: Path) -> tuple[PromptFile, ...]:
    from pathlib import Path

    from hermes.agent.context_files import prompt_files
    from hermes.domain.access.prompt_file import PromptFile
    from hermes.domain.errors import BadInputError

    if not directory.is_dir():
        raise BadInputError(f"there is no directory {directory}")
    files = prompt_files(directory, person_home=Path.home())
    if not files:
        raise BadInputError(
            f"there is no prompt file in {directory}. Prompt files are AGENTS.md, CLAUDE.md, .cursorrules, HERMES.md "
            "and .hermes.md; your home directory itself is never searched"
        )
    return tuple(PromptFile(path=str(path), content=content) for path, content in files)


def _quoted(path: Path) -> str:
    import shlex

    return shlex.quote(str(path))


def _approve(store: TrustedPrompts, files: Sequence[PromptFile], *, args: argparse.Namespace) -> int:
    """Approve the content that was shown. A file that changed meanwhile has another digest and is not used."""
    from pathlib import Path

    added = [store.add(Path(each.path), each.content) for each in files]
    lines = [
        f"Approved, and used in new conversations until it changes: {each.path} (digest {_short(each)})"
        for each in added
    ]
    return show(args, {"approved": [_fields(each) for each in added]}, lines)


def _short(entry: TrustedPrompt) -> str:
    from hermes.domain.access.prompt_file import DIGEST_CHARS

    return entry.sha256[:DIGEST_CHARS]


def _fields(entry: TrustedPrompt) -> dict[str, Any]:
    return {"path": entry.path, "sha256": entry.sha256}
