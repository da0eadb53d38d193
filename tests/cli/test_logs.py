"""`hermes logs`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from datetime import datetime
from pathlib import Path

import pytest

from hermes.cli.main import main
from hermes.config.home import Home, prepare
from hermes.domain.read.log_line import LogFilter, entries, parse_line, parse_since
from tests.cli.conftest import Hermes, command
from tests.support.waiting import eventually

NEW = "2026-11-17 10:00:00.000 INFO    hermes.app: session s1: turn started"
BAD = (
    "2026-11-17 10:00:01.000 ERROR   hermes.app: failed session=s2\nTraceback (most recent call last):\n  ValueError"
)
OLD = "2026-11-16 09:00:00.000 WARNING hermes.app: old"
AS_JSON = '{"at": "2026-11-17T10:00:02.000000+00:00", "level": "INFO", "logger": "hermes.x", "message": "as json"}'


@pytest.fixture
def log(home: Home) -> Path:
    prepare(home)
    (home.log_dir / "hermes.log.1").write_text(f"{OLD}\n")
    file = home.log_dir / "hermes.log"
    file.write_text(f"{NEW}\n{BAD}\n{AS_JSON}\n")
    return file


def test_prints_all_files_in_order(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs"]) == 0
    assert capsys.readouterr().out == f"{OLD}\n{NEW}\n{BAD}\n{AS_JSON}\n"
    assert main(["logs", "-n", "1"]) == 0
    assert capsys.readouterr().out == f"{AS_JSON}\n"


def test_filters(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "--level", "warning"]) == 0
    assert capsys.readouterr().out == f"{OLD}\n{BAD}\n"
    assert main(["logs", "--since", "2026-11-17", "--level", "error", "--json"]) == 0
    (line,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (line["level"], line["logger"]) == ("ERROR", "hermes.app")
    assert line["message"].endswith("ValueError")


def test_no_log_is_an_error(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs"]) == 1
    assert "there is no log at" in capsys.readouterr().err


def test_follow_goes_on_across_a_rotation(log: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    with output.open("w") as out:
        process = subprocess.Popen(
            command("logs", "-f", "-n", "0"),
            stdout=out,
            env={**os.environ, "HERMES_HOME": str(log.parent.parent), "PYTHONUNBUFFERED": "1"},
        )
    try:
        # It reads the end of the file before it waits; a line that is written again and again is seen.
        number = 0

        def appended() -> bool:
            nonlocal number
            number += 1
            with log.open("a") as file:
                file.write(f"2026-11-17 10:00:03.000 INFO    x: line {number}\n")
            return "x: line" in output.read_text()

        eventually(appended)
        log.replace(log.with_name("hermes.log.1"))
        log.write_text("2026-11-17 10:00:04.000 INFO    x: after the rotation\n")
        eventually(lambda: "after the rotation" in output.read_text())
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    finally:
        process.kill()
        process.wait()


def test_a_traceback_belongs_to_its_line() -> None:
    found = list(entries(["  torn", *NEW.splitlines(), *BAD.splitlines()]))
    assert [each.raw for each in found] == [NEW, BAD]
    assert LogFilter(session="s2").admits(found[1])
    assert not LogFilter(session="s2").admits(found[0])
    assert parse_line("{broken") is None


def test_times() -> None:
    assert parse_since("10m", 1000.0) == 400.0
    assert parse_since("2026-01-02T03:04", 0.0) == datetime(2026, 1, 2, 3, 4).astimezone().timestamp()
    with pytest.raises(ValueError, match="expected a time"):
        parse_since("soon", 0.0)


def test_a_wrong_time_is_a_usage_error(log: Path, hermes: Hermes) -> None:
    done = hermes("logs", "--since", "soon")
    assert (done.returncode, "expected a time like 10m" in done.stderr) == (2, True)
