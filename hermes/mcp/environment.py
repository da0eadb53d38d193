"""Environment, headers and arguments of MCP servers: minimal, with `${NAME}` taken from the daemon's environment."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from hermes.config.log import redact
from hermes.config.secret import Secret
from hermes.domain.mcp.server_spec import McpServerSpec, Pairs
from hermes.mcp.link_error import LinkFailure, McpLinkError

_PASSED = re.compile(r"PATH|HOME|LANG|LANGUAGE|LC_[A-Z]+|TZ|USER|LOGNAME|TMPDIR")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_OWN = "HERMES_"


def server_environment(spec: McpServerSpec, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the whole environment of a child. Raises McpLinkError if a variable is missing."""
    kept = {name: value for name, value in environ.items() if _PASSED.fullmatch(name)}
    return {"PATH": _PATH, **kept, **_filled(spec.env, environ)}


def program(spec: McpServerSpec, environ: Mapping[str, str]) -> str:
    """Return the path of the server's program, as its environment finds it. Blocks. Raises McpLinkError."""
    name = str(Path(spec.command).expanduser()) if spec.command.startswith("~") else spec.command
    found = shutil.which(name, path=environ.get("PATH"))
    if found is None:
        raise McpLinkError(LinkFailure.SETUP, f"there is no program {spec.command} in the PATH of the daemon")
    return found


def server_headers(spec: McpServerSpec, environ: Mapping[str, str]) -> dict[str, str]:
    return _filled(spec.headers, environ)


def filled(text: str, environ: Mapping[str, str], *, learn: Callable[[Secret], None] = redact) -> str:
    """Return the text with references replaced. Their values are masked in logs and results."""

    def value(found: re.Match[str]) -> str:
        name = found[1]
        given = "" if name.startswith(_OWN) else environ.get(name, "")
        if not given:
            raise McpLinkError(
                LinkFailure.SETUP,
                f"the variable {name} is not set in the environment of the daemon; set it and restart",
            )
        learn(Secret(given))
        return given

    return _REFERENCE.sub(value, text)


def _filled(pairs: Pairs, environ: Mapping[str, str]) -> dict[str, str]:
    return {name: filled(value, environ) for name, value in pairs}
