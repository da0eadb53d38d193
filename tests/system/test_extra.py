"""Command line that installs an extra."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from hermes.system.extra import install_line


def test_install_line_for_a_checkout_and_for_the_package(tmp_path: Path) -> None:
    here = Path(__file__).parents[2]
    assert shlex.split(install_line("slack")) == [sys.executable, "-m", "pip", "install", "-e", f"{here}[slack]"]
    assert shlex.split(install_line("slack", clone=tmp_path))[-1] == "hermes-sessions[slack]"
