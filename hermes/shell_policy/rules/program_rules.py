"""Dangers of options, git settings and variables that decide what programs run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from hermes.shell_policy.bash.options import parse_options
from hermes.shell_policy.bash.syntax import UNKNOWN
from hermes.shell_policy.finding import Case, Finding
from hermes.shell_policy.rules.program_table import PROGRAMS
from hermes.shell_policy.rules.rule_table import GIT_SETTINGS, GIT_VERBS
from hermes.shell_policy.rules.table_rules import git_words
from hermes.shell_policy.rules.variable_table import decides_what_runs, is_makefile_program

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
_SETS_VARIABLES = frozenset({"export", "declare", "typeset", "env", "sudo", "readonly", "local", "setenv", "exec"})
_NAMES_VARIABLES = frozenset(
    {"export", "declare", "typeset", "readonly", "local", "read", "mapfile", "readarray", "printf", "getopts"}
)
_GIT_SETTING = re.compile(GIT_SETTINGS, re.IGNORECASE | re.DOTALL)


def program_rules(case: Case) -> Iterator[Finding]:
    yield from _variables(case)
    if case.command.guess or not case.arguments:
        return
    yield from _options(case)
    if case.name == "git":
        yield from _git_settings(case)
    if case.name in {"make", "gmake"}:
        yield from _makefile_variables(case)


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
    given = [value for option, value in pairwise(arguments) if option == "-c" and option not in words]
    given += [each[2:] for each in arguments if each.startswith("-c") and len(each) > 2 and each not in words]
    if verb == "config":
        given += _configured(words[1:])
    elif verb == "clone":
        given += [value for option, value in pairwise(words) if option in {"-c", "--config"}]
    for setting in given:
        name = setting.partition("=")[0]
        if not _GIT_SETTING.fullmatch(name) and not _GIT_SETTING.fullmatch(setting):
            yield Finding(rule="git-config", why=f"sets {name[:60]}, which may change what git runs")
    if verb == "config" and {"--global", "--system"} & set(words) and given:
        yield Finding(rule="git-config", why="changes git for every project of this user")
    if verb and verb not in GIT_VERBS:
        yield Finding(rule="git-config", why=f"runs `git {verb[:40]}`, which may be an alias or a program")
    if verb in {"push", "fetch", "pull", "clone", "ls-remote"}:
        yield from _git_addresses(verb, words)


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
        if verb == "push" and re.match(r"\w[\w+.-]*://|[\w.-]+@?[\w.-]*:[^:]|\.\.?/|/", each):
            yield Finding(rule="git-remote", why="sends commits to an address that is not a remote of this project")
        elif UNKNOWN in each and verb != "push":
            yield Finding(rule="git-remote", why="uses an address that is only known at run time")


def _makefile_variables(case: Case) -> Iterator[Finding]:
    for argument in case.arguments:
        name, equals, value = argument.partition("=")
        if equals and is_makefile_program(name, value):
            yield Finding(rule="code-injection", why=f"replaces {name}, a program that recipes run")


def _variables(case: Case) -> Iterator[Finding]:
    assigned = list(case.command.assignments)
    if case.name in _SETS_VARIABLES:
        assigned += [
            (name, value) for name, equals, value in (each.partition("=") for each in case.arguments) if equals
        ]
    if case.name in _NAMES_VARIABLES:
        assigned += [(each, UNKNOWN) for each in case.arguments if each != "IFS"]
    for name, value in assigned:
        if decides_what_runs(name, None if UNKNOWN in value else value):
            yield Finding(rule="code-injection", why=f"sets {name}, which decides what other programs run or trust")
