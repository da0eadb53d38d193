"""Files that a simple command writes, deletes or reads, from its arguments and redirections."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from itertools import pairwise

from hermes.shell_policy.bash.options import parse_options
from hermes.shell_policy.bash.simple_command import SimpleCommand
from hermes.shell_policy.bash.syntax import ANY_DEPTH, UNKNOWN, words
from hermes.shell_policy.rules.program_table import PROGRAMS

_WRITES_ALL = words(
    "tee touch truncate rm unlink rmdir shred srm chmod chown chgrp chattr setfacl sponge mkfifo mknod patch ed"
    " ex vim vi nvim nano emacs pico visudo vipw setcap gzip gunzip bzip2 xz zstd mkdir wipe trash-put rename"
)
_WRITES_LAST = words("cp mv ln install rsync scp link gcp gmv symlink ditto uniq xxd csplit split unrar")
_TEXT_ONLY = words("echo printf : true false export local declare alias set unset test [ [[ read type which")
_PATTERN_FIRST = words("grep egrep fgrep rg ag ack sed awk gawk jq yq perl ggrep zgrep")
_LISTS = words("ls cd pushd mkdir stat du file dirname basename realpath readlink tree exa eza find fd ssh-add")
_COPIES_TREE = {
    "cp": re.compile(r"-[a-zA-Z]*[rRa][a-zA-Z]*|--rec\w*|--arc\w*"),
    "gcp": re.compile(r"-[a-zA-Z]*[rRa][a-zA-Z]*|--rec\w*|--arc\w*"),
    "scp": re.compile(r"-[a-zA-Z0-9]*r[a-zA-Z0-9]*"),
    "zip": re.compile(r"-[a-zA-Z0-9]*[rR][a-zA-Z0-9]*|--recurse\S*"),
    "grep": re.compile(r"-[a-zA-Z]*[rR].*|--(?:deref|rec)\S*|--directories=recurse"),
    "ln": re.compile(r"-[a-zA-Z]*s[a-zA-Z]*|--sym\w*"),
}
_COPIES_TREE |= dict.fromkeys(("egrep", "fgrep", "ggrep", "zgrep"), _COPIES_TREE["grep"])
_ALWAYS_TREE = words("rsync ditto 7z 7za 7zr rar restic borg rclone rg ag ack ugrep duplicity mksquashfs genisoimage")
_CREATES = re.compile(r"-?[a-zA-Z]*[cruA][a-zA-Z]*|--(?:cr|ap|up|ca|con)\w*")
_WITH_SCRIPT = words("sed gsed awk gawk mawk nawk")
_WORD_IN_CODE = re.compile(r"[\w.~/@+*?-]+")
_SED_SUBSTITUTES = re.compile(r"s([^\w\s\\])(?:\\.|(?!\1).)*\1(?:\\.|(?!\1).)*\1([gpiIeMm\d]*)(w[^\n}]*)?", re.DOTALL)
_SED_WRITES = re.compile(r"(?:\A|[;{}\n\d$!/,+~])\s*[wW]\s*([^\s;}][^\n}]*)")
_LISTED_IN = re.compile(r"-[a-zA-Z]*T|--files-from|--files0-from|--files-f\w*")
MAX_PATHS = 512
MAX_CODE = 128 * 1024
MAX_SCRIPT = 16 * 1024  # of sed
WRITING = frozenset({">", ">|", ">>", "&>", "&>>", "<>", ">&"})


def operands(command: SimpleCommand) -> tuple[str, ...]:
    """Return the arguments that are not options; after `--` all of them."""
    found: list[str] = []
    for index, argument in enumerate(command.argv[1:], 1):
        if argument == "--":
            return (*found, *command.argv[index + 1 :])
        if not argument.startswith("-"):
            found.append(argument)
    return tuple(found)


def redirected_to(command: SimpleCommand) -> Iterator[str]:
    for redirection in command.redirections:
        if redirection.operator in WRITING and not re.fullmatch(r"\d*-?", redirection.target):
            yield redirection.target


def written_files(command: SimpleCommand) -> Iterator[str]:
    yield from redirected_to(command)
    name, argv = command.name, command.argv
    if name in _WRITES_ALL:
        yield from operands(command)
    elif name in _WRITES_LAST:
        yield from operands(command)[-1:] if len(operands(command)) > 1 else ()
        if name == "mv":
            yield from operands(command)
    elif edits_in_place(command):
        yield from _edited(command)
    elif name == "dd":
        yield from (each[3:] for each in argv[1:] if each.startswith("of="))
    if program := PROGRAMS.get(name):
        yield from (value for option, value in parse_options(argv[1:], program) if option in program.writes and value)
    if name in {"sed", "gsed"}:
        yield from _sed_writes("\n".join(argv[1:]))
    if name in {"find", "gfind"}:
        yield from (following for each, following in pairwise(argv) if each.startswith(("-fprint", "-fls")))


def _edited(command: SimpleCommand) -> tuple[str, ...]:
    """Return the files among the operands. A script comes first, unless an option contains it."""
    options = [each for each in command.argv[1:] if re.match(r"-[a-zA-Z0-9]*[ef]|--(?:exp|file)", each)]
    if command.name in {"sed", "gsed"} and not options:
        return operands(command)[1:]
    scripts = {following for option, following in pairwise(command.argv) if option in options}
    return tuple(each for each in operands(command) if each not in scripts)


def _sed_writes(script: str) -> Iterator[str]:
    """Yield the files that sed's `w` names, as a command or as a flag of a substitution."""
    if len(script) > MAX_SCRIPT:
        yield UNKNOWN
        return
    named = [found[3][1:] for found in _SED_SUBSTITUTES.finditer(script) if found[3]]
    named += [found[1] for found in _SED_WRITES.finditer(_SED_SUBSTITUTES.sub(";", script))]
    yield from (each.strip() for each in named)


