"""Dangers of the network: data that is sent, and access to this machine."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes.shell_policy.bash.syntax import words
from hermes.shell_policy.finding import Case, Finding
from hermes.shell_policy.own_daemon import connects_to_unknown_socket

_REQUESTS = words("curl wget http https xh curlie")
_SENDS_FILE = re.compile(
    r"(?:^|\s)(?:-[a-zA-Z#]*d|--data(?:-\w+)?|--json|-[a-zA-Z#]*H|--header|-[a-zA-Z#]*u)(?:=|\s*)[\w.\[\]-]*@(?!-(?:\s|$))\S"
    r"|(?:^|\s)(?:-[a-zA-Z#]*b|--cookie)(?:=|\s*)[^\s=]+(?:\s|$)|--(?:post|body)-file"
)


def network_rules(case: Case) -> Iterator[Finding]:
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
