"""What a person types: messages, where a paste of many lines is one, answers to what is asked, and what comes while
an answer runs.
"""

from __future__ import annotations

import select
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PASTE_GAP_S = 0.03  # lines that come faster than this were not typed
_LOOK_UP_S = 1.0


def prepare_keyboard() -> None:
    with suppress(ImportError):
        import readline

        readline.parse_and_bind("set enable-bracketed-paste on")  # a paste then arrives whole, also without an end


def read_message(prompt: str) -> str:
    """Raises EOFError and KeyboardInterrupt as `input` does."""
    lines = [input(prompt)]
    while _waits(_PASTE_GAP_S):
        try:
            lines.append(input())
        except EOFError:
            break
    return "\n".join(lines)


def read_answer(prompt: str, settled: Callable[[], bool]) -> str | None:
    """A line, or None when nobody needs it any more. Raises EOFError and KeyboardInterrupt as `input` does."""
    print(prompt, end="", flush=True)
    try:
        with echoing(on=True):
            while not _waits(_LOOK_UP_S):
                if settled():
                    print()
                    return None
            line = sys.stdin.readline()
    except KeyboardInterrupt:
        print()
        raise
    if not line:
        print()
        raise EOFError
    return line.strip()


def typed_lines() -> Iterator[str]:
    """The whole lines that wait to be read, none of which is waited for. Raises EOFError."""
    while _waits(0):
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        yield line.strip()


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
