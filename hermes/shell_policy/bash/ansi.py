"""The backslash escapes of `$'...'`, `echo -e` and `printf`."""

from __future__ import annotations

import re

_ESCAPE = re.compile(
    r"\\(?:(?P<octal>0?[0-7]{1,3})|x(?P<hex>[0-9A-Fa-f]{1,2})|u(?P<u4>[0-9A-Fa-f]{1,4})|U(?P<u8>[0-9A-Fa-f]{1,8})"
    r"|c(?P<control>.)|(?P<one>.))",
    re.DOTALL,
)
_ONE = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_PLAIN = "\\'\"?"


def decode_ansi(text: str) -> str:
    return _ESCAPE.sub(_decoded, text) if "\\" in text else text


def _decoded(found: re.Match[str]) -> str:
    if octal := found["octal"]:
        return _character(int(octal, 8) & 0xFF)
    if digits := found["hex"] or found["u4"] or found["u8"]:
        return _character(int(digits, 16))
    if control := found["control"]:
        return _character(ord(control) & 0x1F)
    one = found["one"]
    return _ONE.get(one, one if one in _PLAIN else "\\" + one)


def _character(code: int) -> str:
    return chr(code) if 0 < code < 0x110000 else ""
