"""Commands inside the arguments of programs that run other commands.

An option that is not in a wrapper's entry makes every rest of its arguments a possible command: guessing wrong then
costs a question, not a bypass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise, takewhile
from typing import TypeAlias

from hermes.domain.values import dataclass
from hermes.shell_policy.bash.syntax import ANY_DEPTH, UNKNOWN
from hermes.shell_policy.bash.wrapper_table import PROJECT_RUNNERS, RUN_SOMEHOW, RUNS_VALUE, WRAPPERS, Wrapper

SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "fish", "rbash", "csh", "tcsh", "pwsh"})

MAX_SUFFIX = 48  # arguments of a guess
MAX_GUESSES = 40
MAX_INPUTS = 16
MAX_FOUND = 32  # directories searched, times the names looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    """A command that the program runs, as an argv."""

    argv: tuple[str, ...]
    guess: bool = False  # it may only be an argument


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A text that a shell runs."""

    text: str
    positional: tuple[str, ...] = ()  # from `$0`


_SSH_VALUED = "bcDEeFIiJLlmOopQRSWw"
_PARALLEL_VALUED = frozenset(
    {"-j", "-a", "-n", "-N", "-L", "-S", "-d", "-C", "-I", "--jobs", "--arg-file", "--max-args", "--results"}
    | {"--joblog", "--delay", "--timeout", "--retries", "--colsep", "--sshlogin", "--workdir", "--tmpdir", "--load"}
)
_SSH_RUNS = re.compile(r"(?:ProxyCommand|LocalCommand|KnownHostsCommand)[= ](.*)", re.IGNORECASE | re.DOTALL)
_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_FIND_TESTS = frozenset(
    {"-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-mtime", "-mmin", "-atime", "-amin"}
    | {"-ctime", "-cmin", "-size", "-newer", "-user", "-group", "-perm", "-inum", "-links", "-lname", "-samefile"}
    | {"-empty"}
)
_FIND_NAMES = frozenset({"-name", "-iname"})
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_ASSIGNS = re.compile(r"[A-Za-z_]\w*\+?=", re.DOTALL)
_GIT_RUNS = re.compile(
    r"(?:alias\.[^=]*=!|(?:core\.(?:pager|editor|sshcommand|fsmonitor|hookspath|gitproxy)|pager\.\w+|sequence\.editor"
    r"|diff\.external|diff\.\w+\.command|credential\.helper|gpg\.program|uploadpack\.\w+|filter\.\w+\.\w+)=!?)(.*)",
    re.DOTALL | re.IGNORECASE,
)


def name_of(argv: tuple[str, ...]) -> str:
    return argv[0].rpartition("/")[2].lower() if argv else ""


def unwrap(argv: tuple[str, ...], stdin: str | None) -> Iterator[Inner | Script]:
    """Yield the commands that this one runs, as far as its arguments and known input show."""
    name, arguments = name_of(argv), argv[1:]
    yield from _values_run(name, arguments)
    unwrapper = _UNWRAPPERS.get(name)
    found = unwrapper(arguments, stdin) if unwrapper is not None else None
    if found is not None:
        yield from found
    elif _PYTHON.fullmatch(name) and "-m" in arguments[:3]:
        yield Inner(argv=arguments[arguments.index("-m") + 1 :])
    elif name in PROJECT_RUNNERS:
        yield from _runner(arguments)
    elif name in RUN_SOMEHOW:
        yield from _suffixes(arguments)
        yield from _texts(arguments)
    elif name in WRAPPERS:
        yield from _after_options(arguments, WRAPPERS[name])


def _trap(arguments: tuple[str, ...]) -> Iterator[Script] | None:
    if not arguments or arguments[0] in {"-l", "-p"}:
        return None
    return iter((Script(text=arguments[1] if arguments[0] == "--" and len(arguments) > 1 else arguments[0]),))


