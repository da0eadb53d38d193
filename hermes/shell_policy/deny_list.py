"""Match of the owner's deny globs against a command, in any spelling.

A glob is compared with the written line, with each command in it, with commands without the options before their
verb, and with expanded git aliases. A part that is only known at run time matches any glob. In code, and in texts
passed to a program, the glob's words in their order are enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from hermes.shell_policy.bash.command_line import CommandLine
from hermes.shell_policy.bash.simple_command import SimpleCommand
from hermes.shell_policy.bash.syntax import UNKNOWN, words
from hermes.shell_policy.rules.inline_code import language_of

SAYS_ONLY = words("echo printf grep egrep fgrep rg ag sed awk git man which type command whatis apropos jq cat less")
_HAS_CODE = words("awk gawk mawk nawk sed gsed vim vi nvim ex emacs ed gdb lldb expect make sqlite3 psql mysql")
_MAX_SUFFIXES = 24
_MAX_TEXT = 128 * 1024
_PATTERN = re.compile(r"[*?\[\0]")
_GLOB_WORD = re.compile(r"[\w.+-]+")
_GIT_ALIAS = re.compile(r"alias\.([^=\s]+)[=\s](.*)", re.DOTALL | re.IGNORECASE)


def denied_by(command: CommandLine, texts: Sequence[str], deny: Sequence[str]) -> tuple[str, str] | None:
    """Return the denied text and the matching glob; `texts` are further spellings of the line."""
    aliases = _git_aliases(command)
    for spelling in (*texts, *(each for one in command.commands for each in _spellings(one, aliases))):
        for glob in deny:
            if fnmatchcase(spelling, glob):
                return spelling, glob
    for one in command.commands:
        for glob in deny:
            if _could_match(one, glob) or _may_run(one, glob) or _says(one, glob):
                return " ".join(one.argv) or one.written, glob
    return None


def _spellings(command: SimpleCommand, aliases: dict[str, str]) -> Iterator[str]:
    if not command.guess:
        yield command.written
    if not command.argv:
        return
    yield _joined(command.argv)
    for argv in _without_options((command.name, *command.argv[1:])):
        yield _joined(argv)
        if command.name == "git" and len(argv) > 1 and argv[1] in aliases:
            yield _joined(("git", aliases[argv[1]], *argv[2:]))


def _may_run(command: SimpleCommand, glob: str) -> bool:
    """Return whether the glob matches arguments that the program may run. Globs of one word are ignored."""
    if command.name in SAYS_ONLY or len(_GLOB_WORD.findall(glob)) < 2:
        return False
    for index in range(1, min(len(command.argv) - 1, _MAX_SUFFIXES)):
        if not command.argv[index].startswith("-") and " " not in command.argv[index]:
            name = command.argv[index].rpartition("/")[2]
            suffixes = _without_options((name, *command.argv[index + 1 :]))
            if any(fnmatchcase(_joined(each), glob) for each in suffixes):
                return True
    return False


def _joined(argv: tuple[str, ...]) -> str:
    return " ".join(argv).replace(UNKNOWN, "")


def _without_options(argv: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield `git -C x push` also as `git x push` and `git push`, because options with values are not known."""
    yield argv
    index = 1
    while index < len(argv):
        if argv[index].startswith("-"):
            index += 1
            continue
        if index == 1:
            return
        yield (argv[0], *argv[index:])
        if not argv[index - 1].startswith("-"):
            return
        index += 1


def _git_aliases(line: CommandLine) -> dict[str, str]:
    aliases = {}
    for command in line.commands:
        if command.name == "git":
            for index, argument in enumerate(command.argv):
                setting = argument if "=" in argument else " ".join(command.argv[index : index + 2])
                if found := _GIT_ALIAS.match(setting.removeprefix("-c")):
                    aliases[found[1]] = found[2].strip()
    return aliases


def _could_match(command: SimpleCommand, glob: str) -> bool:
    """Whether what is not known of it could be what the glob says there."""
    if command.guess or not command.argv or not _PATTERN.search("".join(command.argv)):
        return False
    wanted = glob.split()
    if not wanted or not wanted[0].strip("*?"):
        return False
    if command.argv == (UNKNOWN,):
        return True
    made = []
    for index, argument in enumerate(command.argv):
        own = argument.rpartition("/")[2].lower() if not index else argument
        known = wanted[index].rstrip("*") if index < len(wanted) else ""
        unclear = UNKNOWN in own or (not index and _PATTERN.search(own))
        if known and unclear and fnmatchcase(known, own.replace(UNKNOWN, "*").replace("[^", "[!")):
            made.append(known)
        else:
            made.append(own)
    return fnmatchcase(_joined(tuple(made)), glob)


def _says(command: SimpleCommand, glob: str) -> bool:
    """Return whether the glob's words are in code, or in a text that the command may run."""
    wanted = _GLOB_WORD.findall(glob)
    if not wanted or not command.argv:
        return False
    has_code = bool(language_of(command.name)) or command.name in _HAS_CODE
    if command.name in SAYS_ONLY and not has_code:
        return False
    texts = [each for each in command.argv[1:] if has_code or " " in each]
    if has_code and command.stdin:
        texts.append(command.stdin)
    text = "\n".join(texts)[:_MAX_TEXT]
    return bool(texts) and _in_order(wanted, text, near=16)


def _in_order(wanted: list[str], text: str, *, near: int) -> bool:
    """Return whether the words follow each other with only quotes, commas or short options between them."""
    if not all(each in text for each in wanted):
        return False
    between = rf"[^\n]{{1,{near}}}?\b"
    return bool(re.search(r"(?<![\w.-])" + between.join(map(re.escape, wanted)), text))
