#!/usr/bin/env python3
"""Check the locked packages for known vulnerabilities with pip-audit.

Exit codes: 0 nothing found, 1 vulnerabilities found, 75 nothing could be checked (0 with --if-possible). A package
that the vulnerability service does not know counts as unchecked, never as sound.
"""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

LOCKS = ("build", "chat", "dev", "local")
UNREACHABLE = 75  # EX_TEMPFAIL


def main() -> int:
    if_possible = "--if-possible" in sys.argv[1:]
    checked: set[str] = set()
    unchecked: set[str] = set()
    found: set[str] = set()
    for lock in LOCKS:
        for package in report_of(Path(__file__).with_name(f"{lock}.txt")):
            name = f"{package['name']} {package.get('version', '')}".strip()
            (unchecked if package.get("skip_reason") else checked).add(name)
            found |= {f"{name}: {each['id']}, fixed in {each['fix_versions']}" for each in package.get("vulns", ())}
    for line in sorted(found):
        print(f"audit: {line}")
    if found:
        return 1
    if not checked:
        print("audit: the vulnerability service cannot be reached: NOTHING WAS CHECKED", file=sys.stderr)
        return 0 if if_possible else UNREACHABLE
    missing = f"; not checked: {', '.join(sorted(unchecked))}" if unchecked else ""
    print(f"audit: {len(checked)} packages, no known vulnerability{missing}")
    return 0


def report_of(lock: Path) -> list[dict[str, Any]]:
    """Empty when the service does not answer."""
    with TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = ["--disable-pip", "--require-hashes", "--progress-spinner=off", "--format=json", "--output", report]
        subprocess.run(
            [sys.executable, "-m", "pip_audit", *command, "--requirement", lock],
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=300,
        )
        try:
            return json.loads(report.read_text())["dependencies"]
        except (OSError, ValueError, KeyError):
            return []


if __name__ == "__main__":
    sys.exit(main())