def _aliases(arguments: tuple[str, ...]) -> Iterator[Script]:
    return (Script(text=value) for _, equals, value in (each.partition("=") for each in arguments) if equals)


def _command_builtin(arguments: tuple[str, ...]) -> Iterator[Inner | Script]:
    if not (arguments and re.fullmatch(r"-[pvV]*[vV][pvV]*", arguments[0])):
        yield from _after_options(arguments, WRAPPERS["command"])


def _editor_commands(stdin: str | None) -> Iterator[Script]:
    return (Script(text=line.lstrip(" !")) for line in (stdin or "").split("\n") if line.startswith("!"))


def _ssh_options(arguments: tuple[str, ...]) -> Iterator[Inner | Script]:
    for argument in arguments:
        yield from _ssh_option(argument.removeprefix("-o"))


def _texts(arguments: tuple[str, ...]) -> Iterator[Script]:
    return (Script(text=argument) for argument in arguments if " " in argument)


def _suffixes(arguments: tuple[str, ...]) -> Iterator[Inner]:
    for index, argument in enumerate(arguments[:MAX_GUESSES]):
        if argument and not argument.startswith("-"):
            yield Inner(argv=arguments[index : index + MAX_SUFFIX], guess=True)
    if len(arguments) > MAX_GUESSES:
        yield Inner(argv=(UNKNOWN,))  # further arguments are not checked


def _after_options(arguments: tuple[str, ...], wrapper: Wrapper) -> Iterator[Inner | Script]:
    index = _command_at(arguments, wrapper)
    if index is None:
        yield from _suffixes(arguments)
        return
    index += wrapper.positional
    while wrapper.assignments and index < len(arguments) and _ASSIGNS.match(arguments[index]):
        index += 1
    rest = arguments[index:]
    if rest and wrapper.joined:
        yield Script(text=" ".join(rest))
    elif rest:
        yield Inner(argv=rest)


def _command_at(arguments: tuple[str, ...], wrapper: Wrapper) -> int | None:
    """Return the position after the options; None if an option is not known."""
    index = 0
    while index < len(arguments):
        argument = arguments[index]
        if argument == "--":
            return index + 1
        if not argument.startswith("-") or argument == "-":
            return index
        index += 1
        if argument.startswith("--"):
            option, equals, _ = argument[2:].partition("=")
            if option in wrapper.long_valued:
                index += not equals
            elif option not in wrapper.long_flags:
                return None
        else:
            taken = _short_options(argument[1:], wrapper)
            if taken is None:
                return None
            index += taken
    return index


def _short_options(letters: str, wrapper: Wrapper) -> int | None:
    """Return the number of further arguments that these letters take."""
    for position, letter in enumerate(letters):
        if letter in wrapper.valued:
            return 0 if position + 1 < len(letters) else 1
        if letter not in wrapper.flags:
            return None
    return 0


def _env(arguments: tuple[str, ...]) -> Iterator[Inner | Script]:
    for index, argument in enumerate(arguments):
        for option in ("-S", "--split-string=", "-vS", "-iS"):
            if argument.startswith(option):
                rest = (argument[len(option) :], *arguments[index + 1 :])
                yield Script(text=" ".join(rest))
        if argument == "--split-string":
            yield Script(text=" ".join(arguments[index + 1 :]))
    if arguments[:1] == ("-",):
        arguments = arguments[1:]
    yield from _after_options(arguments, WRAPPERS["env"])


def _xargs(arguments: tuple[str, ...], stdin: str | None) -> Iterator[Inner | Script]:
    given = tuple(stdin.split()) if stdin is not None else (UNKNOWN,)
    mark = ""
    for index, argument in enumerate(arguments):
        if argument.startswith("-I"):
            mark = argument[2:] or (arguments[index + 1] if index + 1 < len(arguments) else "")
        elif argument in {"-i", "--replace"}:
            mark = "{}"
        elif argument.startswith(("--replace=", "-i")):
            mark = argument.partition("=")[2] or argument[2:]
    for inner in _after_options(arguments, WRAPPERS["xargs"]):
        if isinstance(inner, Inner):
            argv = inner.argv
            marked = tuple(each.replace(mark, " ".join(given)) for each in argv) if mark else argv
            yield Inner(argv=marked if mark else (*argv, *given), guess=inner.guess)


