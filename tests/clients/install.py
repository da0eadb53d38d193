"""Install a client outside the repository: one venv or npm folder for each set of exact versions."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import platformdirs

from tests.clients.catalog import Client, Ecosystem

INSTALL_WITHIN_S = 1800
DRIVERS = Path(__file__).parent / "drivers"
ROOT = Path(__file__).parents[2]


class CannotInstall(Exception):  # noqa: N818 - a reason, not a failure of the client
    """Says which step failed, and how."""


def cache_folder() -> Path:
    named = os.environ.get("HERMES_TEST_CLIENTS")
    return Path(named) if named else platformdirs.user_cache_path("hermes-test") / "clients"


def installed(client: Client) -> list[str]:
    """Return the command that starts the client's driver, after installing the client if necessary."""
    install = install_python if client.ecosystem is Ecosystem.PYTHON else _install_node
    folder = install_into(cache_folder(), client.key, client.packages, install)
    if client.ecosystem is Ecosystem.PYTHON:
        return [str(folder / "bin" / "python"), "-m", f"tests.clients.drivers.{client.driver}"]
    return ["node", str(_copied_driver(client, folder))]


def install_into(
    cache: Path, name: str, packages: Sequence[str], install: Callable[[Sequence[str], Path], None]
) -> Path:
    """Return the folder with exactly these packages, after installing them if necessary."""
    versions = hashlib.sha256("\n".join(packages).encode()).hexdigest()[:12]
    folder = cache / f"{name}-{versions}"
    stamp = folder / "installed"
    if not stamp.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        install(packages, folder)
        stamp.touch()
    return folder


def install_python(packages: Sequence[str], folder: Path) -> None:
    _run([sys.executable, "-m", "venv", str(folder)])
    _run([str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", *packages])


def _install_node(packages: Sequence[str], folder: Path) -> None:
    if not shutil.which("npm"):
        raise CannotInstall("npm is missing")
    quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    _run(["npm", "install", *quiet, "--save-exact", "--prefix", str(folder), *packages])


def _copied_driver(client: Client, folder: Path) -> Path:
    """Copy the driver beside the packages: Node resolves imports from the place of the file."""
    for script in DRIVERS.glob("*.mjs"):
        shutil.copy(script, folder / script.name)
    return folder / f"{client.driver}.mjs"


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_WITHIN_S, check=False)
    except subprocess.TimeoutExpired:
        raise CannotInstall(f"{command[0]} did not finish within {INSTALL_WITHIN_S} s") from None
    if done.returncode:
        raise CannotInstall(f"{' '.join(command[:3])} failed: {done.stderr.strip()[-500:]}")
