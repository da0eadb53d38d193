"""`make mcp`: the daemon with the official reference servers of the Model Context Protocol.

The servers are npm and Python packages in exact versions, installed outside the repository: in the folder that
HERMES_TEST_MCP names, or ~/.cache/hermes-test-mcp. With --if-possible a machine that cannot install them is told why,
and nothing has failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

from tests.support.npm_packages import CannotRun, installed

HERE = Path(__file__).parent
PYTHON_SERVERS = ("mcp-server-fetch==2026.10.24", "mcp-server-git==2026.10.19")
INSTALL_WITHIN_S = 600


def main(arguments: list[str]) -> int:
    lenient = "--if-possible" in arguments
    folder = Path(os.environ.get("HERMES_TEST_MCP") or Path.home() / ".cache" / "hermes-test-mcp")
    try:
        installed(HERE, folder)
        _install_python(folder / "python")
    except CannotRun as reason:
        print(f"The tests with the reference servers were not run: {reason}", file=sys.stderr)
        return 0 if lenient else 1
    rest = [each for each in arguments if each != "--if-possible"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "slow", str(HERE), *rest]
    return subprocess.run(command, env={**os.environ, "HERMES_TEST_MCP": str(folder)}, check=False).returncode


def _install_python(folder: Path) -> None:
    stamp = folder / "installed"
    wanted = "\n".join(PYTHON_SERVERS)
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    venv.create(folder, with_pip=True, clear=True)
    pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", *PYTHON_SERVERS]
    try:
        done = subprocess.run(pip, capture_output=True, text=True, timeout=INSTALL_WITHIN_S, check=False)
    except subprocess.TimeoutExpired:
        raise CannotRun(f"pip did not install them within {INSTALL_WITHIN_S} s") from None
    if done.returncode:
        raise CannotRun(f"pip could not install them:\n{done.stderr.strip()[:300]}")
    stamp.write_text(wanted, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
