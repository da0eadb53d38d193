"""Directories that the owner opens, with Hermes' own directories somewhere below them."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from hermes.domain.process.sandbox_launch import OUTER_ENVIRONMENT
from hermes.sandbox.box import boxed_line
from hermes.sandbox.sandbox import open_sandbox
from hermes.sandbox.sandbox_plan import SandboxRules
from tests.sandbox.boxes import working_sandbox


@pytest.mark.parametrize("writable", [True, False])
def test_commands_start_with_hermes_below_an_opened_directory(tmp_path: Path, writable: bool) -> None:
    working_sandbox()
    opened = tmp_path / "opened"
    data = opened / "private/data"
    (data / "work/s1").mkdir(parents=True)
    (opened / "private").chmod(0o700)
    (data / "api.key").write_text("a secret")
    (opened / "note").write_text("a note")
    for parent in (opened, tmp_path):
        parent.chmod(0o755)
    paths = (str(opened),)
    rules = SandboxRules(write_paths=paths, secret_paths=(str(data),))
    if not writable:
        rules = SandboxRules(read_paths=paths, secret_paths=(str(data),))
    sandbox = open_sandbox(rules, home="/home/ann", enabled=True)
    place = sandbox.place(data / "work/s1", str(data / "work/s1/files"))
    script = f"cat {opened}/note; cat {data}/api.key; touch x && echo wrote"
    with ExitStack() as held:
        argv, descriptors = boxed_line(sandbox.box(sandbox.plan(place)), ("/bin/sh", "-c", script), held)
        done = subprocess.run(
            argv, pass_fds=descriptors, env=OUTER_ENVIRONMENT, capture_output=True, text=True, check=False
        )
    assert done.stdout == "a notewrote\n", done.stderr
    assert (data / "work/s1/files/x").exists()
