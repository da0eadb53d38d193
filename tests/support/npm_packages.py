"""npm packages for tests: exact versions with checksums, installed without their scripts outside the repository."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

LISTS = ("package.json", "package-lock.json")
INSTALL_WITHIN_S = 300


class CannotRun(Exception):  # noqa: N818 - a reason, not a failure of the tests
    """Says what this machine lacks."""


def installed(lists: Path, folder: Path) -> Path:
    """Install the packages that the directory `lists` names into `folder`, unless they are there."""
    stamp = folder / "installed"
    wanted = (lists / "package-lock.json").read_text(encoding="utf-8")
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return folder
    if not shutil.which("npm"):
        raise CannotRun("npm is missing")
    folder.mkdir(parents=True, exist_ok=True)
    for name in LISTS:
        shutil.copy(lists / name, folder / name)
    install = [
        "npm",
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
        "--fetch-retry-mintimeout=1000",  # a machine without a network finds out soon
        "--fetch-retry-maxtimeout=3000",
        "--prefix",
        str(folder),
    ]
    try:
        done = subprocess.run(install, capture_output=True, text=True, timeout=INSTALL_WITHIN_S, check=False)
    except subprocess.TimeoutExpired:
        raise CannotRun(f"npm did not install them within {INSTALL_WITHIN_S} s") from None
    if done.returncode:
        raise CannotRun(f"npm could not install them:\n{done.stderr.strip()[:300]}")
    stamp.write_text(wanted, encoding="utf-8")
    return folder
