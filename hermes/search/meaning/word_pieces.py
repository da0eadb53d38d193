"""Tokenizer of uncased BERT models: words, punctuation and CJK characters, then the longest known pieces."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Final

_MAX_WORD: Final = 100  # characters; a longer word is unknown
_CJK: Final = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class WordPieces:
    def __init__(self, vocabulary: Mapping[str, int], *, max_tokens: int) -> None:
        self._ids = vocabulary
        self._max_tokens = max_tokens

    def tokens(self, text: str) -> list[int]:
        """Return the ids of a text between [CLS] and [SEP], cut at the maximum."""
        found = [self._ids["[CLS]"]]
        room = self._max_tokens - 1
        for word in _words(text):
            found += self._pieces(word)
            if len(found) >= room:
                break
        return [*found[:room], self._ids["[SEP]"]]

    def _pieces(self, word: str) -> list[int]:
        unknown = [self._ids["[UNK]"]]
        if len(word) > _MAX_WORD:
            return unknown
        found: list[int] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = self._ids.get(("##" if start else "") + word[start:end])
                if piece is not None:
                    found.append(piece)
                    start = end
                    break
            else:
                return unknown
        return found


def _words(text: str) -> Iterator[str]:
    plain = unicodedata.normalize("NFD", "".join(map(_cleaned, text)).lower())
    word = ""
    for character in plain:
        if unicodedata.category(character) == "Mn":  # an accent
            continue
        if character.isspace() or _is_alone(character):
            if word:
                yield word
            word = ""
            if not character.isspace():
                yield character
        else:
            word += character
    if word:
        yield word


def _cleaned(character: str) -> str:
    if character in "\t\n\r":
        return " "
    if character in "\0\ufffd" or unicodedata.category(character)[0] == "C":
        return ""
    return character


def _is_alone(character: str) -> bool:
    code = ord(character)
    if code < 128:
        return not character.isalnum() and code > 32
    return unicodedata.category(character)[0] == "P" or any(first <= code <= last for first, last in _CJK)
