"""Logging to stderr and to the log file, with secrets masked.

Lines contain ids, never message text or secrets. Tracebacks have no values of variables. Before a line is written,
known token formats and the secrets registered with `redact` are masked. If a log cannot be written (full disk, closed
terminal), its lines are lost and the daemon continues; the next line tries again.
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
_DUMP = "dump"  # marks text that is too long for a terminal
_TOKEN_SHAPES = (
    r"\bsk-[A-Za-z0-9_-]{8,}",  # OpenAI and compatible services
    r"\bxox[a-z]-[A-Za-z0-9-]{8,}",  # Slack
    r"\bxapp-[A-Za-z0-9-]{8,}",
    r"(?<!\d)\d{5,20}:[A-Za-z0-9_-]{35}",  # Telegram, also in a URL after "bot"
    r"(?i:bearer)\s+[^\s\"',;]+",
)
_TERMINAL_LINES = 1000
_TERMINAL_TIMEOUT_S = 0.5
_MIN_REDACTED = 6  # characters; a shorter secret would mask ordinary words


class _Redactor:
    """Masks known secrets and text that looks like a token."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._pattern = re.compile("|".join(_TOKEN_SHAPES))

    def learn(self, value: str) -> None:
        if len(value) < _MIN_REDACTED:
            return
        self._known.add(value)
        longest_first = sorted(self._known, key=len, reverse=True)  # one secret may be a prefix of another
        self._pattern = re.compile("|".join([*map(re.escape, longest_first), *_TOKEN_SHAPES]))

    def clean(self, text: str) -> str:
        return self._pattern.sub(_MASK, text)


_redactor = _Redactor()  # one per process, like the logger


def redact(secret: Secret) -> None:
    """Mask this value in all log lines from now on."""
    _redactor.learn(secret.reveal())


def redacted(text: str) -> str:
    """Return the text with secrets and token-like text masked."""
    return _redactor.clean(text)


def configure_logging(config: LogConfig, home: Home, *, terminal: bool = True) -> None:
    """Send log lines to stderr and to the log file of the home. A second call replaces the first."""
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
    """Log why a daemon does not start, to the log file only: the command prints it on the terminal."""
    configure_logging(config, home, terminal=False)
    logger.error("{}", text)
    logger.remove()


def print_among_lines(text: str) -> None:
    """Print to stdout in one piece, after pending log lines: both may be the same terminal."""
    for screen in _screen:
        screen.catch_up()
    with suppress(OSError, ValueError):  # stdout is closed; the daemon runs nevertheless
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def log_dump(text: str, what: str) -> None:
    """Write a long text to the log file only, if there is one, and one line about it everywhere."""
    logger.bind(**{_DUMP: True}).info("{}", text)
    logger.info("{} was written to the log", what)


def _is_no_dump(record: loguru.Record) -> bool:
    return _DUMP not in record["extra"]


class Terminal:
    """Stream written by its own thread, so that a blocked pipe or terminal does not block the daemon.

    Lines that do not fit into its buffer are dropped and counted.
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
        """Wait until pending lines are written, or the stream is blocked."""
        written = threading.Event()
        with suppress(queue.Full):
            self._lines.put_nowait(written)
            written.wait(_TERMINAL_TIMEOUT_S)

    def stop(self) -> None:
        with suppress(queue.Full):
            self._lines.put_nowait(None)
        self._thread.join(_TERMINAL_TIMEOUT_S)

    def _run(self) -> None:
        while (line := self._lines.get()) is not None:
            if isinstance(line, threading.Event):
                line.set()
                continue
            dropped, self._dropped = self._dropped, 0
            note = f"(log lines dropped because the stream was blocked: {dropped})\n" if dropped else ""
            with suppress(OSError, ValueError):  # closed; the log file has the line, too
                self._stream.write(note + line)
                self._stream.flush()


_screen: list[Terminal] = []  # current stream of the process


class LogFile:
    """Private log file with rotation: hermes.log.1 is the newest old file, up to `keep`.

    The file sink of the logger buffers, so that on a full disk even closing it fails. This one does not buffer.
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
        # Stored as text: the logger's own formatting runs later and would bring secrets back.
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
    """Forwards records of the standard `logging` module to the logger."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except (TypeError, ValueError, KeyError):  # a format error of the library
            message = str(record.msg)
        logger.opt(exception=record.exc_info).bind(library=record.name).log(_level(record), message)


def _level(record: logging.LogRecord) -> str:
    return "ERROR" if record.levelno >= logging.ERROR else "WARNING" if record.levelno >= logging.WARNING else "INFO"


def _route_standard_logging() -> None:
    # WARNING: at INFO some libraries log whole URLs, which may contain tokens.
    logging.basicConfig(handlers=[_Forward()], level=logging.WARNING, force=True)
    for name in ("aiohttp", "asyncio", "pykka"):
        logging.getLogger(name).setLevel(logging.WARNING)
