"""Status files of a shim, written atomically."""

# ruff: noqa: PTH104, PTH108, SIM105 - pathlib and contextlib would be loaded by every shim

from __future__ import annotations

import os

_SIZE = 2048


def write_status(name: str, values: dict[str, object], *, lasting: bool) -> None:
    """Replace a status file. `lasting`: sync it to disk, so that it survives a power failure."""
    descriptor = os.open(f"{name}.new", os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, _json(values).encode().ljust(_SIZE))
        if lasting:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.rename(f"{name}.new", name)


def reserve_status(name: str) -> None:
    """Reserve disk space for a status file, so that a result can be stored even if the disk is full."""
    with open(f"{name}.new", "xb", opener=_private) as file:
        file.write(b" " * _SIZE)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _json(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_json(name)}: {_json(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_json(item) for item in value) + "]"
    if isinstance(value, (int, float)):
        return repr(value)
    plain = (c if " " <= c <= "~" and c not in '"\\' else f"\\u{min(ord(c), 0xFFFD):04x}" for c in str(value))
    return f'"{"".join(plain)}"'


def remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
