"""`make browser`: the dashboard in a real Chromium, with axe.

Playwright and axe-core are npm packages in exact versions (package-lock.json), installed outside the repository: in
the folder that HERMES_TEST_BROWSER names, or ~/.cache/hermes-browser. Chromium is the system's, or the program that
HERMES_TEST_CHROMIUM names. With --if-possible a machine that lacks them is told why, and nothing has failed.

--pictures writes the pictures of the documentation instead (`tests/browser/pictures.py`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.npm_packages import CannotRun, installed

HERE = Path(__file__).parent


def main(arguments: list[str]) -> int:
    try:
        chromium = _chromium()
        folder = installed(HERE, Path(os.environ.get("HERMES_TEST_BROWSER") or Path.home() / ".cache/hermes-browser"))
    except CannotRun as reason:
        print(f"The tests in a browser were not run: {reason}", file=sys.stderr)
        return 0 if "--if-possible" in arguments else 1
    rest = [each for each in arguments if each not in ("--if-possible", "--pictures")]
    environ = {**os.environ, "HERMES_TEST_BROWSER": str(folder), "HERMES_TEST_CHROMIUM": chromium}
    if "--pictures" in arguments:
        program = "from tests.browser.pictures import main; main()"
        return subprocess.run([sys.executable, "-c", program], env=environ, check=False).returncode
    with tempfile.TemporaryDirectory(prefix="browser-") as base:
        options = ["-q", "-rP", "-p", "no:cacheprovider", f"--basetemp={base}/tests"]
        command = [sys.executable, "-m", "pytest", *options, str(HERE), *rest]
        return subprocess.run(command, env=environ, check=False).returncode


def _chromium() -> str:
    wanted = os.environ.get("HERMES_TEST_CHROMIUM", "")
    found = shutil.which(wanted) if wanted else shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        raise CannotRun(f"{wanted or 'chromium'} is missing (`apt install chromium`)")
    if not shutil.which("node"):
        raise CannotRun("node is missing")
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
