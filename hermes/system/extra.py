"""The extras of the package, which some platforms need: the line that installs one into the Python that runs this."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

_CLONE = Path(__file__).parents[2]


def install_line(extra: str, *, clone: Path = _CLONE) -> str:
    """To be pasted into a shell, wherever that is."""
    python = shlex.quote(sys.executable)
    if (clone / "pyproject.toml").is_file():
        return f"{python} -m pip install -e {shlex.quote(f'{clone}[{extra}]')}"
    return f"{python} -m pip install {shlex.quote(f'hermes-sessions[{extra}]')}"
