"""`hermes backup` and `hermes restore` as an operator uses them, around a real daemon."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

from hermes.cli.upkeep.backup import LEFT_OUT, STEPS
from hermes.config.home import Home
from hermes.upkeep.backup_manifest import LeftOutReason
from hermes.upkeep.next_step import StepCode
from tests.cli.conftest import Hermes
from tests.processes.stage import ProcessFixture, alive
from tests.support.daemon_process import DaemonProcess


def test_backup_of_a_running_daemon_can_be_restored(tmp_path: Path) -> None:
    target = tmp_path / "monday.tar.gz"
    with DaemonProcess() as daemon:
        session = daemon.ask("My name is Ada.").session
        done = daemon.hermes("backup", str(target))
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"Backed up to {target} (")
        rows = dict(line.split("  ", 1) for line in done.stdout.splitlines() if "  " in line)
        assert rows["api.key"].strip() == "secret; keep a copy apart from the backup"
        assert {"PATH", "admin.token", "api.key", "backup.key", "logs"} <= rows.keys()
        daemon.ask("My name is Bob.", session)

        refused = daemon.hermes("restore", str(target))
        assert refused.returncode == 75
        assert "run `hermes stop`, then restore again" in refused.stderr
        key = daemon.key
        daemon.terminate()

        restored = daemon.hermes("restore", str(target))
        assert (restored.returncode, restored.stderr) == (0, "")
        assert "is in place in" in restored.stdout
        assert "The old contents are kept in" in restored.stdout
        daemon.start()
        assert daemon.key == key
        answer = daemon.ask("Who am I?", session).text
        assert "Ada" in answer
        assert "Bob" not in daemon.hermes("show", session).stdout
        again = json.loads(daemon.hermes("backup", str(tmp_path / "again.tar"), "--json").stdout)
        assert again["hot"] is True
        assert ("backup.key", "secret") in {(each["path"], each["reason"]) for each in again["left_out"]}
        assert any(each["path"].startswith("before-restore-") for each in again["left_out"])
        assert again["problems"] == []


def test_a_backup_made_without_a_daemon_moves_to_another_home(tmp_path: Path, home: Home, hermes: Hermes) -> None:
    hermes("chat", "-z", "My name is Ada.")
    (home.data_dir / "index").mkdir(exist_ok=True)
    of_the_interface = ("chat_history.jsonl", "chat_preferences.json")
    for name in ("slack.token", "trusted_prompts.json", *of_the_interface):
        (home.data_dir / name).write_text("{}")
    (home.data_dir / os.fsdecode(b"not-utf8-\xff")).touch()
    assert "search index is rebuilt" in hermes("backup", str(tmp_path / "a.tar")).stdout
    made = json.loads(hermes("backup", str(tmp_path / "b.tar"), "--json").stdout)
    assert made["hot"] is False
    assert {"path": "not-utf8-\\xff", "reason": "unknown_name"} in made["left_out"]
    (tmp_path / "other").mkdir(mode=0o700)
    shutil.copy(home.data_dir / "backup.key", tmp_path / "other")
    other = {"HERMES_HOME": str(tmp_path / "other")}
    report = json.loads(hermes("restore", str(tmp_path / "b.tar"), "--json", **other).stdout)
    assert all((tmp_path / "other" / name).read_text() == "{}" for name in of_the_interface)
    assert report["kept_in"] is None
    assert (report["config"], report["untrusted"]) == ("none", False)
    steps = {step["code"]: step["paths"] for step in report["next_steps"]}
    assert steps == {
        "replace_files": ["a.tar", "not-utf8-\\xff"],  # the home is also where the archives are
        "replace_secrets": ["slack.token"],
        "trust_again": ["trusted_prompts.json"],
        "check_and_start": [],
        "new_api_key": [],
    }
    assert "Ada" in hermes("show", "-", **other).stdout
    assert hermes("restore", str(tmp_path / "nothing"), **other).stderr.endswith("nothing was changed\n")
    assert "Ada" in hermes("chat", "-r", "-", "-z", "Who am I?", **other).stdout


def test_every_code_has_a_sentence() -> None:
    assert set(LEFT_OUT) == set(LeftOutReason)
    assert set(STEPS) == set(StepCode)


def test_a_restore_is_refused_while_background_processes_run(tmp_path: Path, home: Home, hermes: Hermes) -> None:
    hermes("chat", "-z", "My name is Ada.")
    hermes("backup", str(tmp_path / "b.tar"))
    stage = ProcessFixture(home.data_dir / "processes")
    handle = stage.run("sleep", "600")
    try:
        refused = hermes("restore", str(tmp_path / "b.tar"))
        assert (refused.returncode, refused.stdout) == (75, "")
        assert f"{handle.id} (pid {handle.shim_pid})" in refused.stderr
        assert f"`kill {handle.shim_pid}`" in refused.stderr
        assert alive(handle.pid)
        assert not list(home.data_dir.glob("before-restore-*"))
        os.kill(handle.shim_pid, signal.SIGTERM)  # as the error says
        stage.ended(handle)
        told = hermes("restore", str(tmp_path / "b.tar"))
        assert told.returncode == 0
        assert "Next steps:" in told.stdout
        assert "hermes config check" in told.stdout
    finally:
        stage.clear()


def test_backup_of_an_empty_home_is_refused(home: Home, hermes: Hermes, tmp_path: Path) -> None:
    done = hermes("backup", str(tmp_path / "b.tar"))
    assert done.returncode == 78
    assert "nothing is stored" in done.stderr
    assert not (tmp_path / "b.tar").exists()


def test_restore_refuses_a_file_that_is_not_a_backup(tmp_path: Path, hermes: Hermes) -> None:
    environ = {"HERMES_HOME": str(tmp_path / "not" / "there")}
    junk, store = tmp_path / "junk.tar.gz", tmp_path / "store"
    junk.write_bytes(b"no archive at all" * 100)
    done = hermes("restore", str(junk), **environ)
    assert (done.returncode, done.stdout) == (1, "")
    why = "it is not an archive, or its start is damaged"
    assert done.stderr == f"hermes: {junk} cannot be used: {why}; nothing was changed\n"
    store.mkdir()
    (store / "data.mdb").write_bytes(b"no store at all" * 1000)
    assert f"{store} does not hold a Hermes store" in hermes("restore", "--untrusted", str(store), **environ).stderr
    assert not (tmp_path / "not").exists()

    mine = tmp_path / "mine"
    mine.mkdir(mode=0o700)
    (mine / "config.yaml").write_text("model: {name: offline}\n")
    assert hermes("restore", str(junk), HERMES_HOME=str(mine)).returncode == 1
    assert [each.name for each in mine.iterdir()] == ["config.yaml"]


def test_a_backup_that_is_cut_off_is_refused(tmp_path: Path, home: Home, hermes: Hermes) -> None:
    hermes("chat", "-z", "My name is Ada.")
    whole, cut = tmp_path / "whole.tar.gz", tmp_path / "cut.tar.gz"
    hermes("backup", str(whole))
    cut.write_bytes(whole.read_bytes()[:-2000])
    done = hermes("restore", str(cut))
    assert done.stderr == f"hermes: {cut} is cut off or damaged; nothing was changed\n"
    assert "Ada" in hermes("show", "-").stdout

    other = {"HERMES_HOME": str(tmp_path / "other")}
    assert not hermes("restore", str(cut), **other).stdout
    assert not (tmp_path / "other").exists()
    told = hermes("restore", "--untrusted", str(whole), **other).stdout
    assert f"The first start makes a new API key, {tmp_path}/other/api.key." in " ".join(told.split())
    again = hermes("restore", "--untrusted", str(whole), HERMES_API_KEY="0123456789abcdef", **other).stdout
    assert "new API key" not in again


def test_backup_of_another_home_needs_a_word(tmp_path: Path, home: Home, hermes: Hermes) -> None:
    hermes("chat", "-z", "My name is Ada.")
    hermes("backup", str(tmp_path / "b.tar"))
    other = {"HERMES_HOME": str(tmp_path / "other")}
    refused = hermes("restore", str(tmp_path / "b.tar"), **other)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "`--untrusted`" in refused.stderr
    assert not (tmp_path / "other").exists()
    report = json.loads(hermes("restore", "--untrusted", str(tmp_path / "b.tar"), "--json", **other).stdout)
    assert report["untrusted"]
    assert "Ada" in hermes("show", "-", **other).stdout


def test_configuration_is_kept_without_a_terminal(tmp_path: Path, home: Home, hermes: Hermes) -> None:
    hermes("chat", "-z", "My name is Ada.")
    home.config_file.write_text("# then\n")
    hermes("backup", str(tmp_path / "b.tar"))
    home.config_file.write_text("# now\n")
    told = hermes("restore", str(tmp_path / "b.tar")).stdout
    assert "was kept; `--yes` uses the one in the backup" in " ".join(told.split())
    assert home.config_file.read_text() == "# now\n"
    report = json.loads(hermes("restore", "--yes", str(tmp_path / "b.tar"), "--json").stdout)
    assert report["config"] == "applied"
    assert home.config_file.read_text() == "# then\n"
