"""File to send to a platform, read into memory."""

from __future__ import annotations

from pathlib import Path

from hermes.domain.errors import UnsendableFileError
from hermes.domain.values import dataclass
from hermes.system.regular_file import read_regular_file

MAX_BYTES = 50 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingFile:
    name: str
    data: bytes


def read_file(path: str, *, if_too_large: str) -> OutgoingFile:
    """Read a file to send. Blocking. Raises UnsendableFileError."""
    try:
        data = read_regular_file(Path(path), max_bytes=MAX_BYTES)
    except FileNotFoundError:
        raise UnsendableFileError("the file no longer exists") from None
    except OSError as error:
        raise UnsendableFileError(f"the file cannot be read: {error.strerror}") from error
    if not data:
        raise UnsendableFileError("the file is empty")
    if len(data) > MAX_BYTES:
        raise UnsendableFileError(if_too_large)
    return OutgoingFile(name=Path(path).name, data=data)
