"""Decision about a command line or a path: block, ask for approval, or allow.

The owner's deny globs come first. Catastrophes are blocked in every mode. Dangers need approval, unless the mode is
off or all their rules are granted. A line that cannot be parsed, or a command whose name is only known at run time,
is a danger. Decisions are based on the parsed commands, not on the text; only a line that does not parse is also
checked in pieces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Literal

from hermes.domain.text.visible_text import hidden_characters
from hermes.domain.turn.tool_call import Gate, Verdict
from hermes.domain.values import replace
from hermes.shell_policy.bash.command_line import CommandLine, parse_command_line
from hermes.shell_policy.bash.simple_command import SimpleCommand
from hermes.shell_policy.bash.syntax import UNKNOWN
from hermes.shell_policy.deny_list import SAYS_ONLY, denied_by
from hermes.shell_policy.file_access import paths_in_code
from hermes.shell_policy.finding import Case, Finding
from hermes.shell_policy.own_daemon import code_talks_to_daemon
from hermes.shell_policy.protected_path import (
    LookupContext,
    OwnAddress,
    PathKind,
    absolute,
    is_critical,
    kinds_of,
    no_links,
)
from hermes.shell_policy.rules.catastrophe import catastrophes
from hermes.shell_policy.rules.danger import dangers, inline_code
from hermes.shell_policy.rules.inline_code import read_code
from hermes.shell_policy.rules.path_rules import WRITES_ASKED
from hermes.shell_policy.rules.rule_table import severity
from hermes.shell_policy.workspace import is_outside, workspace_of

_MAX_SHOWN = 120
_MAX_REASONS = 3  # in one line
_MAX_FINDINGS = 100
_MAX_PIECES = 400
_PIECE_END = re.compile(r"[;&|\n(){}`]+|\b(?:then|do|else)\b")
_CHECKED_NAMES = re.compile(
    r"rm|mkfs\S*|dd|shutdown|reboot|halt|poweroff|init|kill|pkill|killall|hermes|systemctl|find|chmod|mv|tee"
)
_BRACKETED = re.compile(r"\[(\w)\]")  # `grep [h]ermes` does not find itself
_QUOTES = re.compile(r"['\"\\]")
# Names that an incompletely known command name is compared with.
_WORST = ("rm", "mkfs", "dd", "shutdown", "reboot", "halt", "poweroff", "kill", "tee", "cat", "chmod", "find", "mv")

# The effect of these is unknown before the command runs, so a standing grant would allow anything.
_ONCE_ONLY = frozenset({"unresolved-command", "unparsable-line", "embedded-command", "pipe-to-shell"})
_ONCE_ONLY |= {"unknown-path", "hidden-characters"}


# Damage that a sandbox cannot prevent, because it happens in the working directory.
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

    `work` is the conversation's working directory; `cwd` may be elsewhere. `targets` resolves symbolic links.
    `own` is the daemon's address, `secrets` are its files outside its home. `daemon` holds the process ids of
    Hermes, which must not be killed. `only` limits the rules that need approval; None: all rules.
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
    rules = tuple(dict.fromkeys(rule for rule, _, _ in found))
    if not rules or mode == "off" or (all(rule in granted for rule in rules) and _ONCE_ONLY.isdisjoint(rules)):
        return Gate()
    return _question([each for each in found if each[0] not in granted], rules)


def _question(found: list[tuple[str, str, str]], rules: tuple[str, ...]) -> Gate:
    """Return the approval question: the worst findings first."""
    found = sorted(found, key=lambda each: severity(each[0]))
    reasons = list(dict.fromkeys((subject, why) for _, subject, why in found))
    shown = reasons[:_MAX_FINDINGS]
    if len(reasons) > _MAX_FINDINGS:
        shown.append(("", f"and {len(reasons) - _MAX_FINDINGS} more findings"))
    return Gate(
        verdict=Verdict.ASK,
        reason="; ".join(_clause(*each) for each in reasons[:_MAX_REASONS]),
        rules=rules,
        once=not _ONCE_ONLY.isdisjoint(rules),
        findings=tuple(why for _, why in shown),
        subjects=tuple(subject for subject, _ in shown),
    )


def inside_rules(*, conversation_directory: bool) -> frozenset[str]:
    """Return the rules that need approval inside the sandbox: loss of a person's work in their project."""
    return frozenset() if conversation_directory else _LOSES_WORK


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
    """Decide about a path for the file tools. The caller resolves symbolic links first."""
    place = LookupContext(
        cwd=cwd, home=home, hermes_home=hermes_home, work=workspace_of(work, cwd, home), secrets=secrets
    )
    kinds = kinds_of(path, place)
    if PathKind.HERMES_SECRET in kinds:
        return Gate(verdict=Verdict.BLOCK, reason=f"{path} is a secret of Hermes")
    own_file = re.match(r"/proc/[^/]+/(?:task/[^/]+/)?(?:fd|map_files)/", absolute(path, place))  # of the daemon
    if PathKind.PROCESS_SECRET in kinds or PathKind.DEVICE in kinds or own_file:
        return Gate(verdict=Verdict.BLOCK, reason=f"{path} is a device, or the memory or environment of a process")
    if not writing:
        if PathKind.CREDENTIAL in kinds:
            return Gate(
                verdict=Verdict.ASK, reason=f"it reads {path}, which contains credentials", rules=("credential-read",)
            )
        return Gate()
    if PathKind.HERMES_HOME in kinds:
        return Gate(verdict=Verdict.BLOCK, reason=f"{path} belongs to Hermes")
    for kind, rule, why in WRITES_ASKED:
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
        yield "a function that starts itself without end (a fork bomb) would exhaust the machine"
    for command in line.commands:
        for each in _variants(command):
            for finding in _catastrophes(each, place):
                yield _reason(command, finding)
    if _kills_found_hermes(line, place.own.ports):
        yield "it searches for Hermes processes and kills them"
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
        yield Finding(rule="hermes-control", why="accesses Hermes itself from code")
    read = read_code(code)
    if read.forks:
        yield Finding(rule="fork-bomb", why="starts itself without end (a fork bomb)")
    for path in (*read.texts, *paths_in_code(code)):
        if "/" in path and case.kinds(path) & {PathKind.HERMES_SECRET, PathKind.PROCESS_SECRET}:
            yield Finding(rule="hermes-secret", why=f"reads {path[:80]}, a secret")
    for text in read.texts if read.harm else ():
        if read.deletes_tree and text.strip() and is_critical(text.strip(), case.place) and text.strip()[0] in "/~":
            yield Finding(rule="delete-system", why=f"deletes {text.strip()}")
        yield from _inner_catastrophes(text, case.place)


