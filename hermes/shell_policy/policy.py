"""Whether a command line or a path may be used: blocked, asked about, or allowed.

A deny glob of the owner wins over everything. Then come catastrophes, blocked in every mode. Then dangers: asked
about, unless the mode is off or every rule they fall under was granted. A line that cannot be followed, or a command
whose name is only known when it runs, is a danger. Everything is decided on the parsed commands, never on the text;
only of a line that does not parse are the pieces looked at as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Literal

from hermes.domain.types import Gate, Verdict
from hermes.domain.visible_text import hidden_characters
from hermes.shell_policy.bash.command_line import CommandLine, parse_command_line
from hermes.shell_policy.bash.simple_command import SimpleCommand
from hermes.shell_policy.bash.syntax import UNKNOWN
from hermes.shell_policy.deny_list import SAYS_ONLY, denied_by
from hermes.shell_policy.file_access import paths_in_code
from hermes.shell_policy.finding import Case, Finding
from hermes.shell_policy.own_daemon import code_talks_to_daemon
from hermes.shell_policy.protected_path import (
    Kind,
    LookupContext,
    OwnAddress,
    absolute,
    is_critical,
    kinds_of,
    no_links,
)
from hermes.shell_policy.rules.catastrophe import catastrophes
from hermes.shell_policy.rules.danger import dangers, inline_code
from hermes.shell_policy.rules.inline_code import read_code
from hermes.shell_policy.severity import severity
from hermes.shell_policy.workspace import is_outside, workspace_of

_MAX_SHOWN = 120
_MAX_REASONS = 3  # in one line
_MAX_FINDINGS = 100
_MAX_PIECES = 400
_PIECE_END = re.compile(r"[;&|\n(){}`]+|\b(?:then|do|else)\b")
_WORTH_A_LOOK = re.compile(
    r"rm|mkfs\S*|dd|shutdown|reboot|halt|poweroff|init|kill|pkill|killall|hermes|systemctl|find|chmod|mv|tee"
)
_BRACKETED = re.compile(r"\[(\w)\]")  # `grep [h]ermes` does not find itself
_QUOTES = re.compile(r"['\"\\]")
# Names that a pattern or half-known command name is tried for.
_WORST = ("rm", "mkfs", "dd", "shutdown", "reboot", "halt", "poweroff", "kill", "tee", "cat", "chmod", "find", "mv")

# What these cover is not known before it runs, so that leave for longer would be leave for anything.
_ONCE_ONLY = frozenset({"unresolved-command", "unparsable-line", "embedded-command", "pipe-to-shell"})
_ONCE_ONLY |= {"unknown-path", "hidden-characters"}


# Damage that a sandbox cannot prevent, since it happens in the working directory.
_LOSES_WORK = frozenset(
    {"git-branch-delete", "git-clean", "git-discard", "git-force-push", "git-reset-hard", "git-rewrite"}
)

_USUAL = OwnAddress()


def decide(
    command: str,
    *,
    cwd: str,
    home: str,
    deny: Sequence[str],
    mode: Literal["manual", "off"],
    granted: Collection[str],
    hermes_home: str = "",
    work: str = "",
    targets: Callable[[str], tuple[str, ...]] = no_links,
    own: OwnAddress = _USUAL,
    secrets: tuple[str, ...] = (),
    only: Collection[str] | None = None,
    daemon: tuple[int, ...] = (),
) -> Gate:
    """Decide about a command line.

    `work` is the conversation's working directory, which `cwd` may have left. `targets` looks up symbolic links.
    `own` is where the daemon listens, `secrets` are its files outside its home.
    `daemon` are the process ids of Hermes, which nothing may kill.
    `only` are the rules that are asked about; None: all of them.
    """
    line = parse_command_line(command, cwd=cwd, home=home, hermes_home=hermes_home)
    place = LookupContext(
        cwd=cwd,
        home=home,
        hermes_home=hermes_home,
        work=workspace_of(work, cwd, home, targets),
        targets=targets,
        secrets=secrets,
        own=own,
        daemon=tuple(map(str, daemon)),
    )
    if denied := _denied(command, line, deny):
        return Gate(verdict=Verdict.BLOCK, reason=denied)
    if blocked := next(_blocked(command, line, place), ""):
        return Gate(verdict=Verdict.BLOCK, reason=blocked)
    found = [each for each in dict.fromkeys(_asked(command, line, place)) if only is None or each[0] in only]
    rules = tuple(dict.fromkeys(rule for rule, _ in found))
    if not rules or mode == "off" or (all(rule in granted for rule in rules) and _ONCE_ONLY.isdisjoint(rules)):
        return Gate()
    return _question([each for each in found if each[0] not in granted], rules)


def _question(found: list[tuple[str, str]], rules: tuple[str, ...]) -> Gate:
    """Return the approval question: the worst findings first."""
    found = sorted(found, key=lambda each: severity(each[0]))
    reasons = list(dict.fromkeys(reason for _, reason in found))
    findings = tuple(reasons[:_MAX_FINDINGS])
    if len(reasons) > _MAX_FINDINGS:
        findings += (f"and {len(reasons) - _MAX_FINDINGS} more findings",)
    return Gate(
        verdict=Verdict.ASK,
        reason="; ".join(reasons[:_MAX_REASONS]),
        rules=rules,
        once=not _ONCE_ONLY.isdisjoint(rules),
        findings=findings,
    )


def inside_rules(*, own_directory: bool) -> frozenset[str]:
    """What a command in the sandbox is still asked about: the loss of a person's own work in their project."""
    return frozenset() if own_directory else _LOSES_WORK


