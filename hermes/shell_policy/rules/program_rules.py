"""Dangers from the tables of programs, options and variables."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes.shell_policy.bash.options import parse_options
from hermes.shell_policy.bash.syntax import UNKNOWN
from hermes.shell_policy.finding import Case, Finding
from hermes.shell_policy.rules.asked_table import (
    ARGUMENTS_ASKED,
    GIT_SETTINGS,
    GIT_VERBS,
    PROGRAMS_ASKED,
    PROJECT_TOOLS,
    VERBS_ASKED,
)
from hermes.shell_policy.rules.program_table import PROGRAMS
from hermes.shell_policy.rules.variable_table import decides_what_runs, is_makefile_program

_ASKED = {name: (rule, why) for rule, why, names in PROGRAMS_ASKED for name in names}
_ARGUMENTS = {
    name: tuple((re.compile(pattern, re.DOTALL), rule, why) for pattern, rule, why in table)
    for name, table in ARGUMENTS_ASKED.items()
}
_OPTION_RULES = (
    ("runs", "code-injection", "runs or loads a program named by the option {}"),
    ("deletes", "recursive-delete", "deletes files with the option {}"),
    ("sends", "data-upload", "sends data, or changes its destination, with the option {}"),
)
_HARMLESS_OPTION = {
    "make": re.compile(r"I=.*"),
    "pytest": re.compile(r"p=no:\S+|c=(?:pytest\.ini|pyproject\.toml|setup\.cfg|tox\.ini)"),
    "go": re.compile(r"exec=.*env .*"),
    "git": re.compile(r"(?:c|O|x|f)=.*"),  # judged by its verb and by the table of settings
    "perl": re.compile(r"M=(?:strict|warnings|utf8|JSON(?:::PP)?|List::Util|POSIX|Data::Dumper)(?:=[\w,]+)?"),
    "ruby": re.compile(r"r=(?:json|yaml|set|time|date|bundler/setup)"),
    "cmake": re.compile(r"E=(?:echo|capabilities)"),
    "npm": re.compile(r"registry=https://registry\.(?:npmjs\.org|yarnpkg\.com)/?"),
    "curl": re.compile(r"x=|interface=\w*"),
    "man": re.compile(r"P=(?:cat|less|more)|pager=(?:cat|less|more)"),
    "vim": re.compile(r"c=(?::?(?:q|qa|wq|x)!?)"),
    "nvim": re.compile(r"c=(?::?(?:q|qa|wq|x)!?)"),
}
_ONLY_ASKS = frozenset({"--help", "--version", "-V", "-h", "help"})
_SETS_VARIABLES = frozenset({"export", "declare", "typeset", "env", "sudo", "readonly", "local", "setenv", "exec"})
_NAMES_VARIABLES = frozenset(
    {"export", "declare", "typeset", "readonly", "local", "read", "mapfile", "readarray", "printf", "getopts"}
)
_GIT_SETTING = re.compile(GIT_SETTINGS, re.IGNORECASE | re.DOTALL)
_GIT_RUNS_CONFIG = re.compile(r"(?:ext|fd)::|protocol\.(?:\w+\.)?allow")


def table_rules(case: Case) -> Iterator[Finding]:
    yield from _variables(case)
    if case.command.guess or not case.arguments:
        if case.name in _ASKED and not case.command.guess:
            yield Finding(rule=_ASKED[case.name][0], why=_ASKED[case.name][1])
        return
    if case.name in _ASKED and not _only_asks(case):
        yield Finding(rule=_ASKED[case.name][0], why=_ASKED[case.name][1])
    yield from _verbs(case)
    yield from _options(case)
    yield from _arguments(case)
    if case.name == "git":
        yield from _git_settings(case)
    if case.name in {"make", "gmake"}:
        yield from _makefile_variables(case)


def _only_asks(case: Case) -> bool:
    if (len(case.arguments) == 1 and case.arguments[0] in _ONLY_ASKS) or (
        case.name == "mount" and case.arguments == ("-l",)
    ):
        return True
    return case.name in {"npx", "uvx", "bunx"} and case.arguments[0] in PROJECT_TOOLS


def words_of(case: Case) -> tuple[str, ...]:
    """Return the arguments that are neither options nor their values."""
    program = PROGRAMS.get(case.name)
    if program is None:
        return tuple(each for each in case.arguments if not each.startswith("-"))
    return tuple(value for name, value in parse_options(case.arguments, program) if not name)


def _verbs(case: Case) -> Iterator[Finding]:
    table = VERBS_ASKED.get("pip" if re.fullmatch(r"pip[\d.]+", case.name) else case.name)
    if not table:
        return
    given = words_of(case)
    plain = tuple(each for each in case.arguments if not each.startswith("-"))
    for pattern, rule, why in table:
        if (
            any(_matches(pattern, each) for each in {given, plain, plain[1:]})
            or pattern.partition("|")[0] in case.arguments[:1]
        ):
            yield Finding(rule=rule, why=why)


def _arguments(case: Case) -> Iterator[Finding]:
    for pattern, rule, why in _ARGUMENTS.get(case.name, ()):
        if any(pattern.fullmatch(each) for each in case.arguments):
            yield Finding(rule=rule, why=why)


def _matches(pattern: str, given: tuple[str, ...]) -> bool:
    """Return whether the words match `a|b c|d`: one of the first, then one of the second. ` +`: any second word."""
    first, _, second = pattern.partition(" ")
    if not given:
        return False
    if " +" in pattern:
        for alternative in pattern.split("|"):
            verb, _, more = alternative.partition(" ")
            if given[0] == verb and (not more or len(given) > 1):
                return True
        return False
    if given[0] not in first.split("|"):
        return False
    return not second or (len(given) > 1 and (second == "*" or given[1] in second.split("|")))


def _options(case: Case) -> Iterator[Finding]:
    program = PROGRAMS.get(case.name)
    if program is None:
        return
    harmless = _HARMLESS_OPTION.get(case.name)
    for name, value in parse_options(case.arguments, program):
        if not name or (harmless and harmless.fullmatch(f"{name}={value}")):
            continue
        shown = f"-{name}" if len(name) == 1 or program.single_dash else f"--{name}"
        for field, rule, why in _OPTION_RULES:
            if name in getattr(program, field):
                yield Finding(rule=rule, why=why.format(shown))
        if case.name in {"ssh", "scp", "sftp", "autossh"} and name == "o":
            yield from _ssh_option(value)
        if case.name == "zip" and name == "T" and "T" in value[:1]:
            yield Finding(rule="code-injection", why="runs a program named by the option -TT")


_SSH_HARMLESS = re.compile(
    r"(?:StrictHostKeyChecking|ConnectTimeout|BatchMode|ServerAlive\w+|LogLevel|Port|User|IdentitiesOnly|Compression"
    r"|ConnectionAttempts|PreferredAuthentications|HostKeyAlgorithms|TCPKeepAlive|IdentityFile)[= ].*",
    re.IGNORECASE | re.DOTALL,
)


def _ssh_option(value: str) -> Iterator[Finding]:
    if not _SSH_HARMLESS.fullmatch(value):
        yield Finding(rule="code-injection", why=f"sets {value.partition('=')[0][:40]}, which may run a program")


def _git_settings(case: Case) -> Iterator[Finding]:
    arguments = case.arguments
    words = git_words(arguments)
    verb = words[0] if words else ""
    given = [arguments[at + 1] for at, each in enumerate(arguments[:-1]) if each == "-c" and each not in words]
    given += [each[2:] for each in arguments if each.startswith("-c") and len(each) > 2 and each not in words]
    if verb in {"config", "clone"}:
        given += (
            _configured(words[1:])
            if verb == "config"
            else [words[at + 1] for at, each in enumerate(words[:-1]) if each in {"-c", "--config"}]
        )
    for setting in given:
        if not _GIT_SETTING.fullmatch(setting.partition("=")[0]) and not _GIT_SETTING.fullmatch(setting):
            yield Finding(
                rule="git-config", why=f"sets {setting.partition('=')[0][:60]}, which may change what git runs"
            )
    if verb == "config" and {"--global", "--system"} & set(words) and given:
        yield Finding(rule="git-config", why="changes git for every project of this user")
    if any(each.startswith(("--config-env", "--exec-path=", "--git-dir", "--super-prefix")) for each in arguments):
        yield Finding(rule="git-config", why="uses settings or programs from another place")
    if "--bare" in arguments and arguments[0] == "-C":
        yield Finding(rule="git-config", why="uses settings from a directory that is not checked")
    if verb and verb not in GIT_VERBS:
        yield Finding(rule="git-config", why=f"runs `git {verb[:40]}`, which may be an alias or a program")
    if verb in {"push", "fetch", "pull", "clone", "ls-remote"}:
        yield from _git_addresses(verb, words)
    if verb == "init" and any(each.startswith("--template") for each in words):
        yield Finding(rule="git-config", why="copies hooks from a template")
    if verb in {"am", "apply"} and any(each.startswith(("--unsafe-paths", "--directory=..")) for each in words):
        yield Finding(rule="outside-write", why="may write outside the working directory")


def _configured(words: tuple[str, ...]) -> list[str]:
    """Return `name=value` of what `git config` sets."""
    plain = [each for each in words if not each.startswith("-")]
    if plain[:1] in (["set"], ["add"], ["replace-all"]):
        plain = plain[1:]
    elif plain[:1] in (["get"], ["list"], ["unset"], ["remove-section"]):
        return []
    if any(each.startswith(("-f", "--file")) for each in words):
        plain = plain[1:] if "-f" in words or "--file" in words else plain
    if {"--get", "--get-all", "--get-regexp", "-l", "--list", "--unset"} & set(words):
        return []
    return [f"{plain[0]}={plain[1]}"] if len(plain) > 1 else []


def _git_addresses(verb: str, words: tuple[str, ...]) -> Iterator[Finding]:
    for each in words[1:]:
        if _GIT_RUNS_CONFIG.match(each):
            yield Finding(rule="code-injection", why="lets a repository address run a program")
        elif verb == "push" and re.match(r"\w[\w+.-]*://|[\w.-]+@?[\w.-]*:[^:]|\.\.?/|/", each):
            yield Finding(rule="git-remote", why="sends commits to an address that is not a remote of this project")
        elif UNKNOWN in each and verb != "push":
            yield Finding(rule="git-remote", why="uses an address that is only known at run time")


def git_words(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return git's verb and everything after it."""
    index = 0
    valued = {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix"}
    while index < len(arguments) and arguments[index].startswith("-"):
        index += 2 if arguments[index] in valued else 1
    return arguments[index:]


def _makefile_variables(case: Case) -> Iterator[Finding]:
    for argument in case.arguments:
        name, equals, value = argument.partition("=")
        if equals and is_makefile_program(name, value):
            yield Finding(rule="code-injection", why=f"replaces {name}, a program that recipes run")
    if any(re.fullmatch(r"-[a-zA-Z]*e[a-zA-Z]*|--environment-overrides", each) for each in case.arguments):
        yield Finding(rule="code-injection", why="lets the environment replace the programs that recipes run")


def _variables(case: Case) -> Iterator[Finding]:
    assigned = list(case.command.assignments)
    if case.name in _SETS_VARIABLES:
        assigned += [
            (name, value) for name, equals, value in (each.partition("=") for each in case.arguments) if equals
        ]
    for name, value in assigned:
        if decides_what_runs(name, None if UNKNOWN in value else value):
            yield Finding(rule="code-injection", why=f"sets {name}, which decides what other programs run or trust")
    if case.name in _NAMES_VARIABLES:
        for each in case.arguments:
            if each != "IFS" and decides_what_runs(each, None):
                yield Finding(
                    rule="code-injection", why=f"sets {each}, which decides what other programs run or trust"
                )
    if case.name == "set" and any(re.fullmatch(r"-[a-z]*a[a-z]*|allexport", each) for each in case.arguments):
        yield Finding(rule="code-injection", why="exports every variable that is set later")
