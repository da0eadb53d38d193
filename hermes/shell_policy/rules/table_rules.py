"""Findings from the tables of rules: a program, and conditions on its verbs and arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from hermes.domain.values import dataclass
from hermes.shell_policy.bash.options import parse_options
from hermes.shell_policy.bash.text_table import entries
from hermes.shell_policy.finding import Case, Finding
from hermes.shell_policy.rules.program_table import PROGRAMS
from hermes.shell_policy.rules.rule_table import ASKED, BLOCKED, PROJECT_TOOLS

_Test: TypeAlias = Callable[[Case], bool]

_HEADER = re.compile(r"([a-z\d-]+): (.+)")
_ENTRY = re.compile(r"([\w.+ -]+?)(?: ((?:/|!?=|\?|~|:|\+).*))?")
_VERSIONED = re.compile(r"(pip)[\d.]+|(mkfs)\.\w+")  # programs that the tables name without their version or kind
_ONLY_ASKS = frozenset({"--help", "--version", "-V", "-h", "help"})
_GIT_VALUED = {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """A finding about a program, if all tests hold."""

    finding: Finding
    tests: tuple[_Test, ...]


def blocked_by_table(case: Case) -> Iterator[Finding]:
    yield from find_rules(_BLOCKED, case)


def asked_by_table(case: Case) -> Iterator[Finding]:
    yield from find_rules(_ASKED, case)


def find_rules(table: dict[str, list[RuleRow]], case: Case) -> Iterator[Finding]:
    """Yield the findings of a table about a command."""
    found = _VERSIONED.fullmatch(case.name)
    for row in table.get(case.name, table.get(found[1] or found[2], ()) if found else ()):
        if all(test(case) for test in row.tests):
            yield row.finding


def git_words(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return git's verb and everything after it."""
    index = 0
    while index < len(arguments) and arguments[index].startswith("-"):
        index += 2 if arguments[index] in _GIT_VALUED else 1
    return arguments[index:]


def _verbs(case: Case) -> Iterator[tuple[str, ...]]:
    """Yield what may be the verb with everything after it: options with values are not always known."""
    if case.name == "git":
        yield git_words(case.arguments)
        return
    plain = [index for index, each in enumerate(case.arguments) if not each.startswith("-")]
    if program := PROGRAMS.get(case.name):
        first = next((value for name, value in parse_options(case.arguments, program) if not name), None)
        if first in case.arguments:
            plain.insert(0, case.arguments.index(first))
    yield from (case.arguments[index:] for index in dict.fromkeys(plain[: 3 if program else 2]))


# Conditions


def _is_used(case: Case) -> bool:
    if case.command.guess or (len(case.arguments) == 1 and case.arguments[0] in _ONLY_ASKS):
        return False
    if case.name == "mount" and case.arguments == ("-l",):
        return False
    return not (case.name in {"npx", "uvx", "bunx"} and case.arguments and case.arguments[0] in PROJECT_TOOLS)


def _condition(text: str) -> _Test:
    kind, _, operand = text.partition(" ")
    if kind == "+":
        return lambda case: bool(case.arguments)
    if kind == ":":
        return lambda case: case.has(*operand.split())
    if kind == "/":
        return _verb_condition(operand)
    pattern = re.compile(operand, re.DOTALL)
    match kind:
        case "=":
            return lambda case: any(map(pattern.fullmatch, case.arguments))
        case "!=":
            return lambda case: not any(map(pattern.fullmatch, case.arguments))
        case "?":
            return lambda case: any(map(pattern.fullmatch, (*case.arguments[:4], *_plain(case)[:3])))
        case _:
            return lambda case: bool(pattern.search(" ".join(case.arguments)))


def _plain(case: Case) -> list[str]:
    return [each for each in case.arguments if not each.startswith("-")]


def _verb_condition(operand: str) -> _Test:
    first, _, later = operand.partition(" ")
    verb, negated = re.compile(first), later.startswith("!")
    rest = re.compile(later.removeprefix("!"), re.DOTALL) if later else None

    def holds(words: tuple[str, ...]) -> bool:
        if not words or not verb.fullmatch(words[0]):
            return False
        return rest is None or any(map(rest.fullmatch, words[1:])) is not negated

    return lambda case: any(map(holds, _verbs(case)))


def parse_table(text: str) -> dict[str, list[RuleRow]]:
    """Return the rows of a table by program. Raises ValueError or re.error for a malformed entry."""
    table: dict[str, list[RuleRow]] = {}
    finding = Finding(rule="", why="")
    for entry in entries(text):
        if header := _HEADER.fullmatch(entry):
            finding = Finding(rule=header[1], why=header[2])
        elif parts := _ENTRY.fullmatch(entry):
            tests = tuple(map(_condition, parts[2].split(" & "))) if parts[2] else (_is_used,)
            for name in parts[1].split():
                table.setdefault(name, []).append(RuleRow(finding=finding, tests=tests))
        else:
            raise ValueError(entry)
    return table


_ASKED = parse_table(ASKED)
_BLOCKED = parse_table(BLOCKED)
