"""The environment of child processes: the daemon's own without its secrets, and without what would wait for a person.

A variable is taken for a secret by its name, by what its value looks like, or because the configuration says so.
Too much is left out rather than too little: what is missed can be let through by name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

_SECRET_NAME: Final = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH(?!OR(?!I))|COOKIE|BEARER|JWT|PRIVATE|(^|_)(PASS|PAT|PIN)(_|$)"
    r"|_(PWD|PW|PASS)$|SSHPASS|DSN|WEBHOOK|CONNECTION_?STRING|CONN_STR",
    re.IGNORECASE,
)
_SECRET_VALUE: Final = re.compile(
    r"://[^/\s:@]*:[^/\s@]+@"  # a password in an address
    r"|\b(sk|pk|rk|xox[a-z]|xapp|gh[a-z]|glpat|github_pat)[-_][A-Za-z0-9_-]{10,}"
    r"|\bBearer\s+\S|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|\b\d{6,}:[A-Za-z0-9_-]{30,}"  # a bot's
)
# Of the service manager, for the daemon itself.
_DAEMON_ONLY: Final = re.compile(
    r"HERMES_.*|LISTEN_(FDS|PID|FDNAMES)|NOTIFY_SOCKET|WATCHDOG_\w+|INVOCATION_ID|JOURNAL_STREAM|SYSTEMD_EXEC_PID"
    r"|SHLVL|PWD|OLDPWD|_"
)
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

NOBODY_SITS_HERE: Final[Mapping[str, str]] = {
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


def child_environment(
    environ: Mapping[str, str], *, secret: Collection[str] = (), passed: Collection[str] = ()
) -> dict[str, str]:
    """`secret` names more that are held back; `passed` names what is let through although it looks like a secret.

    The daemon's own variables are never let through.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if not _DAEMON_ONLY.fullmatch(name) and (name in passed or not (name in secret or _looks_secret(name, value)))
    }
    return {"PATH": _PATH, **kept, **NOBODY_SITS_HERE}


def _looks_secret(name: str, value: str) -> bool:
    return bool(_SECRET_NAME.search(name) or _SECRET_VALUE.search(value))
