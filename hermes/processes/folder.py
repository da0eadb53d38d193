"""Reader of a process's folder. Missing or incomplete files are None or empty."""

# ruff: noqa: PTH116, PTH123 - each heartbeat reads a file per process; string paths cost a third

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from hermes.domain.process.process import EndReason, Handle, ProcessEnd
from hermes.processes.shim.member import whole
from hermes.processes.table import pids

_STATE_WAIT_S: Final = 1.0  # for a shim that was starting when its daemon died
_MAX_STATE_WAIT_S: Final = 30.0  # if that shim is seen to run
_POLL_S: Final = 0.02
_MAX_TEXT: Final = 2000


def read_state(folder: Path) -> Handle | None:
    values = _read(folder / "state.json")
    try:
        return Handle(
            id=folder.name,
            folder=str(folder),
            **{
                **values,
                **{name: bool(values.get(name)) for name in ("boxed", "network")},
                "terminal": bool(values["terminal"]),
                "hosts": tuple(values.get("hosts", ())),
            },
        )
    except (TypeError, KeyError):  # not in our format
        return None


def is_its_folder(handle: Handle) -> bool:
    """Return whether this is the folder that the process writes to, and not a copy of it."""
    try:
        return handle.folder_inode in (0, os.stat(handle.folder).st_ino)
    except OSError:  # deleted since it was read
        return False


def awaited_state(folder: Path) -> Handle | None:
    began = time.monotonic()
    while folder.exists() and not (folder / "state.json").exists() and not shim_error(folder):
        waited_s = time.monotonic() - began
        if waited_s >= _STATE_WAIT_S and (waited_s >= _MAX_STATE_WAIT_S or not _has_shim(folder)):
            break  # read once more below: it may have started and ended
        time.sleep(_POLL_S)
    return read_state(folder)


def _has_shim(folder: Path) -> bool:
    """Return whether a shim runs that has this folder among its arguments: it may still start the command."""
    wanted = os.fsencode(folder)
    for pid in pids():
        with suppress(OSError):  # it has ended
            if wanted in whole(f"/proc/{pid}/cmdline").split(b"\0"):
                return True
    return False


def _read(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_bytes())
    except (OSError, ValueError):  # missing or incomplete
        return {}
    return values if isinstance(values, dict) else {}


def note_kill(handle: Handle, why: str) -> None:
    """Store the reason of a kill request. The first reason is kept; errors are ignored, as on a full disk."""
    path = Path(handle.folder, "why")
    with suppress(OSError):
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(why, encoding="utf-8")


def _why_killed(handle: Handle) -> str:
    try:
        return Path(handle.folder, "why").read_text(encoding="utf-8", errors="replace")[:_MAX_TEXT]
    except OSError:  # no reason was stored
        return ""


def read_end(handle: Handle) -> ProcessEnd | None:
    values = _read(Path(handle.folder, "exit.json"))
    try:
        return ProcessEnd(
            reason=EndReason(values["reason"]),
            code=values["code"],
            signal=values["signal"],
            ended_at=values["ended_at"],
            output_bytes=values["bytes"],
            dropped_bytes=values["dropped"],
            problem=values["problem"],
            detail=values["detail"] or (_why_killed(handle) if values["reason"] == EndReason.KILLED else ""),
            left=tuple(values["left"]),
        )
    except (KeyError, ValueError):
        return None


def shim_error(folder: Path) -> str:
    """Return the shim's own error message; empty if it has not failed."""
    try:
        text = (folder / "shim.err").read_text(errors="replace").strip()
    except OSError:
        return ""
    return f"its shim failed: {text[-_MAX_TEXT:].splitlines()[-1]}" if text else ""


def segment_stat(handle: Handle, number: int) -> os.stat_result | None:
    try:
        return os.stat(f"{handle.folder}/output.{number}")
    except OSError:  # one bad folder must not fail the heartbeat of all processes
        return None


def segments(handle: Handle) -> list[int]:
    """Return the numbers of the segments that exist."""
    try:
        names = [entry.name.partition("output.") for entry in os.scandir(handle.folder)]
    except OSError:
        return []
    return sorted(int(number) for before, _, number in names if not before and number.isdecimal())


def read_output(handle: Handle, offset: int, length: int) -> bytes | None:
    """Return a part of the output; None if some of it is no longer kept."""
    parts = []
    while length > 0:
        number, start = divmod(offset, handle.segment_bytes)
        try:
            with open(f"{handle.folder}/output.{number}", "rb") as segment:
                segment.seek(start)
                part = segment.read(min(length, handle.segment_bytes - start))
        except OSError:
            return None
        if not part:
            break
        parts.append(part)
        offset += len(part)
        length -= len(part)
    return b"".join(parts)
