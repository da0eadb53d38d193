"""Pictures that models accept: their types, recognised by the first bytes, and their maximum size."""

from __future__ import annotations

from typing import Final

PICTURE_TYPES: Final = {"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp", "image/gif": ".gif"}
MAX_PICTURE_BYTES: Final = 4 << 20  # a larger one is only a file
_STARTS: Final = {"image/jpeg": b"\xff\xd8\xff", "image/png": b"\x89PNG", "image/webp": b"RIFF", "image/gif": b"GIF8"}


def picture_type(data: bytes) -> str | None:
    """Return the media type of a picture; None if it is none that models accept."""
    return next((kind for kind, start in _STARTS.items() if data.startswith(start)), None)
