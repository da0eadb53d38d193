"""Check that a path is not in another conversation's folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def anothers_folders(folder: Path, hermes_home: str) -> Callable[[str], bool]:
    """Return a check for real paths: True if the path is in another conversation's folder.

    This function reads the disk; the returned check does not.
    """
    work, own = Path(os.path.realpath(hermes_home), "work"), os.path.realpath(folder)
    return lambda real: Path(real).is_relative_to(work) and not Path(real).is_relative_to(own)
