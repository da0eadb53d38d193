"""Dangers: commands that need approval. Standing grants store a rule's name, so names are stable."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from hermes.shell_policy.bash.simple_command import shell_argument
from hermes.shell_policy.bash.syntax import UNKNOWN, words
from hermes.shell_policy.bash.wrapper import SHELLS
from hermes.shell_policy.file_access import (
    only_lists,
    operands,
    paths_in_code,
    read_files,
    reads_unknown_list,
    trees_read,
    written_files,
)
from hermes.shell_policy.finding import Case, Finding
from hermes.shell_policy.protected_path import PathKind, goes_through
from hermes.shell_policy.rules.catastrophe import DELETERS
from hermes.shell_policy.rules.inline_code import code_in, language_of, read_code
from hermes.shell_policy.rules.network_rules import network_rules
from hermes.shell_policy.rules.path_rules import path_rules
from hermes.shell_policy.rules.permission_rules import permission_rules
from hermes.shell_policy.rules.program_rules import program_rules
from hermes.shell_policy.rules.table_rules import asked_by_table

_SQL_CLIENTS = words(
    "psql mysql mariadb sqlite3 sqlcmd sqlplus clickhouse-client duckdb mongosh mongo redis-cli cqlsh isql usql"
    " pgcli mycli litecli"
)
_SQL = re.compile(
    r"\b(?:drop\s+(?:table|database|schema|user|role|index|view|collection)|truncate\b|delete\s+from|alter\s+table\s+\S+\s+drop"
    r"|dropDatabase|\.drop\(|deleteMany|deleteOne|remove\(|flushall|flushdb|grant\s+all|copy\s[^;]{0,200}\bprogram\b|update\s+\w+\s+set(?![^;]{0,400}\bwhere\b))"
    r"|\\!|\\copy[^;]{0,200}program|(?:^|\s)\.(?:sh|sy|lo|on|ou|rea|res|ed|exc|ar|im|ba|sa|cl)[a-z]*(?=\s|\Z)|\bsystem\s|load_extension|writefile\(|into\s+outfile|unlink\s|\bdel\s",
    re.IGNORECASE | re.DOTALL,
)
_FETCHERS = words("curl wget fetch aria2c http https lynx links nc ncat netcat socat ftp tftp scp ssh")
_DECODERS = words(
    "base64 base32 xxd openssl gzip gunzip zcat bzip2 bunzip2 xz rev tr uudecode gpg od hexdump printf awk sed"
    " python perl"
)
_RUNS_SCRIPT_FILE = words(
    "awk gawk mawk nawk sed gsed psql mysql gdb lldb vim vi nvim ex expect bc octave m4 gnuplot"
)
_SCRIPTED = words("awk gawk mawk nawk sed gsed vim vi nvim ex view emacs ed gdb lldb")
_MAX_SCRIPT = 16 * 1024


def dangers(case: Case) -> Iterator[Finding]:
    for rule in _rules_for(case.name):
        yield from rule(case)


def _deletes(case: Case) -> Iterator[Finding]:
    if case.name in DELETERS - {"rmdir", "unlink", "trash", "trash-put", "gio"}:
        if case.has("-r", "-R", "--recursive", "--r", "--rec", "--recurs", "--recursiv") or any(
            re.match(r"--r\w*", each) for each in case.arguments
        ):
            yield Finding(rule="recursive-delete", why="deletes a directory tree")
        elif case.name in {"shred", "srm", "wipe"}:
            yield Finding(rule="recursive-delete", why="destroys a file irrecoverably")
        elif any(
            each.rstrip("/").endswith(("*", "*.*")) and len(each.rpartition("/")[2]) < 3
            for each in operands(case.command)
        ):
            yield Finding(rule="recursive-delete", why="deletes every file of a directory")
        elif any(each.startswith(UNKNOWN) for each in case.arguments[:-1]):
            yield Finding(rule="recursive-delete", why="deletes with options that are only known at run time")


def _deletes_found(case: Case) -> Iterator[Finding]:
    if case.name in {"find", "gfind", "fd", "fdfind"}:
        for index, argument in enumerate(case.arguments):
            if argument in {"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"}:
                run = case.arguments[index + 1 : index + 2]
                if run and (
                    run[0].rpartition("/")[2] in DELETERS | SHELLS or UNKNOWN in run[0] or run[0].startswith("{}")
                ):
                    yield Finding(rule="find-delete", why="deletes the files that it finds, or runs a shell for them")
    if case.name in {"xargs", "parallel"} and (DELETERS | SHELLS) & {
        each.rpartition("/")[2] for each in case.arguments
    }:
        yield Finding(rule="xargs-delete", why="deletes the files that it reads from its input, or runs a shell")


def _sql(case: Case) -> Iterator[Finding]:
    if case.name not in _SQL_CLIENTS:
        return
    if _SQL.search(" ".join(case.arguments)) or (case.command.stdin and _SQL.search(case.command.stdin)):
        yield Finding(rule="sql-destructive", why="deletes or changes data, or runs a program, in a database client")
    elif case.command.feeders and case.command.stdin is None:
        yield Finding(rule="sql-destructive", why="runs statements that are only known at run time")
    elif any(UNKNOWN in each for each in case.arguments if " " in each or each == UNKNOWN):
        yield Finding(rule="sql-destructive", why="runs a statement that is only known at run time")


def _files(case: Case) -> Iterator[Finding]:
    for path in written_files(case.command):
        kinds = case.kinds(path)
        shown = path.replace(UNKNOWN, "…")[:80]
        if PathKind.CREDENTIAL in kinds:
            yield Finding(rule="credential-write", why=f"changes {shown}, which contains credentials")
        elif PathKind.STARTUP in kinds:
            why = f"changes {shown}, which other programs later run or trust automatically"
            yield Finding(rule="startup-write", why=why)
        elif PathKind.SYSTEM in kinds:
            yield Finding(rule="system-write", why=f"changes {shown}, which belongs to the system")
        elif re.match(r"/dev/(?:tcp|udp)/", path):
            yield Finding(rule="network-shell", why="opens a network connection from the shell")
    for redirection in case.command.redirections:
        if re.match(r"/dev/(?:tcp|udp)/", redirection.target):
            yield Finding(rule="network-shell", why="opens a network connection from the shell")


def _reads(case: Case) -> Iterator[Finding]:
    if only_lists(case.command):
        return
    for path in read_files(case.command):
        kinds = case.kinds(path)
        shown = path.replace(UNKNOWN, "…")[:80]
        if PathKind.CREDENTIAL in kinds:
            yield Finding(rule="credential-read", why=f"reads {shown}, which contains credentials")
        if PathKind.HERMES_HOME in kinds:
            yield Finding(rule="hermes-home-read", why=f"reads {shown}, which belongs to Hermes")
        if PathKind.HOLDS_SECRET in kinds and goes_through(path):
            yield Finding(rule="secret-tree", why=f"reads files in {shown}, which contains secrets of Hermes")
    for path in trees_read(case.command):
        if PathKind.HOLDS_SECRET in case.kinds(path):
            shown = "the working directory" if path == "." else path.replace(UNKNOWN, "…")[:80]
            why = f"reads everything in {shown}, which contains secrets of Hermes or of running processes"
            yield Finding(rule="secret-tree", why=why)
    if reads_unknown_list(case.command):
        yield Finding(rule="secret-tree", why="reads files that are only known at run time")


def _kills(case: Case) -> Iterator[Finding]:
    if case.name == "kill" and case.arguments[:1] not in {("-l",), ("-L",)}:
        signals = [
            each
            for each in case.arguments
            if re.fullmatch(r"-(?:9|s?(?:SIG)?KILL|n9|s9)|(?:SIG)?KILL|9", each, re.IGNORECASE)
        ]
        if signals:
            yield Finding(rule="kill-9", why="kills without a chance to clean up")
        elif any(re.search(r"[\0*?\[]", each) and "$!" not in case.command.written for each in case.arguments):
            yield Finding(rule="kill-unknown", why="kills a process that is only known at run time")
        elif any(re.fullmatch(r"-\d{2,}", each) for each in case.arguments[1:]):
            yield Finding(rule="kill-unknown", why="kills a group of processes")


def _shells(case: Case) -> Iterator[Finding]:
    """Yield findings for a shell or interpreter that runs code from its input or another command."""
    command = case.command
    interpreter = language_of(case.name)
    sources = case.name in {"source", "."} and case.arguments
    if case.name in SHELLS or sources or interpreter:
        fed = [each for each in command.feeders if each != "text"]
        names = operands(command)
        has_code = (
            shell_argument(command.argv)[0] is not None
            if not interpreter
            else code_in(case.name, command.argv) is not None
        )
        from_stdin = (
            not has_code
            and (not names or names[0] in {"/dev/stdin", "/dev/fd/0", "-"} or case.has("-s"))
            and not _only_asks(case)
        )
        if names and names[0].startswith("/dev/fd/") and names[0] != "/dev/fd/0":
            yield Finding(rule="pipe-to-shell", why="runs the output of another command")
        if from_stdin and command.stdin is None:
            rule = "pipe-to-shell" if fed else "shell-from-stdin"
            if any(each in _FETCHERS for each in fed):
                why = "runs code from the network"
            elif any(each in _DECODERS for each in fed):
                why = "runs decoded text"
            else:
                why = "runs its input"
            yield Finding(rule=rule, why=why)
        if from_stdin and command.stdin is not None and UNKNOWN in command.stdin:
            yield Finding(rule="pipe-to-shell", why="runs a text that is only known at run time")
        if any(each.startswith(("--rcfile", "--init-file")) for each in case.arguments):
            yield Finding(rule="pipe-to-shell", why="runs a startup file named by an option")


def _script_files(case: Case) -> Iterator[Finding]:
    """Yield findings for other programs that run a script from their input or another command."""
    command = case.command
    if case.name == "make" and (
        command.feeders
        or "/dev/fd/63" in case.arguments
        or any(re.match(r"SHELL=|\.SHELLFLAGS=|--ev|-[a-zA-Z]*E", each) for each in case.arguments)
    ):
        yield Finding(rule="pipe-to-shell", why="runs recipes from its input, or with another shell")
    if case.name in _RUNS_SCRIPT_FILE and any(
        each.lstrip("-fSxi=").startswith(("/dev/fd/", "/dev/stdin")) for each in case.arguments
    ):
        yield Finding(rule="pipe-to-shell", why="runs the output of another command as a script")
    if case.name == "exec" and not operands(command) and any(each.operator == "<" for each in command.redirections):
        yield Finding(rule="pipe-to-shell", why="makes the shell read its commands from a file")
    if command.runs_file is not None and UNKNOWN in command.runs_file:
        yield Finding(rule="download-and-run", why="runs a file that this line has just written")
    if case.name in {"source", "."} and any(each.startswith(("/dev/", UNKNOWN)) for each in case.arguments[:1]):
        yield Finding(rule="pipe-to-shell", why="runs a file that is only known at run time")


def _only_asks(case: Case) -> bool:
    return bool({"--version", "-V", "--help", "-h", "-v", "-m", "-c", "-e"} & set(case.arguments)) or any(
        re.fullmatch(r"-m\S+|-[a-zA-Z]*m|-VV", each) for each in case.arguments
    )


def _code(case: Case) -> Iterator[Finding]:
    code = inline_code(case)
    if code is None:
        return
    for path in paths_in_code(code):
        if PathKind.CREDENTIAL in case.kinds(path):
            yield Finding(rule="credential-read", why=f"may read {path[:80]}, which contains credentials")
    if UNKNOWN in code:
        yield Finding(rule="inline-code", why="runs code that is only known at run time")
    elif harm := read_code(code).harm:
        yield Finding(rule="inline-code", why=f"runs code that may delete or execute something ({harm})")


def inline_code(case: Case) -> str | None:
    """Return the code given to an interpreter, or to a program with its own language."""
    if language_of(case.name):
        code = code_in(case.name, case.command.argv)
        return code if code is not None else case.command.stdin
    if case.name in _SCRIPTED and sum(map(len, case.arguments)) > _MAX_SCRIPT:
        return UNKNOWN  # too long to be checked
    if case.name in {"awk", "gawk", "mawk", "nawk"}:
        text = " ".join(case.arguments)
        return (
            f"system({text})"
            if re.search(r"system\s*\(|\|\s*getline|\|&|\|\s*\"|@load|>\s*\"/|print\s.*\|", text)
            else None
        )
    if case.name in {"sed", "gsed"}:
        text = "\n".join(case.arguments)
        runs = re.search(
            r"(?:^|[;{\d$/])\s*e(?:\s|$|\n)|s(.)(?:(?!\1).)*\1(?:(?!\1).)*\1[gpiIm0-9]*e",
            text,
            re.MULTILINE,
        )
        return f"system({text})" if runs else None
    if case.name in {"vim", "vi", "nvim", "ex", "view", "emacs", "ed", "gdb", "lldb"}:
        text = " ".join(case.arguments) + (case.command.stdin or "")
        return f"system({text})" if re.search(r"!|shell|system|--eval|-e\b|python|-ex|call\(", text) else None
    return None


_Rule: TypeAlias = Callable[[Case], Iterator[Finding]]
_RULES: tuple[_Rule, ...] = (
    _deletes,
    _deletes_found,
    permission_rules,
    _sql,
    _kills,
    _code,
    network_rules,
)
_FOR_ALL: tuple[_Rule, ...] = (_files, _reads, path_rules, _shells, _script_files, program_rules, asked_by_table)
# Common programs to which only the rules for all programs apply.
_PLAIN = words(
    "ls cd pwd cat head tail wc sort uniq cut tr echo printf grep egrep rg cp ln mkdir touch test [ true false :"
    " sleep date make cmake go pytest ruff mypy tsc eslint diff tee which export read basename dirname seq"
)


def _rules_for(name: str) -> tuple[_Rule, ...]:
    return _FOR_ALL if name in _PLAIN else (*_RULES, *_FOR_ALL)
