"""Fences: marks around text that the person talking did not write.

A fence is `<untrusted-ID>` … `</untrusted-ID>`. The ID is random and new for each message, prompt or tool result, so
the writer of the text cannot know it and cannot end the fence early. The prompt tells the model what a fence means.
"""

from __future__ import annotations

import re

MAX_CHARS = 4_000
_TAG = "untrusted"
# Characters that are invisible, reorder text, or end a line for some readers. Joiners stay: emoji need them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_LOOKS_LIKE_TAG = re.compile(rf"<(?=\s*/?\s*{_TAG})", re.IGNORECASE)
_FENCE = re.compile(rf"</?{_TAG}-[0-9a-f]+>")


def fenced(text: str, marker: str, *, max_chars: int = MAX_CHARS) -> str:
    """Return the text between two marks: at most `max_chars`, hidden characters as escapes, no mark inside."""
    assert marker, "a fence needs a marker"
    body = text.replace("\r\n", "\n").replace("\r", "\n")
    left_out = len(body) - max_chars
    body = body[:max_chars] + (f"… ({left_out} more characters)" if left_out > 0 else "")
    body = _LOOKS_LIKE_TAG.sub(r"\\<", _HIDDEN.sub(_escape, body))
    body = re.sub(re.escape(marker), "…", body, flags=re.IGNORECASE)
    if "\n" in body:
        body = f"\n{body}\n"
    return f"<{_TAG}-{marker}>{body}</{_TAG}-{marker}>"


def without_fences(text: str) -> str:
    """Return the text without marks, for people. Only models need them."""
    return _FENCE.sub("", text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
