"""`install.sh` refuses what it cannot install, and changes nothing then. `make dist` runs it with a real wheel."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def install(home: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environ = {"HOME": str(home), "PATH": os.environ["PATH"]}
    command = ["sh", str(ROOT / "install.sh"), *options]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=50)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--nope",), "unknown option --nope"),
        (("--prefix",), "--prefix needs a value"),
        (("/no/such.whl",), "there is no /no/such.whl"),
        (("/tmp",), "is not the source folder of Hermes"),
        (("a", "b"), "name one wheel or folder"),
        (("--python", "no-such-python", str(ROOT)), "there is no no-such-python"),
    ],
)
def test_what_cannot_be_installed_changes_nothing(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    done = install(tmp_path, *options)
    assert (done.returncode, said in done.stderr) == (1, True), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_directory_of_another_program_is_not_touched(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "file").touch()
    done = install(tmp_path, "--prefix", str(taken), "--bin", str(tmp_path / "bin"), str(ROOT))
    assert "is not a virtual environment" in done.stderr
    assert [each.name for each in taken.iterdir()] == ["file"]


def test_help_names_every_option(tmp_path: Path) -> None:
    done = install(tmp_path, "--help")
    assert done.returncode == 0
    assert all(option in done.stdout for option in ("--prefix", "--bin", "--python", "--extras", "WHEEL|FOLDER"))
