"""Dangers of permissions: files that all users can write, programs that run as their owner."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes.shell_policy.bash.syntax import UNKNOWN
from hermes.shell_policy.file_access import operands
from hermes.shell_policy.finding import Case, Finding


def permission_rules(case: Case) -> Iterator[Finding]:
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
