"""Text of a command's result for the model: its output, then notes in brackets."""

from __future__ import annotations

import signal
from collections.abc import Iterable

from hermes.tools.terminal.foreground import Ending
from hermes.tools.terminal.terminal_settings import TerminalSettings


def result_text(output: str, notes: Iterable[str]) -> str:
    """Return output and notes as text that can always be encoded."""
    lines = [output.rstrip("\n") or "(no output)", *(f"[{note}]" for note in notes)]
    return "\n".join(lines).encode("utf-8", errors="replace").decode()


def exit_code_notes(end: Ending) -> tuple[str, ...]:
    if not end.whole:
        return ()
    if end.code - 128 in {*signal.Signals}:
        return (f"exit code {end.code} ({signal.Signals(end.code - 128).name})",)
    return (f"exit code {end.code}",)


def timeout_notes(end: Ending, settings: TerminalSettings, *, background: bool) -> tuple[str, ...]:
    """Return what a timeout lost and what to do next. `background`: background processes are available."""
    if not end.timed_out:
        return ()
    instead = " or use background=true" if background else ""
    longer = f"set a longer timeout (maximum {settings.timeout_max_s:g} s)"
    return (f"its directory and variables were not saved; {longer}{instead}",)
