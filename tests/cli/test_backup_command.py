"""`hermes backup` and `hermes restore` as an operator uses them, around a real daemon."""

from __future__ import annotations

import json
from pathlib import Path

from hermes.home import Home
from tests.cli.conftest import Hermes
from tests.daemon_process import DaemonProcess


def test_a_day_is_backed_up_while_it_goes_on_and_brought_back(tmp_path: Path) -> None:
    target = tmp_path / "monday.tar.gz"
    with DaemonProcess() as daemon:
        session = daemon.ask("My name is Ada.").session
        done = daemon.hermes("backup", str(target))
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"Backed up to {target} (")
        assert "Left out: api.key, logs" in done.stdout
        daemon.ask("My name is Bob.", session)

        refused = daemon.hermes("restore", str(target))
        assert refused.returncode == 75
        assert "`hermes stop` it first, then restore" in refused.stderr
        key = daemon.key
        daemon.terminate()

        restored = daemon.hermes("restore", str(target))
        assert (restored.returncode, restored.stderr) == (0, "")
        assert "is in place in" in restored.stdout
        assert "What was there before is kept in" in restored.stdout
        daemon.start()
        assert daemon.key == key
        answer = daemon.ask("Who am I?", session).text
        assert "Ada" in answer
        assert "Bob" not in daemon.hermes("show", session).stdout
        again = json.loads(daemon.hermes("backup", str(tmp_path / "again.tar"), "--json").stdout)
        assert again["hot"] is True
        assert any(name.startswith("before-restore-") for name in again["left_out"])
        assert again["problems"] == []


def test_a_backup_made_without_a_daemon_moves_to_another_home(tmp_path: Path, home: Home, hermes: Hermes) -> None:
    hermes("chat", "-z", "My name is Ada.")
    made = json.loads(hermes("backup", str(tmp_path / "b.tar"), "--json").stdout)
    assert made["hot"] is False
    other = {"HERMES_HOME": str(tmp_path / "other")}
    report = json.loads(hermes("restore", str(tmp_path / "b.tar"), "--json", **other).stdout)
    assert report["kept_in"] is None
    assert "Ada" in hermes("show", "-", **other).stdout
    assert hermes("restore", str(tmp_path / "nothing"), **other).stderr.endswith("nothing was changed\n")
    assert "Ada" in hermes("chat", "-r", "-", "-z", "Who am I?", **other).stdout


def test_nothing_is_no_backup(home: Home, hermes: Hermes, tmp_path: Path) -> None:
    done = hermes("backup", str(tmp_path / "b.tar"))
    assert done.returncode == 78
    assert "nothing is stored" in done.stderr
    assert not (tmp_path / "b.tar").exists()
