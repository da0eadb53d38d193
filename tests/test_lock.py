"""The lock files: they satisfy pyproject.toml on every supported Python, and name no place to get packages from."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
CONTENTS = {
    "base": [],
    "chat": [*EXTRAS["slack"], *EXTRAS["telegram"], *EXTRAS["web"]],
    "dev": EXTRAS["dev"],
    "local": EXTRAS["local"],
}
MACHINES = [
    {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": system,
        "platform_system": {"linux": "Linux", "darwin": "Darwin"}[system],
        "platform_machine": machine,
    }
    for python, system, machine in product(("3.11", "3.12", "3.13"), ("linux", "darwin"), ("x86_64", "aarch64"))
]


def locked(name: str) -> list[Requirement]:
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    return [Requirement(line.partition("--hash")[0]) for line in text.splitlines() if line.strip()]


def versions(name: str, machine: dict[str, str]) -> dict[str, Version]:
    """What would be installed there."""
    found: dict[str, Version] = {}
    for each in locked(name):
        if each.marker is None or each.marker.evaluate(machine):
            package = canonicalize_name(each.name)
            assert package not in found, package
            [pin] = each.specifier
            found[package] = Version(pin.version)
    return found


@pytest.mark.parametrize("name", CONTENTS)
def test_lock_satisfies_the_ranges_of_the_project(name: str) -> None:
    wanted = [Requirement(each) for each in (*PROJECT["project"]["dependencies"], *CONTENTS[name])]
    for machine in MACHINES:
        found = versions(name, machine)
        for each in wanted:
            if each.marker is None or each.marker.evaluate(machine):
                assert each.specifier.contains(found[canonicalize_name(each.name)]), (each, machine)


def test_build_lock_satisfies_the_build_system() -> None:
    found = versions("build", MACHINES[0])
    for each in map(Requirement, PROJECT["build-system"]["requires"]):
        assert each.specifier.contains(found[canonicalize_name(each.name)])


@pytest.mark.parametrize("name", ["base", "build", "chat", "local"])
def test_locks_that_are_installed_together_agree(name: str) -> None:
    for machine in MACHINES:
        dev = versions("dev", machine)
        assert all(dev.get(package, pin) == pin for package, pin in versions(name, machine).items())


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_every_package_has_hashes_and_no_address(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    entries = [entry for entry in text.replace("\\\n", " ").splitlines() if entry.strip()]
    assert entries
    for entry in entries:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry[:80]
    assert not re.search(r"https?://|file:|--(?:extra-)?index-url|--find-links|@ /", text)


def test_make_ci_and_container_install_from_the_lock() -> None:
    for name in ("Makefile", "Containerfile"):
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
            if re.search(r"pip install|\$\(PIP\)", line) and ":=" not in line:
                assert "--require-hashes" in line or "--no-deps" in line, line


FAKE = """
import json, sys
report = sys.argv[sys.argv.index("--output") + 1]
if {packages!r} is not None:
    open(report, "w").write(json.dumps({{"dependencies": {packages!r}}}))
sys.exit(1)
"""
SOUND = {"name": "a", "version": "1", "vulns": []}
SKIPPED = {"name": "b", "skip_reason": "not found"}
BAD = {"name": "c", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}


@pytest.mark.parametrize(
    ("packages", "flags", "code", "said"),
    [
        ([SOUND], [], 0, "no known vulnerability"),
        ([SOUND, SKIPPED], [], 0, "not checked: b"),
        ([SOUND, BAD], [], 1, "c 1: CVE-1"),
        ([SOUND, BAD], ["--if-possible"], 1, "c 1: CVE-1"),
        ([SKIPPED], [], 75, "NOTHING WAS CHECKED"),
        ([SKIPPED], ["--if-possible"], 0, "NOTHING WAS CHECKED"),
        (None, [], 75, "NOTHING WAS CHECKED"),
        (None, ["--if-possible"], 0, "NOTHING WAS CHECKED"),
    ],
)
def test_audit_fails_on_findings_and_says_when_nothing_was_checked(
    tmp_path: Path, packages: list[dict[str, Any]] | None, flags: list[str], code: int, said: str
) -> None:
    (tmp_path / "pip_audit.py").write_text(FAKE.format(packages=packages))
    done = subprocess.run(
        [sys.executable, str(ROOT / "requirements" / "audit.py"), *flags],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert (done.returncode, said in done.stdout + done.stderr) == (code, True), done
