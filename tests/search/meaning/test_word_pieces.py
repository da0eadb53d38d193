from __future__ import annotations

import pytest

from hermes.search.meaning.word_pieces import WordPieces

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "fox", "##es", "red", ",", "中", "caf", "##e", "!"]
PIECES = WordPieces({word: number for number, word in enumerate(WORDS)}, max_tokens=8)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("Red  FOXES,\tfox", ["red", "fox", "##es", ",", "fox"]),
        ("Café", ["caf", "##e"]),
        ("中red中", ["中", "red", "中"]),
        ("fox\u200bes", ["fox", "##es"]),
        ("wolf fox", ["[UNK]", "fox"]),
        ("x" * 101, ["[UNK]"]),
        ("red " * 20, ["red"] * 6),
    ],
)
def test_texts_become_known_pieces(text: str, words: list[str]) -> None:
    assert [WORDS[number] for number in PIECES.tokens(text)] == ["[CLS]", *words, "[SEP]"]
