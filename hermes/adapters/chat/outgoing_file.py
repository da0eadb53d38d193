"""A file on its way to a platform, read whole."""

from __future__ import annotations

from pathlib import Path

from hermes.errors import UnsendableFileError
from hermes.regular_file import read_regular_file
from hermes.values import dataclass

MOST_BYTES = 50 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    name: str
    data: bytes


def read_file(path: str, *, if_too_large: str) -> File:
    """In a thread. Raises UnsendableFileError."""
    try:
        data = read_regular_file(Path(path), most_bytes=MOST_BYTES)
    except FileNotFoundError:
        raise UnsendableFileError("it is not there any more") from None
    except OSError as error:
        raise UnsendableFileError(f"it cannot be read: {error.strerror}") from error
    if not data:
        raise UnsendableFileError("it is empty")
    if len(data) > MOST_BYTES:
        raise UnsendableFileError(if_too_large)
    return File(name=Path(path).name, data=data)
