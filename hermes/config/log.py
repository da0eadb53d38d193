"""Where log lines go, and what they must not hold.

Ids always, text of messages and secrets never: tracebacks come without the values of variables, and everything is
searched for the shapes of known tokens and for the secrets registered with `redact` before it is written. A log
that cannot be written (a full disk, a closed terminal) costs its lines, not the daemon: the next one tries again.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import re
import sys
import threading
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from loguru import logger

if TYPE_CHECKING:
    from pathlib import Path

    import loguru

    from hermes.config.home import Home
    from hermes.config.secret import Secret
    from hermes.config.settings import LogConfig

_MASK = "***"
_DUMP = "dump"  # marks what is too long for a terminal
_TOKEN_SHAPES = (
    r"\bsk-[A-Za-z0-9_-]{8,}",  # OpenAI and its many followers
    r"\bxox[a-z]-[A-Za-z0-9-]{8,}",  # Slack
    r"\bxapp-[A-Za-z0-9-]{8,}",
    r"(?<!\d)\d{5,20}:[A-Za-z0-9_-]{35}",  # Telegram; also within a URL, after "bot"
    r"(?i:bearer)\s+[^\s\"',;]+",
)
_TERMINAL_LINES = 1000
_TERMINAL_PATIENCE_S = 0.5
_MIN_REDACTED = 6  # characters; a shorter secret would make holes into every other line


class _Redactor:
    """Masks what looks like a token, and what is known to be a secret."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._pattern = re.compile("|".join(_TOKEN_SHAPES))

    def learn(self, value: str) -> None:
        if len(value) < _MIN_REDACTED:
            return
        self._known.add(value)
        longest_first = sorted(self._known, key=len, reverse=True)  # one secret may begin like another
        self._pattern = re.compile("|".join([*map(re.escape, longest_first), *_TOKEN_SHAPES]))

    def clean(self, text: str) -> str:
        return self._pattern.sub(_MASK, text)


_redactor = _Redactor()  # of the process, as the logger itself is


def redact(secret: Secret) -> None:
    """From now on this value is masked wherever it turns up in the log."""
    _redactor.learn(secret.reveal())


def redacted(text: str) -> str:
    """The text without known secrets, and without what looks like one."""
    return _redactor.clean(text)


def configure_logging(config: LogConfig, home: Home, *, terminal: bool = True) -> None:
    """Send everything to stderr and to the home's log file. Calling it again replaces what was there."""
    logger.remove()
    _screen[:] = [Terminal(sys.stderr)] if terminal else []
    logger.configure(patcher=_clean)
    form = _as_json if config.json else _as_text
    for screen in _screen:
        logger.add(
            screen,
            level=config.level,
            filter=_is_no_dump if config.file else None,
            format=form,
            backtrace=False,
            diagnose=False,
            catch=True,
            colorize=False if config.json else None,
        )
    if config.file:
        logger.add(
            LogFile(home.log_dir / "hermes.log", max_bytes=config.rotation_mb << 20, keep=config.keep),
            level=config.level,
            format=form,
            backtrace=False,
            diagnose=False,
            catch=True,
            colorize=False,
        )
    _route_standard_logging()


def log_refusal(config: LogConfig, home: Home, text: str) -> None:
    """The last line of a daemon that does not start, into the log file alone: the terminal is told by the command."""
    configure_logging(config, home, terminal=False)
    logger.error("{}", text)
    logger.remove()


def print_among_lines(text: str) -> None:
    """To standard output, after what was logged so far and in one piece: both may be the same terminal."""
    for screen in _screen:
        screen.catch_up()
    with suppress(OSError, ValueError):  # nobody reads: that is no reason not to serve
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def log_dump(text: str, what: str) -> None:
    """Something long: into the log file alone, if there is one, and a line about it everywhere."""
    logger.bind(**{_DUMP: True}).info("{}", text)
    logger.info("{} was written to the log", what)


def _is_no_dump(record: loguru.Record) -> bool:
    return _DUMP not in record["extra"]


