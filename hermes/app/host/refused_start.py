"""Note about a start that was refused: a line in the log, and a file for the client that waits for the daemon.

Nothing is written to a directory without Hermes's marker file.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from hermes.config.settings import LogConfig
from hermes.domain.errors import HermesError
from hermes.domain.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes.config.home import Home

_NAME = "refused.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedStart:
    pid: int
    exit_code: int
    problem: str


@contextmanager
def noting_refusal(home: Home, log: LogConfig | None = None) -> Iterator[None]:
    """Note a HermesError of the enclosed start. `log` is None until the configuration is read."""
    try:
        yield
    except HermesError as error:
        if home.marker.is_file() and home.log_dir.is_dir():
            with suppress(OSError):  # a full disk, say: the caller prints the error anyway
                _note(home, log or LogConfig(), error)
        raise


def _note(home: Home, log: LogConfig, error: HermesError) -> None:
    from hermes.config.log import log_refusal, redacted  # noqa: PLC0415 - a normal start does not need it here

    problem = redacted(str(error))
    note = {"pid": os.getpid(), "exit_code": error.exit_code, "problem": problem}
    draft = _path(home).with_name(f"{_NAME}.new")
    draft.write_text(json.dumps(note), encoding="utf-8")
    draft.chmod(0o600)
    draft.replace(_path(home))
    log_refusal(log, home, f"the daemon did not start (exit code {error.exit_code}): {problem}")


def forget_refusal(home: Home) -> None:
    with suppress(OSError):
        _path(home).unlink(missing_ok=True)


def refusal_of(home: Home, pid: int) -> RefusedStart | None:
    """Return why that process did not start; None if it was not refused."""
    try:
        note = json.loads(_path(home).read_text(encoding="utf-8"))
        refusal = RefusedStart(pid=note["pid"], exit_code=note["exit_code"], problem=note["problem"])
    except (OSError, ValueError, KeyError, TypeError):  # no note, or an incomplete one
        return None
    return refusal if refusal.pid == pid else None


def _path(home: Home) -> Path:
    return home.log_dir / _NAME
