"""Restore: file owners, running processes, and next steps."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from hermes.upkeep.backup_manifest import LeftOut, LeftOutReason, Manifest
from hermes.upkeep.next_step import NextStep, StepCode, next_steps
from hermes.upkeep.restore import LiveProcessesError, Restored
from tests.processes.stage import ProcessFixture, alive
from tests.support.waiting import eventually
from tests.upkeep.test_backup import a_home, back_up, put_back, speaks_of

TOOL_USER = (65534, 65534)
OWNER = (12345, 12345)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")


def owners(directory: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for path in (directory, *directory.rglob("*")):
        status = path.lstat()
        found[path.relative_to(directory.parent).as_posix()] = (status.st_uid, status.st_gid)
    return found


@as_root
def test_files_of_the_sandbox_user_are_its_own_after_a_restore(tmp_path: Path) -> None:
    home = a_home(tmp_path / "home")
    files = home.data_dir / "work" / "a" / "files"
    (files / "deep").mkdir(parents=True)
    (files / "deep" / "x").write_text("x")
    (files / "link").symlink_to("deep")
    for path in (files, *files.rglob("*")):
        os.chown(path, *TOOL_USER, follow_symlinks=False)
    output = home.data_dir / "work" / "a" / "output"
    output.write_text("for tools to read")
    output.chmod(0o644)
    before = owners(home.data_dir / "work")
    back_up(home, tmp_path / "b.tar")
    put_back(home, tmp_path / "b.tar")
    assert owners(home.data_dir / "work") == before
    assert output.stat().st_mode & 0o777 == 0o644


@as_root
def test_everything_restored_belongs_to_the_owner_of_the_home(tmp_path: Path) -> None:
    first = a_home(tmp_path / "first")
    back_up(first, tmp_path / "b.tar")
    home = a_home(tmp_path / "home", "second")
    os.chown(home.data_dir, *OWNER)
    put_back(home, tmp_path / "b.tar", like=first)
    for name in ("store", "work", "media", "processes", "SOUL.md", "config.yaml"):
        assert set(owners(home.data_dir / name).values()) == {OWNER}, name


def test_a_restore_is_refused_while_a_process_of_the_home_runs(tmp_path: Path) -> None:
    home = a_home(tmp_path / "home")
    back_up(home, tmp_path / "b.tar")
    shutil.rmtree(home.data_dir / "processes")
    stage = ProcessFixture(home.data_dir / "processes")
    first, second = stage.run("sleep", "600"), stage.run("sleep", "600")
    try:
        os.kill(second.shim_pid, signal.SIGKILL)  # its command runs on without a shim
        eventually(lambda: stage.running().get(second.id) == second.pid)
        for untrusted in (False, True):
            with pytest.raises(LiveProcessesError) as refused:
                put_back(home, tmp_path / "b.tar", untrusted=untrusted)
            assert refused.value.pids == {first.id: first.shim_pid, second.id: second.pid}
        assert alive(first.pid)
        assert not list(home.data_dir.glob("before-restore-*"))
    finally:
        stage.clear()
    eventually(lambda: not stage.running())
    put_back(home, tmp_path / "b.tar")
    assert speaks_of(home, "first")


# ---------------------------------------------------------------- next steps


def a_restore(*left_out: LeftOut, untrusted: bool = False) -> Restored:
    manifest = Manifest(version="1", made_at=0.0, home="/", hot=False, files=(), left_out=left_out)
    return Restored(manifest=manifest, kept_in=None, names=(), open_sessions=(), outgoing=0, untrusted=untrusted)


def out(path: str, reason: LeftOutReason) -> LeftOut:
    return LeftOut(path=path, reason=reason)


START = NextStep(code=StepCode.CHECK_AND_START)


def test_a_restore_in_the_same_home_needs_only_a_start() -> None:
    restored = a_restore(
        out("api.key", LeftOutReason.SECRET), out("slack.token", LeftOutReason.SECRET), out("logs", LeftOutReason.LOG)
    )
    assert next_steps(restored, {"api.key", "backup.key", "slack.token"}, new_key=False) == (START,)


def test_a_restore_elsewhere_names_what_is_missing() -> None:
    restored = a_restore(
        out("api.key", LeftOutReason.SECRET),
        out("backup.key", LeftOutReason.SECRET),
        out("service.env", LeftOutReason.SECRET),
        out("trusted_prompts.json", LeftOutReason.TRUST),
        out("work/a/etc", LeftOutReason.LINK_OUTSIDE),
        out("processes/p/stdin", LeftOutReason.SPECIAL_FILE),
    )
    assert next_steps(restored, {"backup.key"}, new_key=True) == (
        NextStep(code=StepCode.REPLACE_FILES, paths=("work/a/etc",)),
        NextStep(code=StepCode.REPLACE_SECRETS, paths=("service.env",)),
        NextStep(code=StepCode.TRUST_AGAIN, paths=("trusted_prompts.json",)),
        START,
        NextStep(code=StepCode.NEW_API_KEY),
    )


def test_an_untrusted_restore_needs_pairing_and_resuming() -> None:
    steps = next_steps(a_restore(untrusted=True), set(), new_key=False)
    assert [step.code for step in steps] == [
        StepCode.KEEP_BACKUP_KEY,
        StepCode.PAIR_AGAIN,
        StepCode.CHECK_AND_START,
        StepCode.RESUME_SESSIONS,
    ]
