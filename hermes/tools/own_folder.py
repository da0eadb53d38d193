"""Folders of conversations in Hermes' home: each conversation has its own, and reaches no other one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def anothers_folders(folder: Path, hermes_home: str) -> Callable[[str], bool]:
    """Return a check of paths without links: whether one is in the folder of another conversation.

    Looks at the disk, which the check does not.
    """
    work, own = Path(os.path.realpath(hermes_home), "work"), os.path.realpath(folder)
    return lambda real: Path(real).is_relative_to(work) and not Path(real).is_relative_to(own)
