"""Pictures that models accept: their types, recognised by their headers, and their maximum size.

A provider refuses a picture that it cannot read, and with it the whole conversation. So the header must be complete
and its dimensions sane.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, TypeAlias

PICTURE_TYPES: Final = {"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp", "image/gif": ".gif"}
MAX_PICTURE_BYTES: Final = 4 << 20  # a larger one is only a file
MAX_SIDE: Final = 8_000  # pixels
MAX_PIXELS: Final = 40_000_000

Size: TypeAlias = tuple[int, int]

_NO_FRAME: Final = (0xC4, 0xC8, 0xCC)  # JPEG markers between those of frames, without dimensions
_MAX_SEGMENTS: Final = 1_000  # of a JPEG file before its frame


def picture_type(data: bytes) -> str | None:
    """Return the media type of a picture; None if it is none that models accept."""
    return next((kind for kind, read in _READERS.items() if _is_sane(read(data))), None)


def _is_sane(size: Size | None) -> bool:
    if size is None:
        return False
    width, height = size
    return 0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE and width * height <= MAX_PIXELS


def _png(data: bytes) -> Size | None:
    if not data.startswith(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR") or len(data) < 33:
        return None
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _gif(data: bytes) -> Size | None:
    if not data.startswith((b"GIF87a", b"GIF89a")) or len(data) < 13:
        return None
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _jpeg(data: bytes) -> Size | None:
    """Return the dimensions in the first frame header. Segments before it are skipped by their lengths."""
    if not data.startswith(b"\xff\xd8\xff"):
        return None
    at = 2
    for _ in range(_MAX_SEGMENTS):
        if at + 9 > len(data) or data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in _NO_FRAME:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None


def _webp(data: bytes) -> Size | None:
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP" or len(data) < 30:
        return None
    match data[12:16]:
        case b"VP8 " if data[23:26] == b"\x9d\x01\x2a":
            width, height = struct.unpack_from("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L" if data[20] == 0x2F:
            bits = int.from_bytes(data[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
        case _:
            return None


_READERS: Final[dict[str, Callable[[bytes], Size | None]]] = {
    "image/jpeg": _jpeg,
    "image/png": _png,
    "image/webp": _webp,
    "image/gif": _gif,
}