def path_gate(
    path: str,
    *,
    writing: bool,
    home: str,
    hermes_home: str,
    cwd: str,
    work: str = "",
    secrets: tuple[str, ...] = (),
) -> Gate:
    """For the tools that read and write files by themselves; symbolic links are resolved before."""
    place = LookupContext(
        cwd=cwd, home=home, hermes_home=hermes_home, work=workspace_of(work, cwd, home), secrets=secrets
    )
    kinds = kinds_of(path, place)
    if Kind.HERMES_SECRET in kinds:
        return Gate(verdict=Verdict.BLOCK, reason=f"{path} is a secret of Hermes")
    own_file = re.match(r"/proc/[^/]+/(?:task/[^/]+/)?(?:fd|map_files)/", absolute(path, place))  # of the daemon
    if Kind.PROCESS_SECRET in kinds or Kind.DEVICE in kinds or own_file:
        return Gate(verdict=Verdict.BLOCK, reason=f"{path} is a device, or the memory or environment of a process")
    if not writing:
        if Kind.CREDENTIAL in kinds:
            return Gate(
                verdict=Verdict.ASK, reason=f"it reads {path}, where credentials are", rules=("credential-read",)
            )
        return Gate()
    if Kind.HERMES_HOME in kinds:
        return Gate(verdict=Verdict.BLOCK, reason=f"{path} is where Hermes keeps its own")
    for kind, rule, why in (
        (Kind.CREDENTIAL, "credential-write", "where credentials are"),
        (Kind.PROMPT, "prompt-write", "which agents take instructions from"),
        (Kind.STARTUP, "startup-write", "which runs or is trusted by itself later"),
        (Kind.SYSTEM, "system-write", "a part of the system"),
    ):
        if kind in kinds:
            return Gate(verdict=Verdict.ASK, reason=f"it changes {path}, {why}", rules=(rule,))
    if is_outside(path, place):
        why = f"it changes {path}, outside the working directory"
        return Gate(verdict=Verdict.ASK, reason=why, rules=("outside-write",))
    return Gate()


# Deny globs


def _denied(text: str, line: CommandLine, deny: Sequence[str]) -> str:
    if not deny:
        return ""
    texts = (text.strip(), *(" ".join(piece) for piece in _pieces(text, line)))
    found = denied_by(line, texts, deny)
    return f"`{_short(found[0])}` is denied by {found[1]!r}" if found else ""


# Blocks


def _blocked(text: str, line: CommandLine, place: LookupContext) -> Iterator[str]:
    if line.fork_bomb:
        yield "a function that starts itself over and over would use up the machine"
    for command in line.commands:
        for each in _variants(command):
            for finding in _catastrophes(each, place):
                yield _reason(command, finding)
    if _kills_found_hermes(line, place.own.ports):
        yield "it looks for Hermes and kills what it finds"
    for piece in _pieces(text, line):
        made = SimpleCommand(argv=piece, written=" ".join(piece), cwd=place.cwd)
        for finding in catastrophes(Case.of(made, place)):
            yield _reason(made, finding)


