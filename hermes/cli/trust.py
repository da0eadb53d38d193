"""`hermes trust`: approve the prompt files of a project (`AGENTS.md` and its like), list approvals, withdraw them.

It works on the data directory itself, with and without a daemon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.cli.output import one_line, print_json, print_table, say
from hermes.cli.parser import Commands

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from hermes.prompt_trust import TrustedPrompt, TrustedPrompts

ACTIONS = ("add", "list", "remove")


def add_commands(commands: Commands) -> None:
    trust = commands.add(
        "trust",
        _trust,
        "Let the agent use the prompt files of a project (AGENTS.md and its like), as they are now.",
        examples=(
            "  hermes trust                      approve those in this directory\n"
            "  hermes trust ~/project            approve those in that one\n"
            "  hermes trust list                 show what is approved\n"
            "  hermes trust remove ~/project     withdraw it"
        ),
        json=True,
    )
    trust.add_argument("words", nargs="*", metavar="[add|list|remove] [DIR]", help="by default: add, this directory")


def _trust(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.home import Home, prepare
    from hermes.prompt_trust import TrustedPrompts

    words = list(args.words)
    action = words.pop(0) if words and words[0] in ACTIONS else "add"
    if len(words) > (0 if action == "list" else 1):
        args.usage_error(f"too many words after {action}")
    home = Home.from_environ(environ)
    store = TrustedPrompts(home.data_dir)
    if action == "list":
        return _list(store, json=args.json)
    directory = _directory(words[0] if words else ".")
    prepare(home)
    return (_add if action == "add" else _remove)(store, directory, json=args.json)


def _directory(text: str) -> Path:
    from pathlib import Path

    return Path(text).expanduser().resolve()


def _list(store: TrustedPrompts, *, json: bool) -> int:
    found = store.all()
    if json:
        print_json({"trusted": [{**_fields(each), "current": each.is_current} for each in found]})
    elif found:
        rows = [[each.path, "approved" if each.is_current else "changed", each.sha256[:12]] for each in found]
        print_table(["FILE", "STATE", "SHA256"], rows)
    else:
        say("No prompt file is approved.")
    return 0


def _add(store: TrustedPrompts, directory: Path, *, json: bool) -> int:
    from pathlib import Path

    from hermes.agent.context_files import prompt_files
    from hermes.errors import BadInputError

    files = prompt_files(directory, person_home=Path.home())
    if not files:
        raise BadInputError(
            f"no prompt file is in {directory}; AGENTS.md, CLAUDE.md, .cursorrules, HERMES.md and .hermes.md are "
            "looked for, and never in your home directory itself"
        )
    added = [store.add(path, content) for path, content in files]
    _tell("trusted", "Approved, and used in new conversations until it changes:", added, json=json)
    return 0


def _remove(store: TrustedPrompts, directory: Path, *, json: bool) -> int:
    removed = store.remove(directory)
    _tell("removed", "No longer used:", removed, json=json)
    if not removed and not json:
        say(one_line(f"No prompt file in {directory} was approved."))
    return 0


def _tell(name: str, heading: str, entries: Sequence[TrustedPrompt], *, json: bool) -> None:
    if json:
        print_json({name: [_fields(each) for each in entries]})
        return
    for each in entries:
        say(one_line(f"{heading} {each.path} (SHA-256 {each.sha256[:12]}…)"))


def _fields(entry: TrustedPrompt) -> dict[str, str]:
    return {"path": entry.path, "sha256": entry.sha256}
