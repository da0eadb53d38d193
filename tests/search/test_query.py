from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.search.query import parse


@pytest.mark.parametrize(
    ("typed", "expression"),
    [
        ("red fox", '("red") AND ("fox")'),
        ('"red fox" den', '("red fox") AND ("den")'),
        ("red OR blue fox", '("red" OR "blue") AND ("fox")'),
        ("red AND fox", '("red") AND ("fox")'),
        ("fox -red", '(("fox")) NOT ("red")'),
        ('fox -"red den" -x', '(("fox")) NOT ("red den" OR "x")'),
        ("fox NOT red", '(("fox")) NOT ("red")'),
        ("fo*", '("fo"*)'),
        ("Straße CAFÉ", '("strasse") AND ("cafe")'),
        ("東京 駅", '("東 京") AND ("駅")'),
        ("OR fox OR", '("fox")'),
        ("-red", ""),
        ("", ""),
        ('"', ""),
        ("?! -- ** ()", ""),
        ("NEAR(a b)", '("near(a") AND ("b)")'),
        ("text:x", '("text:x")'),
        ('say"so', '("say") AND ("so")'),
        ("or and not", '("or") AND ("and") AND ("not")'),
        ("well-known", '("well-known")'),
    ],
)
def test_what_is_typed_becomes_an_expression(typed: str, expression: str) -> None:
    assert parse(typed).for_words() == expression


def test_parts_of_words_need_three_signs_each() -> None:
    assert parse("abc").for_grams() == '(("abc"))'
    assert parse("abcdefgh -x").for_grams() == '(("abc" AND "def" AND "fgh"))'
    assert parse("abc OR defg").for_grams() == '(("abc") OR ("def" AND "efg"))'
    assert parse("abc de").for_grams() == ""


@pytest.mark.parametrize(
    ("typed", "occurs"),
    [("nnect", True), ("nnect -fail", False), ("xyz OR nnect", True), ("nnect xyz", False), ('"he rec"', True)],
)
def test_a_text_is_looked_at_for_parts_of_words(typed: str, *, occurs: bool) -> None:
    assert parse(typed).occurs_in("the reconnection failed") is occurs


@pytest.fixture(scope="module")
def database() -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE words USING fts5 (text, content='')")
    database.execute("INSERT INTO words (rowid, text) VALUES (1, 'or and not near text')")
    return database


SYNTAX = st.sampled_from(
    ['"', "'", "-", "*", "(", ")", ":", "^", "{", "+", "OR", "AND", "NOT", "NEAR", " ", "a", "b"]
)


@given(typed=st.one_of(st.text(max_size=60), st.lists(SYNTAX, max_size=25).map("".join)))
def test_nothing_that_is_typed_breaks_the_database(database: sqlite3.Connection, typed: str) -> None:
    query = parse(typed)
    for expression in (query.for_words(), query.for_beginnings(), query.for_grams()):
        if expression:
            database.execute("SELECT rowid FROM words WHERE words MATCH ?", (expression,)).fetchall()
