"""Recognition of pictures by their headers."""

from __future__ import annotations

import struct

import pytest

from hermes.media.picture import MAX_SIDE, picture_type
from tests.support.pictures import JPEG, PNG, jpeg, png

GIF = b"GIF89a\x10\0\x10\0\0\0\0"


def webp(kind: bytes, rest: bytes) -> bytes:
    return b"RIFF\x24\0\0\0WEBP" + kind + b"\x18\0\0\0" + rest.ljust(16, b"\0")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (JPEG, "image/jpeg"),
        (GIF, "image/gif"),
        (webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a\x10\0\x10\0"), "image/webp"),
        (webp(b"VP8L", b"\x2f\x0f\xc0\x03\0"), "image/webp"),
        (webp(b"VP8X", b"\0\0\0\0\x0f\0\0\x0f\0\0"), "image/webp"),
        (png(MAX_SIDE, 5_000), "image/png"),
    ],
)
def test_a_picture_is_recognised(data: bytes, kind: str) -> None:
    assert picture_type(data) == kind


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x89PNG\r\n\x1a\n" + b"x" * 40,
        PNG[:30],
        png(0, 16),
        png(MAX_SIDE + 1, 1),
        png(MAX_SIDE, MAX_SIDE),
        b"\xff\xd8\xff a cat",
        b"\xff\xd8" + b"\xff" * 40,
        b"\xff\xd8\xff\xda\0\0" + b"\0" * 40,
        JPEG[:12],
        jpeg(16, 0),
        b"GIF8 is a format I like",
        b"GIF89a" + struct.pack("<HH", 0, 16) + b"\0\0\0",
        b"RIFF\x24\0\0\0WAVEfmt " + b"\0" * 40,
        webp(b"VP8 ", b""),
        webp(b"ALPH", b""),
    ],
)
def test_anything_else_is_no_picture(data: bytes) -> None:
    assert picture_type(data) is None
