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
from hermes.shell_policy.finding import Case, Finding, shown
from hermes.shell_policy.own_daemon import connects_to_unknown_socket
from hermes.shell_policy.protected_path import PathKind, goes_through
from hermes.shell_policy.rules.catastrophe import DELETERS
from hermes.shell_policy.rules.inline_code import code_in, language_of, read_code
from hermes.shell_policy.rules.path_rules import WRITES_ASKED, path_rules
from hermes.shell_policy.rules.program_rules import program_rules
from hermes.shell_policy.rules.table_rules import asked_by_table

_REQUESTS = words("curl wget http https xh curlie")
_SENDS_FILE = re.compile(
    r"(?:^|\s)(?:-[a-zA-Z#]*d|--data(?:-\w+)?|--json|-[a-zA-Z#]*H|--header|-[a-zA-Z#]*u)(?:=|\s*)[\w.\[\]-]*@(?!-(?:\s|$))\S"
    r"|(?:^|\s)(?:-[a-zA-Z#]*b|--cookie)(?:=|\s*)[^\s=]+(?:\s|$)|--(?:post|body)-file"
)
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
_DELETE_FILES = words("rm shred srm grm wipe del")
_FETCHERS = words("curl wget fetch aria2c http https lynx links nc ncat netcat socat ftp tftp scp ssh")
_DECODERS = words(
    "base64 base32 xxd openssl gzip gunzip zcat bzip2 bunzip2 xz rev tr uudecode gpg od hexdump printf awk sed"
    " python perl"
)
_EDITORS = words("vim vi nvim ex view emacs ed gdb lldb")  # they also read commands from their input
# Programs whose arguments are scripts in their own language, and what runs a command there.
_SCRIPTED = (
    (
        words("awk gawk mawk nawk"),
        re.compile(r"system\s*\(|\|\s*getline|\|&|\|\s*\"|@load|>\s*\"/|print\s(?s:.*)\|"),
    ),
    (
        words("sed gsed"),
        re.compile(
            r"(?:^|[;{\d$/])\s*e(?:\s|$|\n)|s(.)(?:(?!\1).)*\1(?:(?!\1).)*\1[gpiIm0-9]*e",
            re.MULTILINE,
        ),
    ),
    (_EDITORS, re.compile(r"!|shell|system|--eval|-e\b|python|-ex|call\(")),
)
_MAX_SCRIPT = 16 * 1024


def dangers(case: Case) -> Iterator[Finding]:
    for rule in _rules_for(case.name):
        yield from rule(case)


def _deletes(case: Case) -> Iterator[Finding]:
    if case.name in _DELETE_FILES and any(each.startswith(UNKNOWN) for each in case.arguments[:-1]):
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


def _permissions(case: Case) -> Iterator[Finding]:
    if case.name == "chmod":
        mode = "".join(operands(case.command)[:1])
        if re.fullmatch(r"[0-7]*[2367]", mode) or any(map(_opens_to_all, mode.split(","))):
            yield Finding(rule="chmod-world-writable", why="lets all users write")
        if re.fullmatch(r"0?[2-7][0-7]{3}", mode) or re.search(r"[+=][rwxX]*s", mode):
            yield Finding(rule="chmod-setuid", why="lets a program run as its owner")
        if UNKNOWN in mode:
            yield Finding(rule="chmod-world-writable", why="sets permissions that are only known at run time")
    if case.name in {"chown", "chgrp"} and re.match(r"root\b|0\b|:root\b|:0\b", "".join(operands(case.command)[:1])):
        yield Finding(rule="chown-root", why="makes root the owner of files")


def _opens_to_all(clause: str) -> bool:
    """Return whether a symbolic mode lets all users write: `o+w`, `+w`, `a=rwx`, `o-x+w`, `o=u`."""
    who = re.match(r"[ugoa]*", clause)
    concerned = not who or not who[0] or bool({"o", "a"} & set(who[0]))
    return concerned and bool(re.search(r"[+=](?:[rxXst]*w|[ug])", clause))


def _network(case: Case) -> Iterator[Finding]:
    text = " ".join(case.arguments)
    if case.name in _REQUESTS and _uploads(case, text):
        yield Finding(rule="data-upload", why="sends a file or the output of another command over the network")
    if connects_to_unknown_socket(case):
        yield Finding(rule="unix-socket", why="connects to a socket that is only known at run time")
    fed = any(each.operator in {"<", "<<", "<<<"} for each in case.command.redirections) or case.command.feeders
    if case.name in {"ssh", "autossh"} and fed:
        yield Finding(rule="data-upload", why="sends its input to another machine")


def _uploads(case: Case, text: str) -> bool:
    if _SENDS_FILE.search(text):
        return True
    fed = bool(case.command.feeders) or any(each.operator == "<" for each in case.command.redirections)
    return fed and (case.name in {"http", "https", "xh"} or bool(re.search(r"@-|-d\b|--data", text)))


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
        found = next(((rule, why) for kind, rule, why in WRITES_ASKED if kind in kinds), None)
        if found is not None:
            yield Finding(rule=found[0], why=f"changes {shown(path)}, {found[1]}")
    if any(re.match(r"/dev/(?:tcp|udp)/", each.target) for each in case.command.redirections):
        yield Finding(rule="network-shell", why="opens a network connection from the shell")


