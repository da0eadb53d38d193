"""Pictures that go with a message: files that its `@path`s name, and its content with them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes.domain.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Sequence

TYPES: Final = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".webp": "image/webp",
    ".gif": "image/gif",
}
MAX_BYTES: Final = 4 << 20  # of one; models refuse larger ones
_MAX_WORDS: Final = 2_000  # of a message that are looked at: a paste is no list of files
_PUNCTUATION: Final = ".,;:!?)\"'"


class PictureError(HermesError):
    """A picture cannot be sent; the text is the reason."""


def named_in(text: str, directory: Path) -> tuple[Path, ...]:
    """Return the pictures that the `@path`s of a message name. Asks the disk for each."""
    words = text.split(maxsplit=_MAX_WORDS)[:_MAX_WORDS]
    named = (word[1:].rstrip(_PUNCTUATION) for word in words if word.startswith("@"))
    found = dict.fromkeys(path for name in named if (path := picture_at(name, directory)) is not None)
    return tuple(found)


def picture_at(name: str, directory: Path) -> Path | None:
    """Return the path of a picture; None if there is no such file, or it is none by its name."""
    if Path(name).suffix.lower() not in TYPES:
        return None
    try:
        path = directory / Path(name).expanduser()
        return path if path.is_file() else None
    except (OSError, ValueError, RuntimeError):  # too long, a NUL, an unknown home
        return None


def input_of(text: str, pictures: Sequence[Path]) -> Any:
    """Return the `input` of a run. Reads the pictures; raises PictureError."""
    if not pictures:
        return text
    parts = [{"type": "text", "text": text}] if text else []
    images = ({"type": "image_url", "image_url": {"url": _data_url(path)}} for path in pictures)
    return [{"role": "user", "content": [*parts, *images]}]


def _data_url(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise PictureError(f"{path.name} is larger than {MAX_BYTES >> 20} MiB; scale it down")
        data = path.read_bytes()
    except OSError as error:
        raise PictureError(f"{path} cannot be read: {error.strerror}") from error
    kind = TYPES.get(path.suffix.lower(), "image/png")
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"
