"""Dangers of a command's paths: outside the workspace, or only known at run time."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from hermes.shell_policy.bash.syntax import words
from hermes.shell_policy.file_access import names_too_many, only_lists, read_files, written_files
from hermes.shell_policy.finding import Case, Finding, shown
from hermes.shell_policy.protected_path import LookupContext, PathKind, absolute
from hermes.shell_policy.workspace import in_a_home, is_outside, is_unknown

# Programs that only read or print their paths, and run nothing.
_ONLY_READ = words(
    "cat head tail less more nl tac od hexdump strings base64 base32 sort uniq paste cut fold fmt pr expand"
    " unexpand column tr grep egrep fgrep rg ag diff comm join cmp wc ls stat du df file tree realpath readlink"
    " dirname basename find fd cd pushd popd test [ [[ echo printf md5sum sha1sum sha256sum sha512sum cksum b2sum"
    " sum jq id which type command man help ps : true false exit return read export local declare unset alias shift"
    " seq date sleep whoami hostname uname uptime env printenv history ulimit umask wait jobs kill trap tput xxd"
    " zcat zless zgrep nproc pwd whereis lsof free top rev look shuf bat exa eza locate lsblk hermes eval"
    " exec for"
)
_READS_OPERANDS = words(
    "cat head tail less more nl tac od xxd hexdump strings base64 base32 sort uniq paste cut fold fmt pr column grep"
    " egrep fgrep rg ag sed awk gawk perl diff comm join cmp cp mv ln install rsync scp tar zip dd source . bash sh"
    " zsh python3 python node ruby openssl gpg jq yq zcat bat tee mapfile rev"
)
_TEXT_OPTIONS = {
    "git": words("-m --message --grep -G -S --author --pretty --format --trailer -b --invert-grep"),
    "ssh": words("-i"),
    "scp": words("-i"),
    "sftp": words("-i"),
    "rsync": words("-i"),
    "mosh": words("-i"),
    "gh": words("--title --body -t -b"),
}
_NUMBER_OPTIONS = words(
    "-n -c -m -A -B -C -d -f -t -k -w -j -s -l --lines --bytes --max-count -P -L -I -E -F -v --arg"
)
_PATH = re.compile(r"(?:~|\$\{?HOME\}?|(?<![\w.*?\]\0-])/|(?<![\w.])\.\.(?=/|\Z))[^\s'\"`;|&<>(),=:$%\\]*")
_PRIVATE = re.compile(
    r"/\.(?!(?:bashrc|profile|bash_profile|zshrc|vimrc|gitconfig|inputrc|tmux\.conf|editorconfig|local/bin/[^/]+)\Z)[^/.]"
)
_READS_STARTUP = words("cp scp rsync tar zip sed awk source .")
_SCANNED = 128 * 1024


# Kind of a path, the rule about changing it, and why. The first kind that a path has counts.
WRITES_ASKED = (
    (PathKind.CREDENTIAL, "credential-write", "which contains credentials"),
    (PathKind.PROMPT, "prompt-write", "which gives instructions to agents"),
    (PathKind.STARTUP, "startup-write", "which other programs later run or trust automatically"),
    (PathKind.SYSTEM, "system-write", "which belongs to the system"),
)


def path_rules(case: Case) -> Iterator[Finding]:
    if names_too_many(case.command):
        yield Finding(rule="unparsable-line", why="names more files than can be checked")
    yield from _unknown_paths(case)
    yield from _private_reads(case)
    yield from _outside_writes(case)
    if not case.command.guess and case.name not in _ONLY_READ and case.command.argv:
        yield from _mentions(case)


def _outside_writes(case: Case) -> Iterator[Finding]:
    for path in written_files(case.command):
        if (
            path not in {"-", ""}
            and not is_unknown(path)
            and any(is_outside(each, case.place) for each in case.real(path))
        ):
            yield Finding(rule="outside-write", why=f"changes {shown(path)}, outside the working directory")


def _private_reads(case: Case) -> Iterator[Finding]:
    """Yield findings for hidden files of a home, which contain other programs' sessions, tokens and mail."""
    if only_lists(case.command):
        return
    for path in read_files(case.command):
        if "." in path and any(_is_private(each, case.place) for each in case.real(path)):
            yield Finding(rule="private-read", why=f"reads {shown(path)}, private data of another program")


def _is_private(path: str, place: LookupContext) -> bool:
    found = absolute(path, place)
    return bool(_PRIVATE.search(found)) and is_outside(found, place) and in_a_home(found, place)


def _unknown_paths(case: Case) -> Iterator[Finding]:
    if any(is_unknown(path) for path in written_files(case.command)):
        yield Finding(rule="unknown-path", why="writes a file that is only known at run time")
    read = [each.target for each in case.command.redirections if each.operator in {"<", "<>"}]
    if case.name in _READS_OPERANDS and not case.command.guess:
        read += _operands_read(case)
    if any(is_unknown(path) for path in read):
        yield Finding(rule="unknown-path", why="reads a file that is only known at run time")


def _operands_read(case: Case) -> list[str]:
    """Return the operands without values of options that are numbers or patterns."""
    skipped = {
        following
        for option, following in zip(case.arguments, case.arguments[1:], strict=False)
        if option in _NUMBER_OPTIONS
    }
    return [path for path in read_files(case.command) if path not in skipped]


def _mentions(case: Case) -> Iterator[Finding]:
    """Yield findings for the paths of any other program, which may write or run them."""
    if is_outside(case.command.cwd, case.place) and in_a_home(case.command.cwd, case.place):
        yield Finding(rule="outside-path", why=f"runs in {shown(case.command.cwd)}, outside the working directory")
    if "/" in case.command.argv[0]:
        yield from _mentioned(case, case.command.argv[0])
    texts = _TEXT_OPTIONS.get(case.name, frozenset())
    previous = ""
    for argument in (*case.arguments, case.command.stdin or ""):
        if previous not in texts and "://" not in argument.replace("file://", ""):
            for path in paths_in(argument[:_SCANNED], case.place.home):
                yield from _mentioned(case, _from_link(case, path))
        previous = argument
    for path in () if case.name in _TEXT_OPTIONS else read_files(case.command):
        if PathKind.STARTUP in case.kinds(path) and case.name not in _READS_STARTUP:
            why = f"may change {shown(path)}, which other programs later run or trust automatically"
            yield Finding(rule="startup-write", why=why)


def _from_link(case: Case, path: str) -> str:
    """Return the path relative to the new link's directory, as the link resolves it."""
    if case.name != "ln" or path.startswith(("/", "~")):
        return path
    return posixpath.join(posixpath.dirname(case.arguments[-1]), path)


def _mentioned(case: Case, path: str) -> Iterator[Finding]:
    for each in case.real(path):
        if PathKind.CREDENTIAL in case.kinds(each):
            yield Finding(rule="credential-read", why=f"may read {shown(path)}, which contains credentials")
            return
        if is_outside(each, case.place) and in_a_home(each, case.place):
            yield Finding(rule="outside-path", why=f"may change {shown(path)}, outside the working directory")
            return


def paths_in(text: str, home: str) -> Iterator[str]:
    """Yield what looks like an absolute path, or one with `..`, anywhere in a text."""
    for found in _PATH.finditer(text):
        yield re.sub(r"\A\$\{?HOME\}?", lambda _: home, found[0])
