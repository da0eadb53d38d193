"""A text in the person's own editor. Blocks until the editor ends."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

_DEFAULT = "vi"


def edited(text: str) -> str | None:
    """Return the text after the editor ended; None if it failed."""
    command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or _DEFAULT)
    with tempfile.TemporaryDirectory(prefix="hermes-") as directory:  # private, as the text may be
        file = Path(directory) / "message.md"
        file.write_text(text, encoding="utf-8")
        try:
            done = subprocess.run([*command, str(file)], check=False)  # noqa: S603 - the person's own editor
        except OSError:
            return None
        return file.read_text(encoding="utf-8", errors="replace").rstrip("\n") if done.returncode == 0 else None
