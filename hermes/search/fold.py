"""Folding of texts for comparison: ignores case, accents and width, and splits scripts without spaces into words.

Indexing, queries and highlighting use the same folding, so the result does not depend on SQLite's version.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_ACCENTS = re.compile("[\u0300-\u036f]+")
_UNFIT = re.compile("[\0\ud800-\udfff]")  # characters that SQLite cannot store
# Scripts without spaces: each character becomes a word, and a query a sequence of words.
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"
    "\uf900-\ufaff\U00020000-\U0003ffff])"
)


def fit(text: str) -> str:
    return _UNFIT.sub(" ", text)


def fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text))).casefold()


def spaced(folded: str) -> str:
    return folded if folded.isascii() else _UNSPACED.sub(r" \1 ", folded)


def is_unspaced(character: str) -> bool:
    return bool(_UNSPACED.match(character))


def folded_with_places(text: str) -> tuple[str, list[int]]:
    """Return the folded text, and for each of its characters (and its end) the position in the original text."""
    if text.isascii():
        return text.lower(), list(range(len(text) + 1))
    parts: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        part = _folded_sign(character)
        parts.append(part)
        places += [place] * len(part)
    return "".join(parts), [*places, len(text)]


@lru_cache(maxsize=4096)
def _folded_sign(character: str) -> str:
    return fold(character)