def edits_in_place(command: SimpleCommand) -> bool:
    match command.name:
        case "sed" | "gsed" | "perl" | "ruby":
            return any(re.match(r"-[a-zA-Z]*i|--in-place", each) for each in command.argv[1:])
        case "awk" | "gawk":
            return "inplace" in command.argv
        case _:
            return False


def _values(argv: tuple[str, ...], glued: re.Pattern[str], options: set[str] | frozenset[str]) -> Iterator[str]:
    for index, argument in enumerate(argv):
        if argument in options:
            yield from argv[index + 1 : index + 2]
        elif found := glued.fullmatch(argument):
            yield next(filter(None, found.groups()), "")


def read_files(command: SimpleCommand) -> Iterator[str]:
    """Yield every argument that may name a file whose content is used."""
    for redirection in command.redirections:
        if redirection.operator in {"<", "<>"}:
            yield redirection.target
    name = command.name
    if name in _TEXT_ONLY or (name == "git" and {"commit", "tag", "log", "stash"} & set(command.argv[1:3])):
        return
    if name in _WITH_SCRIPT:
        yield from paths_in_code("\n".join(command.argv[1:]))
    if command.stdin and _takes_list(command):
        yield from command.stdin.split("\n")[:MAX_PATHS]
    skip = 0
    pattern_due = name in _PATTERN_FIRST and not {"-e", "-f", "--file", "--regexp"} & set(command.argv)
    for index, argument in enumerate(command.argv[1:], 1):
        if index <= skip:
            continue
        if argument == "-i" and name in {"ssh", "scp", "sftp", "rsync", "ssh-copy-id", "mosh"}:
            skip = index + 1  # ssh may read its key
        elif argument.startswith("-") and "=" not in argument and "@" not in argument and "/" not in argument:
            continue
        elif pattern_due:
            pattern_due = False
        else:
            yield from _named(argument)


def _named(argument: str) -> Iterator[str]:
    """Yield the paths in `path`, `--option=path`, `@path`, `field=@path` and `host:path`."""
    yield argument
    if argument.startswith("-") and (glued := re.search(r"[/~].*", argument, re.DOTALL)):
        yield glued[0]
    for mark in ("=", "@", ":"):
        if mark in argument:
            yield argument.rpartition(mark)[2]
    if ":" in argument:
        yield argument.partition(":")[0]


def paths_in_code(code: str) -> list[str]:
    found = (
        each for each in _WORD_IN_CODE.findall(code[:MAX_CODE]) if not each.isalnum() and re.search(r"[/.~]", each)
    )
    return list(dict.fromkeys(found))[:MAX_PATHS]


def names_too_many(command: SimpleCommand) -> bool:
    """Return whether the command names more paths than are checked."""
    listed = command.stdin.count("\n") if command.stdin and _takes_list(command) else 0
    return len(command.argv) > 2 * MAX_PATHS or listed > MAX_PATHS


def _takes_list(command: SimpleCommand) -> bool:
    """Return whether the command takes names of files from a list."""
    return command.name in {"cpio", "pax"} or any(map(_LISTED_IN.match, command.argv[1:]))


def reads_unknown_list(command: SimpleCommand) -> bool:
    if command.name not in {"tar", "gtar", "bsdtar", "rsync", "cpio", "pax"}:
        return False
    fed = bool(command.feeders) and (command.stdin is None or UNKNOWN in command.stdin.replace(ANY_DEPTH, ""))
    return _takes_list(command) and (fed or any(each.startswith("/dev/fd/") for each in command.argv))


def trees_read(command: SimpleCommand) -> Iterator[str]:
    """Yield directories that are read, copied or served as a whole."""
    name, argv = command.name, command.argv
    if name in {"tar", "gtar", "bsdtar"}:
        if any(_CREATES.fullmatch(each) for each in argv[1:]):
            yield from _tar_members(argv)
        return
    if "http.server" in argv or "SimpleHTTPServer" in argv:
        yield from tuple(_values(argv, re.compile(r"(?:-d|--dir\w*=)(.+)", re.DOTALL), {"-d", "--directory"})) or (
            ".",
        )
        return
    pattern = _COPIES_TREE.get(name)
    if name not in _ALWAYS_TREE and not (pattern and any(pattern.fullmatch(each) for each in argv[1:])):
        return
    named = operands(command)
    if name in _PATTERN_FIRST or name == "ugrep":
        files = named[1:] if not {"-e", "-f", "--file", "--regexp"} & set(argv) else named
        yield from files or (".",)
    else:
        yield from named[:-1] if len(named) > 1 and name not in {"7z", "7za", "7zr", "zip", "rar"} else named
        if any(re.match(r"-[a-zA-Z]*t|--target", each) for each in argv[1:]):
            yield from named


def _tar_members(argv: tuple[str, ...]) -> Iterator[str]:
    directory = ""
    for index, argument in enumerate(argv[1:], 1):
        glued = re.fullmatch(r"(?:-C|--dir\w*=)(.+)", argument, re.DOTALL)
        if glued:
            directory = posixpath.join(directory, glued[1])
        elif argv[index - 1] in {"-C", "--directory", "--cd"}:
            directory = posixpath.join(directory, argument)
        elif not argument.startswith("-"):
            yield posixpath.join(directory, argument)


def only_lists(command: SimpleCommand) -> bool:
    return command.name in _LISTS
