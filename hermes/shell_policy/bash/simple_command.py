"""Simple command as it would run, and what is known about it alone."""

from __future__ import annotations

import re

from hermes.domain.values import dataclass, replace
from hermes.shell_policy.bash.expansion import static_output
from hermes.shell_policy.bash.syntax import ANY_DEPTH, UNKNOWN, Simple
from hermes.shell_policy.bash.wrapper import found_paths, name_of

_GLOB = re.compile(r"[*?]|\[.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirection:
    operator: str
    target: str  # of a here-document: its text


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleCommand:
    argv: tuple[str, ...]
    written: str
    cwd: str
    redirections: tuple[Redirection, ...] = ()
    assignments: tuple[tuple[str, str], ...] = ()
    stdin: str | None = None  # its input, if known
    feeders: tuple[str, ...] = ()  # names of the commands whose output it reads
    unresolved: str = ""  # why the program is not known
    guess: bool = False  # it may only be an argument
    runs_file: str | None = None  # known text of a file that it runs; UNKNOWN: the line wrote the file

    @property
    def name(self) -> str:
        return name_of(self.argv)


def interprets(name: str) -> bool:
    """Return whether the program is an interpreter other than a shell."""
    return bool(re.match(r"(?:python|perl|ruby|node|php|lua|deno|bun)", name))


def resolved(command: SimpleCommand, runs_file: str | None) -> SimpleCommand:
    """Return the command with what is known about the program that runs."""
    name = command.argv[0] if command.argv else ""
    unresolved = command.unresolved
    if command.guess:
        unresolved = ""
    elif UNKNOWN in name:
        unresolved = "its name is only known at run time"
    elif name not in {"[", "[["} and _GLOB.search(name):
        unresolved = "its name is a pattern"
    if unresolved == command.unresolved and runs_file is None:
        return command
    return replace(command, unresolved=unresolved, runs_file=runs_file)


def printed_by(command: Simple, ran: list[SimpleCommand]) -> str | None:
    """Return the known output of the command, or of the command it wraps."""
    own = (_output_of(each) for each in ran if each.written == command.written)
    return next((printed for printed in own if printed is not None), None)


def _output_of(command: SimpleCommand) -> str | None:
    if command.name in {"find", "gfind", "fd", "fdfind"} and not {"-exec", "-printf", "-x", "-X"} & set(command.argv):
        return "\n".join(found_paths(command.name, command.argv[1:]))
    if command.name == "pwd":
        return command.cwd
    if (listed := _listed_by(command.name, command.argv[1:], command.cwd)) is not None:
        return listed
    return static_output(command.argv, command.stdin)


_SOMEWHERE = f"/{ANY_DEPTH}/{UNKNOWN}"  # below a directory
# mktemp never returns a name that exists. `/tmp/*` would match the links that other programs keep in /tmp.
_FRESH_FILE = "/tmp/tmp.??????????"  # noqa: S108 - a pattern
_DATE = re.compile(r"-u|--utc|-I\w*|\+[%\w:.+-]*")


def _listed_by(name: str, arguments: tuple[str, ...], cwd: str) -> str | None:
    """Return the names that a command prints, as patterns or as paths below a directory; None if unknown."""
    plain = [each for each in arguments if not each.startswith("-")]
    match name:
        case "mktemp" if all(re.fullmatch(r"-d|-q|--directory", each) for each in arguments):
            return _FRESH_FILE
        case "date" if arguments and all(map(_DATE.fullmatch, arguments)):
            return "*"
        case "nproc":
            return "[0-9]*"
        case "git" if arguments[:2] == ("rev-parse", "--show-toplevel"):
            return cwd
        case "git" if arguments[:1] == ("ls-files",) or "--name-only" in arguments:
            return f".{_SOMEWHERE}"
        case "ls" if not {"-R", "-l"} & set(arguments):
            hidden = [".*"] if any(re.fullmatch(r"-\w*[aA]\w*", each) for each in arguments) else []
            return "\n".join(["*", *hidden, *plain])
        case "rg" | "grep" if any(re.fullmatch(r"-\w*l\w*|--files(?:-with-matches)?", each) for each in arguments):
            return "\n".join(f"{each.rstrip('/')}{_SOMEWHERE}" for each in plain[1:] or ["."])
    return None


def shell_argument(argv: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """Return the text after a shell's `-c` and the text's arguments."""
    has_text, index = False, 1
    while index < len(argv):
        argument = argv[index]
        if argument in {"-", "--"}:
            index += 1
            break
        if not argument.startswith(("-", "+")):
            break
        index += 1
        if argument in {"--rcfile", "--init-file"}:
            index += 1
        elif argument in {"--command", "-Command", "-EncodedCommand"}:
            has_text = True
        elif not argument.startswith("--"):
            has_text = has_text or "c" in argument
            index += argument.count("o") + argument.count("O")
    if has_text and index < len(argv):
        return argv[index], argv[index + 1 :]
    return None, ()