def _catastrophes(command: SimpleCommand, place: LookupContext) -> Iterator[Finding]:
    case = Case.of(command, place)
    yield from catastrophes(case)
    code = inline_code(case)
    if code is None:
        return
    if code_talks_to_daemon(code, case.place):
        yield Finding(rule="hermes-control", why="reaches Hermes itself from code")
    read = read_code(code)
    if read.forks:
        yield Finding(rule="fork-bomb", why="starts itself over and over")
    for path in (*read.texts, *paths_in_code(code)):
        if "/" in path and case.kinds(path) & {Kind.HERMES_SECRET, Kind.PROCESS_SECRET}:
            yield Finding(rule="hermes-secret", why=f"reads {path[:80]}, a secret")
    for text in read.texts if read.harm else ():
        if read.deletes_tree and text.strip() and is_critical(text.strip(), case.place) and text.strip()[0] in "/~":
            yield Finding(rule="delete-system", why=f"deletes {text.strip()}")
        yield from _inner_catastrophes(text, case.place)


def _inner_catastrophes(text: str, place: LookupContext) -> Iterator[Finding]:
    """Of a text in some code, taken for a command line."""
    if " " not in text and text not in {"reboot", "halt", "poweroff", "shutdown"}:
        return
    line = parse_command_line(text, cwd=place.cwd, home=place.home, hermes_home=place.hermes_home)
    for command in line.commands:
        yield from catastrophes(Case.of(command, place))
    if line.fork_bomb:
        yield Finding(rule="fork-bomb", why="starts itself over and over")


def _variants(command: SimpleCommand) -> Iterator[SimpleCommand]:
    """The command, and what it may turn out to be where its name is not quite known."""
    yield command
    if command.unresolved and command.argv:
        name = command.argv[0].rpartition("/")[2].lower()
        bare = name.replace(UNKNOWN, "")
        pattern = name.replace(UNKNOWN, "*")
        candidates = [bare] if bare and not re.search(r"[*?\[]", bare) else []
        if bare:
            candidates += [worst for worst in _WORST if fnmatchcase(worst, pattern)]
        for candidate in candidates:
            yield replace(command, argv=(candidate, *command.argv[1:]))


def _kills_found_hermes(line: CommandLine, ports: frozenset[int]) -> bool:
    looks = any(
        (
            "hermes" in (said := _BRACKETED.sub(r"\1", " ".join(each.argv).lower()))
            or any(re.search(rf"\b{port}\b", said) for port in ports)
        )
        and each.name not in {"cd", "git"}
        for each in line.commands
    )
    kills = any(each.name in {"kill", "pkill"} and UNKNOWN in "".join(each.argv) for each in line.commands)
    return looks and kills


def _pieces(text: str, line: CommandLine) -> Iterator[tuple[str, ...]]:
    """Of a line that did not parse: what looks like commands, quotes and all brackets aside."""
    if not line.problem:
        return
    for piece in _PIECE_END.split(_QUOTES.sub("", text[: 128 * 1024]), maxsplit=_MAX_PIECES):
        words = tuple(piece.replace("$IFS", " ").split()[:32])
        for index, word in enumerate(words):
            if not index or _WORTH_A_LOOK.fullmatch(word.rpartition("/")[2]):
                yield words[index:]


# Questions


def _asked(text: str, line: CommandLine, place: LookupContext) -> Iterator[tuple[str, str]]:
    if hidden := hidden_characters(text):
        yield "hidden-characters", f"the line holds characters that hide or fake what it does: {hidden}"
    if line.problem:
        yield "unparsable-line", f"the line cannot be checked: {line.problem}"
    for command in line.commands:
        if command.unresolved:
            yield "unresolved-command", f"`{_short(command.written)}`: {command.unresolved}"
        case = Case.of(command, place)
        for finding in dangers(case):
            yield finding.rule, _reason(command, finding)
        for finding in _embedded(case):
            yield finding.rule, _reason(command, finding)


def _embedded(case: Case) -> Iterator[Finding]:
    """A catastrophe in the arguments of a program that we know nothing about: it may well run them."""
    if not case.command.argv or case.command.guess or case.name in SAYS_ONLY:
        return
    arguments = case.arguments[:64]
    for index, argument in enumerate(arguments):
        if argument.rpartition("/")[2] in _WORST:
            inner = replace(case.command, argv=arguments[index:], redirections=())
            if any(catastrophes(Case.of(inner, case.place))):
                yield Finding(rule="embedded-command", why="may run the dangerous command in its arguments")
        elif (
            " " in argument
            and any(worst in argument for worst in _WORST)
            and any(_inner_catastrophes(argument, case.place))
        ):
            yield Finding(rule="embedded-command", why="may run the dangerous command in its arguments")


def _reason(command: SimpleCommand, finding: Finding) -> str:
    shown = " ".join(command.argv) if command.argv else command.written
    return f"`{_short(shown)}` {finding.why}"


def _short(text: str) -> str:
    text = " ".join(text.replace(UNKNOWN, "…").split())
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"
