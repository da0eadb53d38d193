"""Logging: destinations, masking, and logs that cannot be written."""

from __future__ import annotations

import io
import json
import logging
import re
import stat
import sys
import threading
from pathlib import Path

import pytest
from loguru import logger

from hermes.config import log
from hermes.config.home import Home, prepare
from hermes.config.loader import LogConfig
from hermes.config.log import Terminal, configure_logging, print_among_lines, redact
from hermes.config.secret import Secret


@pytest.fixture
def home(tmp_path: Path, logs_of_its_own: None) -> Home:
    home = Home.from_environ({"HERMES_HOME": str(tmp_path / "home")})
    prepare(home)
    return home


def log_file(home: Home) -> Path:
    return home.log_dir / "hermes.log"


def raised(error: Exception) -> Exception:
    """With a traceback, as if it had come out of our code."""
    try:
        raise error
    except type(error) as caught:
        return caught


def on_stderr(capsys: pytest.CaptureFixture[str]) -> str:
    logger.remove()  # waits for the thread that writes there
    return capsys.readouterr().err


def test_lines_go_to_stderr_and_to_a_private_file(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(LogConfig(), home)
    logger.bind(session="s1", count=3).info("it is {}", "so")
    logger.debug("too quiet")
    for text in (on_stderr(capsys), log_file(home).read_text()):
        assert text.endswith(f"INFO    {__name__}: it is so session=s1 count=3\n")
        assert "too quiet" not in text
    assert stat.S_IMODE(log_file(home).stat().st_mode) == 0o600


def test_a_file_is_only_written_when_wanted(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(LogConfig(file=False), home)
    logger.error("here")
    assert "here" in on_stderr(capsys)
    assert not log_file(home).exists()


def test_configuring_again_replaces_what_was_there(home: Home) -> None:
    configure_logging(LogConfig(level="ERROR"), home)
    configure_logging(LogConfig(level="DEBUG"), home)
    logger.debug("once")
    assert log_file(home).read_text().count("once") == 1


def test_json_lines_hold_the_message_the_bound_ids_and_the_trace(home: Home) -> None:
    configure_logging(LogConfig(json=True), home)
    error = raised(ValueError("broken {braces} <red>tags</red>"))
    logger.bind(session="s1", attempt=2).opt(exception=error).error("it {failed}")
    line = json.loads(log_file(home).read_text())
    assert (line["level"], line["message"], line["session"], line["attempt"]) == ("ERROR", "it {failed}", "s1", 2)
    assert line["trace"].endswith("ValueError: broken {braces} <red>tags</red>")


SECRETS = [
    "sk-proj-abcdefghijklmnop",
    "xoxb-123456789012-abcdefghij",
    "xoxp-123456789012-abcdefghij",
    "xapp-1-A0123456789-abcdef",
    "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw5",
    "Bearer abc.def-ghi",
    "bearer abc.def-ghi",
    "canary-of-a-known-secret+/=",
]


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("secret", SECRETS)
def test_secrets_are_masked_wherever_they_turn_up(
    home: Home, capsys: pytest.CaptureFixture[str], secret: str, as_json: bool
) -> None:
    redact(Secret("canary-of-a-known-secret+/="))
    configure_logging(LogConfig(json=as_json), home)
    logger.bind(header=f"Authorization: {secret}").warning("GET https://api.example/{}/getMe", secret)
    logging.getLogger("library").warning("request with %s", secret)
    local = secret  # values of variables do not belong in a traceback
    error = raised(RuntimeError(f"refused: {secret}"))
    logger.opt(exception=error).error("failed")
    logging.getLogger("library").error("failed, too", exc_info=error)
    written = log_file(home).read_text() + on_stderr(capsys)
    assert local.removeprefix("Bearer ").removeprefix("bearer ") not in written
    assert written.count("***") >= 6
    assert "refused: ***" in written


def test_a_token_within_a_url_is_masked(home: Home) -> None:
    configure_logging(LogConfig(), home)
    logger.info("GET https://api.telegram.org/bot110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw5/getMe")
    assert "org/bot***/getMe" in log_file(home).read_text()


def test_short_secret_is_not_masked(home: Home) -> None:
    redact(Secret("the"))
    configure_logging(LogConfig(), home)
    logger.info("the other")
    assert "the other" in log_file(home).read_text()


def test_libraries_log_the_same_way_from_warning_on(home: Home) -> None:
    configure_logging(LogConfig(level="DEBUG"), home)
    for name in ("aiohttp.access", "asyncio", "pykka", "httpx"):
        logging.getLogger(name).info("quiet %s", name)
        logging.getLogger(name).warning("loud %s", name)
    logging.getLogger("clumsy").error("%d", "not a number")
    text = log_file(home).read_text()
    assert "quiet" not in text
    assert text.count("loud") == 4
    assert "library=aiohttp.access" in text
    assert "ERROR" in text
    assert "%d library=clumsy" in text


def test_a_full_disk_costs_lines_and_not_the_daemon(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    log_file(home).symlink_to("/dev/full")
    configure_logging(LogConfig(), home)
    for number in range(50):
        logger.info("line {}", number)
    configure_logging(LogConfig(), home)  # as a reload does
    logger.info("line 50")
    told = on_stderr(capsys)
    assert "line 50" in told
    assert told.count("cannot be written: No space left on device") == 2


def test_a_log_that_could_not_be_opened_is_tried_again(home: Home) -> None:
    home.log_dir.rmdir()
    home.log_dir.write_text("in the way")
    configure_logging(LogConfig(), home)
    logger.info("lost")
    home.log_dir.unlink()
    home.log_dir.mkdir()
    logger.info("kept")
    assert "kept" in log_file(home).read_text()


def test_text_that_is_not_unicode_can_be_logged(home: Home) -> None:
    configure_logging(LogConfig(), home)
    logger.info("half a pair: {}", "\ud800")
    assert r"half a pair: \ud800" in log_file(home).read_text()


def test_file_is_rotated_and_old_ones_are_limited(home: Home) -> None:
    configure_logging(LogConfig(rotation_mb=1, keep=2), home)
    for number in range(5):
        logger.info("{} {}", number, "x" * 900_000)
    files = sorted(home.log_dir.iterdir())
    assert [each.name for each in files] == ["hermes.log", "hermes.log.1", "hermes.log.2"]
    assert [re.findall(r": (\d) x", each.read_text()) for each in files] == [["4"], ["3"], ["2"]]
    assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}


def test_restart_appends_to_the_same_log_file(home: Home) -> None:
    for _ in range(2):
        configure_logging(LogConfig(), home)
        logger.info("again")
    assert log_file(home).read_text().count("again") == 2


class Stuck(io.StringIO):
    """Takes nothing until somebody reads."""

    def __init__(self) -> None:
        super().__init__()
        self.read_again = threading.Event()

    def write(self, text: str) -> int:
        self.read_again.wait(30)
        return super().write(text)


def test_blocked_terminal_does_not_block_and_reports_dropped_lines() -> None:
    stream = Stuck()
    terminal = Terminal(stream)
    for number in range(5000):
        terminal.write(f"{number}\n")
    stream.read_again.set()
    while "lines dropped" not in stream.getvalue():
        terminal.write("more\n")
    terminal.stop()
    assert "\n998\n999\n" in stream.getvalue()


class Writes(io.StringIO):
    """Remembers each write by itself."""

    def __init__(self, kept: list[str]) -> None:
        super().__init__()
        self._kept = kept

    def write(self, text: str) -> int:
        self._kept.append(text)
        return len(text)


def test_printed_text_follows_pending_log_lines(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(log, "_TERMINAL_TIMEOUT_S", 30.0)
    monkeypatch.setattr(sys, "stderr", Writes(written))
    monkeypatch.setattr(sys, "stdout", Writes(written))
    configure_logging(LogConfig(), home)
    for number in range(100):
        logger.info("line {}", number)
    print_among_lines("two\nlines")
    assert len(written) == 101
    assert all(each.endswith("\n") for each in written)
    assert written[-1] == "two\nlines\n"


def test_flush_of_a_blocked_terminal_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stuck()
    terminal = Terminal(stream)
    terminal.write("one\n")
    terminal.catch_up()
    assert not stream.getvalue()
    monkeypatch.setattr(log, "_TERMINAL_TIMEOUT_S", 30.0)
    stream.read_again.set()
    terminal.catch_up()
    assert stream.getvalue() == "one\n"
    terminal.stop()
