"""Smallest pictures with complete headers, 16 by 16 pixels."""

from __future__ import annotations

import struct
from typing import Final


def png(width: int = 16, height: int = 16) -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">IIBBBBBI", width, height, 8, 2, 0, 0, 0, 0)


def jpeg(width: int = 16, height: int = 16) -> bytes:
    comment = b"\xff\xfe\0\x05cat"  # a segment before the frame
    return b"\xff\xd8" + comment + b"\xff\xc0\0\x11\x08" + struct.pack(">HH", height, width) + b" a cat"


PNG: Final = png()
JPEG: Final = jpeg()
