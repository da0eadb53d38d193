"""Parser of search queries: words, "phrases", -not, OR, and a star at the end of a word.

No input is an error or reaches the database as syntax. All words must occur, except those joined by OR.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from hermes.domain.values import dataclass
from hermes.search.fold import fit, fold, spaced

MAX_CHARS: Final = 1000
MAX_TERMS: Final = 32
GRAM: Final = 3  # characters; a shorter part of a word cannot be found

_TOKEN: Final = re.compile(r'(-?)(?:"([^"]*)"?|([^\s"]+))')
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    text: str  # folded
    prefix: bool = False

    def words(self) -> str:
        return _quoted(" ".join(spaced(self.text).split())) + ("*" if self.prefix else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    groups: tuple[tuple[Term, ...], ...] = ()  # one term of each group must occur
    without: tuple[Term, ...] = ()

    def for_words(self) -> str:
        """Return an FTS5 expression over whole words; empty if there are no terms."""
        return self._expression(Term.words)

    def for_beginnings(self) -> str:
        """Return an FTS5 expression over words that start with a term."""
        return self._expression(lambda term: _quoted(" ".join(spaced(term.text).split())) + "*")

    def for_grams(self) -> str:
        """Return an FTS5 expression over parts of words; empty if a term is too short.

        It matches too much, which keeps the index small. Check its matches with `occurs_in`.
        """
        if any(len(term.text) < GRAM for group in self.groups for term in group):
            return ""
        return " AND ".join(f"({' OR '.join(map(_grams, group))})" for group in self.groups)

    def occurs_in(self, folded: str) -> bool:
        """Return whether a folded text matches, by words or parts of words."""
        wanted = all(any(term.text in folded for term in group) for group in self.groups)
        return wanted and not any(term.text in folded for term in self.without)

    def tokens(self) -> list[str]:
        """Return the words to highlight, long ones first."""
        found = {token for group in self.groups for term in group for token in _WORD.findall(term.text)}
        return sorted(found, key=len, reverse=True)

    def _expression(self, form: Callable[[Term], str]) -> str:
        wanted = " AND ".join(f"({' OR '.join(map(form, group))})" for group in self.groups)
        if not wanted or not self.without:
            return wanted
        return f"({wanted}) NOT ({' OR '.join(map(form, self.without))})"


def parse(text: str) -> Query:
    groups: list[tuple[Term, ...]] = []
    without: list[Term] = []
    join = negate = False
    for minus, phrase, word in _TOKEN.findall(fit(text)[:MAX_CHARS])[:MAX_TERMS]:
        if word in ("OR", "AND", "NOT") and not minus:
            join, negate = word == "OR" and bool(groups), word == "NOT"
            continue
        if not (term := _term(phrase, word)):
            continue
        if minus or negate:
            without.append(term)
        elif join:
            groups[-1] = (*groups[-1], term)
        else:
            groups.append((term,))
        join = negate = False
    return Query(groups=tuple(groups), without=tuple(without))


def _term(phrase: str, word: str) -> Term | None:
    text = fold(phrase or word.rstrip("*")).strip()
    if not any(character.isalnum() for character in text):
        return None
    return Term(text=text, prefix=word.endswith("*"))


def _grams(term: Term) -> str:
    """Return trigrams that cover the term."""
    last = len(term.text) - GRAM
    starts = sorted({*range(0, last, GRAM), last})
    return "(" + " AND ".join(_quoted(term.text[start : start + GRAM]) for start in starts) + ")"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
