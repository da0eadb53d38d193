"""Keyboard input of `hermes chat`: messages, answers, and lines typed while an answer runs.

A paste of several lines is one message. News of the session is shown above the prompt.
"""

from __future__ import annotations

import os
import re
import select
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from hermes.cli.output import print_text
from hermes.domain.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PASTE_GAP_S = 0.03  # lines that arrive faster are a paste
_POLL_S = 1.0
# Escape sequences of keys, and control characters except tab and newline. A letter after Esc is kept.
_KEYS = re.compile(r"\x1b\[\[?[0-?]*[ -/]*[@-~]?|\x1bO[A-DFHP-S]|[\x00-\x08\x0b-\x1f\x7f]")


class ClearedError(Exception):
    """Ctrl-C with text on the line: only that line is dropped."""


def prepare_keyboard() -> None:
    with suppress(ImportError):
        import readline

        readline.parse_and_bind(
            "set enable-bracketed-paste on"
        )  # a paste arrives whole, also without a final newline
        # Alt-Enter starts a new line. By default readline would switch to vi mode.
        for line in ("$if mode=emacs", r'"\e\C-m": "\C-v\C-j"', r'"\e\C-j": "\C-v\C-j"', "$endif"):
            readline.parse_and_bind(line)


def read_message(prompt: str, news: Callable[[], list[str]]) -> str:
    """Read a message. `news` is polled in a thread, and shown above the prompt.

    Raises EOFError and KeyboardInterrupt as `input` does, but ClearedError for Ctrl-C with text on the line.
    """
    for text in news():
        print_text(text)
    with _shown_above(prompt, news):
        try:
            lines = [input(prompt)]
        except KeyboardInterrupt:
            if _begun():
                raise ClearedError from None
            raise
    while _waits(_PASTE_GAP_S):
        try:
            lines.append(input())
        except EOFError:
            break
    return "\n".join(lines)


@contextmanager
def _shown_above(prompt: str, news: Callable[[], list[str]]) -> Iterator[None]:
    read = threading.Event()

    def watch() -> None:
        while not read.wait(_POLL_S):
            if texts := news():
                _put_above("" if read.is_set() else prompt, texts)

    watching = threading.Thread(target=watch, name="news", daemon=True)
    watching.start()
    try:
        yield
    finally:
        read.set()
        watching.join()


def _put_above(prompt: str, texts: list[str]) -> None:
    """Print texts in place of the prompt, and the prompt with the typed text again below."""
    begun = _begun()
    if prompt:
        plain = os.environ.get("TERM", "dumb") in ("", "dumb")
        print("\n" if plain else "\r\x1b[2K", end="", flush=True)
    for text in texts:
        print_text(text)
    if prompt:
        print(f"{prompt}{begun}", end="", flush=True)


def _begun() -> str:
    """Return the text typed on the current line."""
    with suppress(ImportError):
        import readline

        return readline.get_line_buffer()
    return ""


def read_answer(prompt: str, settled: Callable[[], bool]) -> str | None:
    """Read a line; None if the question was settled elsewhere.

    Raises EOFError and KeyboardInterrupt as `input` does, and what `settled` raises, after a newline.
    """
    print(prompt, end="", flush=True)
    try:
        with echoing(on=True):
            while not _waits(_POLL_S):
                if settled():
                    print()
                    return None
            line = sys.stdin.readline()
    except (KeyboardInterrupt, HermesError):
        print()
        raise
    if not line:
        print()
        raise EOFError
    return without_keys(line).strip()


def without_keys(line: str) -> str:
    """Return a raw line without the escape sequences of cursor and function keys."""
    return _KEYS.sub("", line)


def typed_lines() -> Iterator[str]:
    """Yield the lines typed so far, without waiting. Raises EOFError."""
    while _waits(0):
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        yield without_keys(line).strip()


def drop_typed() -> None:
    """Discard unread input, so that the shell does not run it as commands."""
    import termios

    with suppress(termios.error, OSError, ValueError):  # no terminal
        termios.tcflush(sys.stdin, termios.TCIFLUSH)


@contextmanager
def echoing(*, on: bool) -> Iterator[None]:
    """Switch the echo of the terminal on or off, and restore it. It is off while an answer is printed."""
    import termios

    try:
        before = termios.tcgetattr(sys.stdin)
    except (termios.error, OSError, ValueError):  # no terminal
        yield
        return
    wanted = [*before]
    wanted[3] = before[3] | termios.ECHO if on else before[3] & ~termios.ECHO
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, wanted)
    try:
        yield
    finally:
        with suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _waits(for_s: float) -> bool:
    return bool(select.select([sys.stdin], [], [], for_s)[0])
