"""Characters that make a command line look like another one: direction marks, invisible ones, look-alikes."""

from __future__ import annotations

import re

# Control characters but for line ends and tabs, direction marks, zero-width spaces, full-width forms, other slashes.
_HIDDEN = re.compile(
    "[\x01-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064"
    "\u2066-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\uff01-\uff5e\u2044\u2215\u29f8\u29f5\U000e0000-\U000e007f]"
    "|(?:(?<=\\s)|\\A)[\u2010-\u2015\u2212\ufe58\ufe63](?=\\w)"
)
_SHOWN_MOST = 5


def hidden_characters(text: str) -> str:
    """Return the code points of such characters, for people; empty if there are none."""
    if text.isascii() and text.isprintable():
        return ""
    found = list(dict.fromkeys(each[0] for each in _HIDDEN.finditer(text)))
    more = " and others" if len(found) > _SHOWN_MOST else ""
    return ", ".join(f"U+{ord(each):04X}" for each in found[:_SHOWN_MOST]) + more