def _reads(case: Case) -> Iterator[Finding]:
    if only_lists(case.command):
        return
    for path in read_files(case.command):
        kinds = case.kinds(path)
        if PathKind.CREDENTIAL in kinds:
            yield Finding(rule="credential-read", why=f"reads {shown(path)}, which contains credentials")
        if PathKind.HERMES_HOME in kinds:
            yield Finding(rule="hermes-home-read", why=f"reads {shown(path)}, which belongs to Hermes")
        if PathKind.HOLDS_SECRET in kinds and goes_through(path):
            yield Finding(rule="secret-tree", why=f"reads files in {shown(path)}, which contains secrets of Hermes")
    for path in trees_read(case.command):
        if PathKind.HOLDS_SECRET in case.kinds(path):
            where = "the working directory" if path == "." else shown(path)
            why = f"reads everything in {where}, which contains secrets of Hermes or of running processes"
            yield Finding(rule="secret-tree", why=why)
    if reads_unknown_list(case.command):
        yield Finding(rule="secret-tree", why="reads files that are only known at run time")


def _kills(case: Case) -> Iterator[Finding]:
    if case.name != "kill" or case.arguments[:1] in {("-l",), ("-L",)}:
        return
    if any(re.search(r"[\0*?\[]", each) and "$!" not in case.command.written for each in case.arguments):
        yield Finding(rule="kill-unknown", why="kills a process that is only known at run time")
    elif any(re.fullmatch(r"-\d{2,}", each) for each in case.arguments[1:]):
        yield Finding(rule="kill-unknown", why="kills a group of processes")


def _shells(case: Case) -> Iterator[Finding]:
    """Yield findings for a shell or interpreter that runs code from its input or another command."""
    command, interpreter = case.command, language_of(case.name)
    if not (case.name in SHELLS or interpreter or (case.name in {"source", "."} and case.arguments)):
        return
    names = operands(command)
    if names and names[0].startswith("/dev/fd/") and names[0] != "/dev/fd/0":
        yield Finding(rule="pipe-to-shell", why="runs the output of another command")
    code = code_in(case.name, command.argv) if interpreter else shell_argument(command.argv)[0]
    reads = not names or names[0] in {"/dev/stdin", "/dev/fd/0", "-"} or case.has("-s")
    if code is not None or not reads or _only_asks(case):
        return
    if command.stdin is None:
        fed = {each for each in command.feeders if each != "text"}
        network, decoded = not _FETCHERS.isdisjoint(fed), not _DECODERS.isdisjoint(fed)
        why = "runs code from the network" if network else "runs decoded text" if decoded else "runs its input"
        yield Finding(rule="pipe-to-shell" if fed else "shell-from-stdin", why=why)
    elif UNKNOWN in command.stdin:
        yield Finding(rule="pipe-to-shell", why="runs a text that is only known at run time")


def _script_files(case: Case) -> Iterator[Finding]:
    """Yield findings for other programs that run a script from their input or another command."""
    command = case.command
    if case.name == "make" and command.feeders:
        yield Finding(rule="pipe-to-shell", why="runs recipes from its input, or with another shell")
    if case.name == "exec" and not operands(command) and any(each.operator == "<" for each in command.redirections):
        yield Finding(rule="pipe-to-shell", why="makes the shell read its commands from a file")
    if command.runs_file is not None and UNKNOWN in command.runs_file:
        yield Finding(rule="download-and-run", why="runs a file that this line has just written")


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
    for names, runs in _SCRIPTED:
        if case.name in names:
            if sum(map(len, case.arguments)) > _MAX_SCRIPT:
                return UNKNOWN  # too long to be checked
            typed = case.command.stdin or "" if names is _EDITORS else ""
            text = "\n".join((*case.arguments, typed))
            return f"system({text})" if runs.search(text) else None
    return None


_Rule: TypeAlias = Callable[[Case], Iterator[Finding]]
_RULES: tuple[_Rule, ...] = (
    _deletes,
    _deletes_found,
    _permissions,
    _sql,
    _kills,
    _code,
    _network,
)
_FOR_ALL: tuple[_Rule, ...] = (_files, _reads, path_rules, _shells, _script_files, program_rules, asked_by_table)
# Common programs to which only the rules for all programs apply.
_PLAIN = words(
    "ls cd pwd cat head tail wc sort uniq cut tr echo printf grep egrep rg cp ln mkdir touch test [ true false :"
    " sleep date make cmake go pytest ruff mypy tsc eslint diff tee which export read basename dirname seq"
)


def _rules_for(name: str) -> tuple[_Rule, ...]:
    return _FOR_ALL if name in _PLAIN else (*_RULES, *_FOR_ALL)
