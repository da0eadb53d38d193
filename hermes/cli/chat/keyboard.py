"""What a person types: messages, where a paste of many lines is one, answers to what is asked, and what comes while
an answer runs. What happens while they sit at the prompt is shown above it.
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

_PASTE_GAP_S = 0.03  # lines that come faster than this were not typed
_LOOK_UP_S = 1.0
# Keys as terminals send them, and all other control characters but tab and the end of the line. A letter behind Esc
# stays: people press Esc and type on.
_KEYS = re.compile(r"\x1b\[\[?[0-?]*[ -/]*[@-~]?|\x1bO[A-DFHP-S]|[\x00-\x08\x0b-\x1f\x7f]")


class ClearedError(Exception):
    """Ctrl-C on a line that was begun: that line is dropped, and no more."""


def prepare_keyboard() -> None:
    with suppress(ImportError):
        import readline

        readline.parse_and_bind("set enable-bracketed-paste on")  # a paste then arrives whole, also without an end
        # Alt-Enter begins a new line. By itself readline would change to vi's keys for good, without a word.
        for line in ("$if mode=emacs", r'"\e\C-m": "\C-v\C-j"', r'"\e\C-j": "\C-v\C-j"', "$endif"):
            readline.parse_and_bind(line)


def read_message(prompt: str, news: Callable[[], list[str]]) -> str:
    """`news` is asked again and again, in a thread. Raises EOFError and KeyboardInterrupt as `input` does, and
    ClearedError instead of the latter when a line was begun.
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
        while not read.wait(_LOOK_UP_S):
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
    """In place of the prompt and what was typed so far, which come again below."""
    begun = _begun()
    if prompt:
        plain = os.environ.get("TERM", "dumb") in ("", "dumb")
        print("\n" if plain else "\r\x1b[2K", end="", flush=True)
    for text in texts:
        print_text(text)
    if prompt:
        print(f"{prompt}{begun}", end="", flush=True)


def _begun() -> str:
    """What was typed of a line so far."""
    with suppress(ImportError):
        import readline

        return readline.get_line_buffer()
    return ""


def read_answer(prompt: str, settled: Callable[[], bool]) -> str | None:
    """A line, or None when nobody needs it any more. Raises EOFError and KeyboardInterrupt as `input` does, and what
    `settled` raises; whatever is said then begins in a line of its own.
    """
    print(prompt, end="", flush=True)
    try:
        with echoing(on=True):
            while not _waits(_LOOK_UP_S):
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
    """Return the text of a line that no line editor has read, without what cursor and function keys send."""
    return _KEYS.sub("", line)


def typed_lines() -> Iterator[str]:
    """The whole lines that wait to be read, none of which is waited for. Raises EOFError."""
    while _waits(0):
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        yield without_keys(line).strip()


def drop_typed() -> None:
    """What waits to be read was meant for us, and would be a command for the shell."""
    import termios

    with suppress(termios.error, OSError, ValueError):  # no terminal
        termios.tcflush(sys.stdin, termios.TCIFLUSH)


@contextmanager
def echoing(*, on: bool) -> Iterator[None]:
    """Whether the terminal shows what is typed: not while somebody else writes there, it would stand in between."""
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
        with suppress(termios.error):  # the terminal is gone, and nobody types there any more
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _waits(for_s: float) -> bool:
    return bool(select.select([sys.stdin], [], [], for_s)[0])
