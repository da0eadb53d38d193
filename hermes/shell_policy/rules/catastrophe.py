"""Catastrophes: commands that are blocked in every mode, whatever was granted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from hermes.shell_policy.bash.shell_variables import DAEMON_PID
from hermes.shell_policy.bash.syntax import UNKNOWN, words
from hermes.shell_policy.bash.wrapper import find_roots
from hermes.shell_policy.file_access import only_lists, operands, read_files, written_files
from hermes.shell_policy.finding import Case, Finding, shown
from hermes.shell_policy.own_daemon import talks_to_daemon
from hermes.shell_policy.protected_path import PathKind, is_critical
from hermes.shell_policy.rules.table_rules import blocked_by_table

DELETERS = words("rm rmdir unlink shred srm grm wipe trash trash-put gio del")
_FUSED = re.compile(rf"(?:^|\s)(?:/|/home|/usr|~)\S*(?:\s|$)|{UNKNOWN}")


def catastrophes(case: Case) -> Iterator[Finding]:
    for rule in _RULES:
        yield from rule(case)


def _deletes_critical(case: Case) -> Iterator[Finding]:
    if case.name in DELETERS:
        for path in operands(case.command):
            if is_critical(path, case.place):
                yield Finding(
                    rule="delete-system", why=f"deletes {shown(path)}, an essential part of the system or a home"
                )
    elif case.name in {"find", "gfind"} and "-delete" in case.arguments:
        narrowed = any(
            each in {"-name", "-iname", "-path", "-regex", "-mtime", "-mmin", "-size", "-empty", "-newer"}
            for each in case.arguments
        )
        for path in find_roots(case.arguments) or ["."]:
            if is_critical(path, case.place) and not narrowed:
                yield Finding(rule="delete-system", why=f"deletes everything in {shown(path)}")


def _moves_critical(case: Case) -> Iterator[Finding]:
    if case.name in {"mv", "rsync"} and len(operands(case.command)) > 1:
        sources = operands(case.command)[:-1]
        if case.name == "mv" and any(is_critical(path, case.place) for path in sources):
            yield Finding(rule="delete-system", why="moves an essential part of the system or a home")
        if case.name == "mv" and any(PathKind.HOLDS_SECRET in case.kinds(path) for path in sources):
            yield Finding(rule="hermes-home", why="moves the directory of Hermes")
        deletes = case.name == "rsync" and any(each.startswith("--del") for each in case.arguments)
        if deletes and is_critical(operands(case.command)[-1], case.place):
            yield Finding(rule="delete-system", why="deletes files of the system or a home that its source lacks")
    elif case.name in {"chmod", "chown", "chgrp", "chattr", "setfacl"} and case.has("-R", "--recursive"):  # noqa: SIM102 - reads best so
        if any(is_critical(path, case.place) and path not in {".", "./"} for path in operands(case.command)):
            yield Finding(rule="delete-system", why="changes the permissions of the whole system or a whole home")


def _locks_critical(case: Case) -> Iterator[Finding]:
    if case.name != "chmod":
        return
    mode = next(
        (each for each in case.arguments if not each.startswith("--") and each not in {"-R", "-v", "-f", "-c"}), ""
    )
    octal = re.fullmatch(r"[0-7]*?([0-7])[0-7]{2}|0{1,2}|[0-7]{1,2}", mode)
    locks = (
        (int(octal[1] or "0") & 5 != 5)
        if octal
        else bool(re.search(r"(?:^|,)[ugoa]*-[rwXst]*[rx]|(?:^|,)(?:[goa]*[ua][ugoa]*)?=[rwst]*(?:,|$)", mode))
    )
    if locks and any(is_critical(path, case.place) for path in (*operands(case.command), *case.arguments[1:])):
        yield Finding(rule="delete-system", why="removes access to the system or a home")


def _writes_device(case: Case) -> Iterator[Finding]:
    linked = operands(case.command) if case.name == "ln" else ()
    for path in (*written_files(case.command), *linked):
        if PathKind.DEVICE in case.kinds(path):
            yield Finding(rule="write-device", why=f"writes to {shown(path)}, a device")


def _kills_all(case: Case) -> Iterator[Finding]:
    if case.name != "kill":
        return
    arguments = case.arguments
    targets = arguments[1:] if arguments[:1] and arguments[0].startswith("-") else arguments
    if arguments[:1] in {("-s",), ("-n",)}:
        targets = arguments[2:]
    if "-1" in targets or arguments == ("-1",) or "1" in targets:
        yield Finding(rule="kill-all", why="kills every process, or process 1")
    if {DAEMON_PID, *case.place.daemon} & {each.lstrip("-") for each in targets}:
        yield Finding(rule="stop-hermes", why="kills the process that runs this conversation")


def _stops_hermes(case: Case) -> Iterator[Finding]:
    if case.name in {"pkill", "killall"} and _pattern_hits_hermes(case):
        yield Finding(rule="stop-hermes", why="kills Hermes itself")
    elif case.name == "fuser" and case.has("-k", "--kill") and _fuses_hermes(case):
        yield Finding(rule="stop-hermes", why="kills the processes that use the port or disk of Hermes")
    elif case.name in {"kill-port", "killport", "fkill"} and _names_port(case):
        yield Finding(rule="stop-hermes", why="kills Hermes itself")


def _fuses_hermes(case: Case) -> bool:
    return _names_port(case) or bool(_FUSED.search(" ".join(case.arguments)))


def _names_port(case: Case) -> bool:
    numbers = re.findall(r"\d+", " ".join(case.arguments))
    return any(int(number) in case.place.own.ports for number in numbers if len(number) <= 5)


def _pattern_hits_hermes(case: Case) -> bool:
    """Return whether a pattern of pkill matches Hermes. It is a regular expression, like `[h]ermes`."""
    for pattern in operands(case.command):
        if len(pattern) > 200 or re.search(r"[*+{][^*+{]*[*+{]", pattern):
            if re.search(r"h.{0,4}e.{0,4}r", pattern):
                return True
            continue
        try:
            if re.search(pattern, "hermes", re.IGNORECASE) or re.search(pattern, "python -m hermes", re.IGNORECASE):
                return True
        except re.error:
            continue
    return False


def _touches_hermes(case: Case) -> Iterator[Finding]:
    for path in written_files(case.command):
        if case.kinds(path) & {PathKind.HERMES_HOME, PathKind.HERMES_SECRET}:
            yield Finding(rule="hermes-home", why=f"writes to {shown(path)}, which belongs to Hermes")
    if only_lists(case.command):
        return
    for path in read_files(case.command):
        kinds = case.kinds(path)
        if PathKind.HERMES_SECRET in kinds:
            yield Finding(rule="hermes-secret", why=f"reads {shown(path)}, a secret of Hermes")
        if PathKind.PROCESS_SECRET in kinds:
            yield Finding(
                rule="process-secret", why=f"reads {shown(path)}, which contains secrets of other processes"
            )


_RULES: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    _deletes_critical,
    _moves_critical,
    _locks_critical,
    _writes_device,
    blocked_by_table,
    _kills_all,
    _stops_hermes,
    talks_to_daemon,
    _touches_hermes,
)
