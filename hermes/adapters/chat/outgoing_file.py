"""A file on its way to a platform, read whole."""

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
    """In a thread. Raises UnsendableFileError."""
    try:
        data = read_regular_file(Path(path), max_bytes=MAX_BYTES)
    except FileNotFoundError:
        raise UnsendableFileError("it is not there any more") from None
    except OSError as error:
        raise UnsendableFileError(f"it cannot be read: {error.strerror}") from error
    if not data:
        raise UnsendableFileError("it is empty")
    if len(data) > MAX_BYTES:
        raise UnsendableFileError(if_too_large)
    return OutgoingFile(name=Path(path).name, data=data)
