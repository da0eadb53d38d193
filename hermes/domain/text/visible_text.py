"""Characters that make a text appear as another one: control characters, direction marks, look-alikes."""

from __future__ import annotations

import re

# Control characters but for line ends and tabs, direction marks, zero-width spaces, other fillers, language tags.
_INVISIBLE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f"
)
_LOOK_ALIKE = "\uff01-\uff5e\u2044\u2215\u29f8\u29f5"  # full-width forms, other slashes
_HIDDEN = re.compile(f"[{_INVISIBLE}{_LOOK_ALIKE}]|(?:(?<=\\s)|\\A)[\u2010-\u2015\u2212\ufe58\ufe63](?=\\w)")
_MAX_SHOWN = 5


def visible(text: str) -> str:
    """Return the text with every such character written as its escape, as in `\\u202e`."""
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN.sub(_escaped, text)


def hidden_characters(text: str) -> str:
    """Return the code points of such characters, for people; empty if there are none."""
    if text.isascii() and text.isprintable():
        return ""
    found = list(dict.fromkeys(each[0] for each in _HIDDEN.finditer(text)))
    more = " and others" if len(found) > _MAX_SHOWN else ""
    return ", ".join(f"U+{ord(each):04X}" for each in found[:_MAX_SHOWN]) + more


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
