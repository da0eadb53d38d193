"""What a missing extra needs is a line that can be pasted."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from hermes.system.extra import install_line


def test_from_a_clone_the_clone_is_installed_with_the_extra_and_else_the_package(tmp_path: Path) -> None:
    here = Path(__file__).parents[2]
    assert shlex.split(install_line("slack")) == [sys.executable, "-m", "pip", "install", "-e", f"{here}[slack]"]
    assert shlex.split(install_line("slack", clone=tmp_path))[-1] == "hermes-sessions[slack]"
