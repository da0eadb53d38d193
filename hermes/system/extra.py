"""Command line that installs an extra of the package into the running Python."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

_CLONE = Path(__file__).parents[2]


def install_line(extra: str, *, clone: Path = _CLONE) -> str:
    """Return a command for a shell, independent of its directory."""
    python = shlex.quote(sys.executable)
    if (clone / "pyproject.toml").is_file():
        return f"{python} -m pip install -e {shlex.quote(f'{clone}[{extra}]')}"
    return f"{python} -m pip install {shlex.quote(f'hermes-sessions[{extra}]')}"