def _parallel(arguments: tuple[str, ...], stdin: str | None) -> Iterator[Inner | Script]:
    index = 0
    while index < len(arguments) and arguments[index].startswith("-"):
        index += 2 if arguments[index] in _PARALLEL_VALUED else 1
    rest = arguments[index:]
    separators = [at for at, argument in enumerate(rest) if argument in {":::", "::::", ":::+"}]
    command = rest[: separators[0]] if separators else rest
    inputs = rest[separators[0] + 1 :] if separators else tuple((stdin or UNKNOWN).split("\n"))
    text = " ".join(command)
    if len(inputs) > MAX_INPUTS:
        yield Inner(argv=(UNKNOWN,))
    for value in inputs[:MAX_INPUTS]:
        if not command:
            yield Script(text=value)
        elif "{}" in text:
            yield Script(text=text.replace("{}", value))
        else:
            yield Script(text=f"{text} {value}")


def find_roots(arguments: tuple[str, ...]) -> list[str]:
    """Return the directories that `find` searches; empty: the current one."""
    begun = takewhile(lambda each: each in {"-H", "-L", "-P"} or not each.startswith(("-", "(", "!")), arguments)
    return [each for each in begun if not each.startswith("-")]


def found_paths(name: str, arguments: tuple[str, ...]) -> list[str]:
    """Return the paths that `find` and `fd` print, with unknown parts."""
    roots = find_roots(arguments)
    options = list(pairwise((*arguments, "")))
    names = [value for option, value in options if option in _FIND_NAMES and value not in {"*", "**", ".*"}]
    if name.startswith("fd"):
        names, roots = [f"*{each}*" for each in roots[:1]], roots[1:]
    narrowed = any(option in _FIND_TESTS and value not in {"*", "**", ".*"} for option, value in options)
    tails = [f"/{each}" for each in names] or ([f"/{UNKNOWN}"] if narrowed else [""])
    if len(roots) * len(tails) > MAX_FOUND:
        return [UNKNOWN]
    return [f"{root.rstrip('/')}/{ANY_DEPTH}{tail}" for root in roots or ["."] for tail in tails]


def _find(name: str, arguments: tuple[str, ...]) -> Iterator[Inner]:
    found = found_paths(name, arguments)
    for index, argument in enumerate(arguments):
        if argument in _FIND_RUNS or argument in {"-x", "-X", "--exec", "--exec-batch"}:
            command = list(takewhile(lambda each: each not in {";", "+"}, arguments[index + 1 :]))
            if name.startswith("fd") and "{" not in "".join(command):
                command.append("{}")
            for place in found:
                yield Inner(argv=tuple(each.replace("{}", place) for each in command))


def _ssh(arguments: tuple[str, ...]) -> Iterator[Inner | Script]:
    index = 0
    while index < len(arguments) and arguments[index].startswith("-") and arguments[index] != "--":
        argument = arguments[index]
        index += 1
        if argument[1:2] in _SSH_VALUED:
            value = argument[2:] or (arguments[index] if index < len(arguments) else "")
            index += not argument[2:]
            yield from _ssh_option(value)
    rest = tuple(each for each in arguments[index:] if each != "--")[1:]
    if rest:
        yield Script(text=" ".join(rest))


def _ssh_option(value: str) -> Iterator[Script]:
    if found := _SSH_RUNS.match(value):
        yield Script(text=found[1])