def _inner_catastrophes(text: str, place: LookupContext) -> Iterator[Finding]:
    """Yield the catastrophes in a text from code, read as a command line."""
    if " " not in text and text not in {"reboot", "halt", "poweroff", "shutdown"}:
        return
    line = parse_command_line(text, cwd=place.cwd, home=place.home, hermes_home=place.hermes_home)
    for command in line.commands:
        yield from catastrophes(Case.of(command, place))
    if line.fork_bomb:
        yield Finding(rule="fork-bomb", why="starts itself without end (a fork bomb)")


def _variants(command: SimpleCommand) -> Iterator[SimpleCommand]:
    """Yield the command, and variants for an incompletely known name."""
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
    """Yield what looks like commands in a line that did not parse, without quotes and brackets."""
    if not line.problem:
        return
    for piece in _PIECE_END.split(_QUOTES.sub("", text[: 128 * 1024]), maxsplit=_MAX_PIECES):
        words = tuple(piece.replace("$IFS", " ").split()[:32])
        for index, word in enumerate(words):
            if not index or _CHECKED_NAMES.fullmatch(word.rpartition("/")[2]):
                yield words[index:]


# Questions


def _asked(text: str, line: CommandLine, place: LookupContext) -> Iterator[tuple[str, str, str]]:
    """Yield rule, command and finding. The command is empty where the finding is a whole clause."""
    if hidden := hidden_characters(text):
        yield "hidden-characters", "", f"the line contains characters that hide or disguise what it does: {hidden}"
    if line.problem:
        yield "unparsable-line", "", f"the line cannot be checked: {line.problem}"
    for command in line.commands:
        if command.unresolved:
            yield "unresolved-command", "", f"`{_short(command.written)}`: {command.unresolved}"
        case = Case.of(command, place)
        for finding in (*dangers(case), *_embedded(case)):
            yield finding.rule, _subject(command), finding.why


def _embedded(case: Case) -> Iterator[Finding]:
    """Yield a finding for a catastrophe in the arguments of an unknown program, which may run them."""
    if not case.command.argv or case.command.guess or case.name in SAYS_ONLY:
        return
    arguments = case.arguments[:64]
    for index, argument in enumerate(arguments):
        found: Iterator[Finding] = iter(())
        if argument.rpartition("/")[2] in _WORST:
            inner = replace(case.command, argv=arguments[index:], redirections=())
            found = catastrophes(Case.of(inner, case.place))
        elif " " in argument and any(worst in argument for worst in _WORST):
            found = _inner_catastrophes(argument, case.place)
        if any(found):
            yield Finding(rule="embedded-command", why="may run a dangerous command from its arguments")


def _reason(command: SimpleCommand, finding: Finding) -> str:
    return _clause(_subject(command), finding.why)


def _subject(command: SimpleCommand) -> str:
    return _short(" ".join(command.argv) if command.argv else command.written)


def _clause(subject: str, why: str) -> str:
    return f"`{subject}` {why}" if subject else why


def _short(text: str) -> str:
    text = " ".join(text.replace(UNKNOWN, "…").split())
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"