class Terminal:
    """A stream with a thread that writes to it: a pipe or terminal that nobody reads holds up nobody else.

    What does not fit any more is dropped, and counted.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lines: queue.Queue[str | threading.Event | None] = queue.Queue(_TERMINAL_LINES)
        self._dropped = 0
        self._thread = threading.Thread(target=self._run, name="stderr", daemon=True)
        self._thread.start()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def write(self, message: str) -> None:
        try:
            self._lines.put_nowait(message)
        except queue.Full:
            self._dropped += 1

    def catch_up(self) -> None:
        """Back when what was logged so far stands there, or nobody reads it."""
        written = threading.Event()
        with suppress(queue.Full):
            self._lines.put_nowait(written)
            written.wait(_TERMINAL_PATIENCE_S)

    def stop(self) -> None:
        with suppress(queue.Full):
            self._lines.put_nowait(None)
        self._thread.join(_TERMINAL_PATIENCE_S)

    def _run(self) -> None:
        while (line := self._lines.get()) is not None:
            if isinstance(line, threading.Event):
                line.set()
                continue
            dropped, self._dropped = self._dropped, 0
            note = f"(lines dropped because nobody read them: {dropped})\n" if dropped else ""
            with suppress(OSError, ValueError):  # gone or closed: the log file has the line, too
                self._stream.write(note + line)
                self._stream.flush()


_screen: list[Terminal] = []  # where the process logs to now, if it does


class LogFile:
    """A private file that is set aside when it is full: hermes.log.1 is the newest of those, up to `keep`.

    The logger's own file sink buffers, so that on a full disk even closing it fails. Nothing is kept back here.
    """

    def __init__(self, path: Path, *, max_bytes: int, keep: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._keep = keep
        self._descriptor = -1
        self._size_bytes = 0
        self._failing = False

    def write(self, message: str) -> None:
        line = message.encode("utf-8", "backslashreplace")
        try:
            self._make_room(len(line))
            self._size_bytes += os.write(self._descriptor, line)
            self._failing = False
        except OSError as error:
            self.stop()  # the next line opens it again
            known, self._failing = self._failing, True
            if not known:
                sys.stderr.write(f"hermes: the log file {self._path} cannot be written: {error.strerror}\n")

    def stop(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _make_room(self, needed_bytes: int) -> None:
        if self._descriptor < 0:
            self._open()
        if self._size_bytes and self._size_bytes + needed_bytes > self._max_bytes:
            self.stop()
            for number in range(self._keep - 1, -1, -1):
                with suppress(FileNotFoundError):
                    self._numbered(number).replace(self._numbered(number + 1))
            self._open()

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path

    def _open(self) -> None:
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._size_bytes = os.fstat(self._descriptor).st_size


def _clean(record: loguru.Record) -> None:
    extra = record["extra"]
    for key, value in extra.items():
        extra[key] = value if isinstance(value, int | float) else _redactor.clean(str(value))
    record["message"] = _redactor.clean(record["message"])
    if record["exception"]:
        # Kept as text: the logger's own formatting would come after this and bring back what was masked.
        trace = "".join(traceback.format_exception(record["exception"].value))
        extra["trace"] = _redactor.clean(trace.rstrip())
        record["exception"] = None


def _as_text(record: loguru.Record) -> str:
    extra = record["extra"]
    pairs = "".join(f" {key}={value}" for key, value in extra.items() if key not in {"trace", "line", _DUMP})
    extra["line"] = f"{record['message']}{pairs}" + (f"\n{extra['trace']}" if "trace" in extra else "")
    return "<dim>{time:YYYY-MM-DD HH:mm:ss.SSS}</dim> <level>{level: <7}</level> {name}: {extra[line]}\n"


def _as_json(record: loguru.Record) -> str:
    extra = {key: value for key, value in record["extra"].items() if key not in {"line", _DUMP}}
    head = {"at": record["time"].isoformat(), "level": record["level"].name, "logger": record["name"]}
    record["extra"]["line"] = json.dumps({**head, "message": record["message"], **extra})
    return "{extra[line]}\n"


class _Forward(logging.Handler):
    """What libraries log the standard way goes the same way as the rest."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except (TypeError, ValueError, KeyError):  # a library's own mistake in its format
            message = str(record.msg)
        logger.opt(exception=record.exc_info).bind(library=record.name).log(_level(record), message)


def _level(record: logging.LogRecord) -> str:
    return "ERROR" if record.levelno >= logging.ERROR else "WARNING" if record.levelno >= logging.WARNING else "INFO"


def _route_standard_logging() -> None:
    # WARNING for all of them: at INFO some print whole URLs, and there are services that put tokens into URLs.
    logging.basicConfig(handlers=[_Forward()], level=logging.WARNING, force=True)
    for name in ("aiohttp", "asyncio", "pykka"):
        logging.getLogger(name).setLevel(logging.WARNING)