def _git_verbs(arguments: tuple[str, ...]) -> Iterator[Inner | Script]:
    for index, argument in enumerate(arguments):
        if argument == "foreach":
            yield Script(text=" ".join(each for each in arguments[index + 1 :] if each != "--recursive"))
        elif argument == "run" and "bisect" in arguments[:index]:
            yield Inner(argv=arguments[index + 1 :])
        elif argument.startswith("ext::"):
            yield Script(text=argument.removeprefix("ext::"))
        elif (argument == "-u" and "clone" in arguments[:index]) or (
            argument.startswith("--") and argument.endswith("-filter")
        ):
            yield from (Script(text=each) for each in arguments[index + 1 : index + 2])


def _runner(arguments: tuple[str, ...]) -> Iterator[Inner]:
    for index, argument in enumerate(arguments):
        if argument in {"run", "exec", "develop", "-c", "--run", "--command"}:
            yield from _suffixes(arguments[index + 1 :])
            return


def _values_run(name: str, arguments: tuple[str, ...]) -> Iterator[Script]:
    for argument, following in pairwise((*arguments, "")):
        for option in RUNS_VALUE.get(name, ()):
            given, equals, value = argument.partition("=")
            if argument == option:
                yield Script(text=following.removeprefix("exec="))
            elif option.startswith("--") and len(given) > 3 and option.partition("=")[0].startswith(given):
                yield Script(text=(value if equals else following).removeprefix("exec="))
            elif len(option) == 2 and argument.startswith(option) and not argument.startswith("--"):
                yield Script(text=argument[2:])
        if name in {"mapfile", "readarray"} and re.fullmatch(r"-[a-z]*C.*", argument, re.DOTALL):
            yield Script(text=argument.partition("C")[2] or following)
        if name in {"su", "runuser"} and re.fullmatch(r"-[a-z]*c", argument):
            yield Script(text=following)
        if name == "git" and (found := _GIT_RUNS.match(_git_setting(argument, following))):
            yield Script(text=found[1])
        if name in {"vim", "vi", "nvim", "view", "ex", "less", "more", "gdb", "lldb"}:
            text = argument if "!" in argument or "shell" in argument else ""
            if found := re.search(r"(?:!|\bshell\b|system\()\s*['\"]?([^'\"]*)", text):
                yield Script(text=found[1])


def _git_setting(argument: str, following: str) -> str:
    """Yield the settings of `-c name=value` and `config name value`."""
    return argument if "=" in argument else f"{argument}={following}"


_Found: TypeAlias = Iterator[Inner | Script] | Iterator[Inner] | Iterator[Script] | None
# Programs with their own way to run commands. None: the general tables decide.
_UNWRAPPERS: dict[str, Callable[[tuple[str, ...], str | None], _Found]] = {
    "eval": lambda arguments, _: iter((Script(text=" ".join(arguments)),)),
    "trap": lambda arguments, _: _trap(arguments),
    "alias": lambda arguments, _: _aliases(arguments),
    "command": lambda arguments, _: _command_builtin(arguments),
    "env": lambda arguments, _: _env(arguments),
    **dict.fromkeys(("xargs", "gxargs"), _xargs),
    "parallel": _parallel,
    **dict.fromkeys(("find", "gfind"), lambda arguments, _: _find("find", arguments)),
    **dict.fromkeys(("fd", "fdfind"), lambda arguments, _: _find("fd", arguments)),
    **dict.fromkeys(("ssh", "mosh", "slogin", "autossh"), lambda arguments, _: _ssh(arguments)),
    **dict.fromkeys(("ed", "ex", "red"), lambda _, stdin: _editor_commands(stdin)),
    "git": lambda arguments, _: _git_verbs(arguments),
    **dict.fromkeys(("scp", "sftp", "sshfs"), lambda arguments, _: _ssh_options(arguments)),
    **dict.fromkeys(("bind", "complete", "compgen"), lambda arguments, _: _texts(arguments)),
    "runuser": lambda arguments, _: None if "-c" in arguments else _suffixes(arguments),
    **dict.fromkeys(("at", "batch"), lambda _, stdin: None if stdin is None else iter((Script(text=stdin),))),
}
