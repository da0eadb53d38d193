"""Environment of tool processes: allow-listed variables of the daemon, and settings that prevent prompts.

A secret can have any name, so only listed variables are passed. The owner can add names (`terminal.pass_variables`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

_PASSED: Final = re.compile(r"PATH|HOME|LANG|LANGUAGE|LC_[A-Z]+|TZ|USER|LOGNAME|SHELL")
_DAEMON_ONLY: Final = re.compile(r"HERMES_.*")
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

NON_INTERACTIVE: Final[Mapping[str, str]] = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "NPM_CONFIG_YES": "true",
}


def child_environment(environ: Mapping[str, str], *, passed: Collection[str] = ()) -> dict[str, str]:
    """Return the environment. `passed` names more variables; HERMES_* variables are never passed."""
    kept = {
        name: value
        for name, value in environ.items()
        if (_PASSED.fullmatch(name) or name in passed) and not _DAEMON_ONLY.fullmatch(name)
    }
    return {"PATH": _PATH, **kept, **NON_INTERACTIVE}
