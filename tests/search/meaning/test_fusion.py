from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes.domain.ids import Seq, SessionId
from hermes.search.index import Hit
from hermes.search.meaning.fusion import fused


def hit(name: str, snippet: str = "") -> Hit:
    return Hit(
        session=SessionId(name),
        root=SessionId(name),
        seq=Seq(1),
        at=0.0,
        role="user",
        platform="cli",
        snippet=snippet or name,
        score=9.0,
    )


def names(*rankings: str, limit: int = 10) -> str:
    return "".join(each.session for each in fused(*(list(map(hit, r)) for r in rankings), limit=limit, distinct=True))


def test_what_both_rankings_have_comes_first() -> None:
    assert names("abc", "xbz") == "baxcz"
    assert names("abc", "") == "abc"
    assert names("", "xy") == "xy"
    assert names("abc", "xbz", limit=2) == "ba"


def test_of_one_conversation_the_hit_of_the_first_ranking_is_shown() -> None:
    [found] = fused([hit("a", "by words")], [hit("a", "by meaning")], limit=5, distinct=True)
    assert found.snippet == "by words"


@given(st.lists(st.permutations("abcdef"), min_size=1, max_size=3))
def test_the_best_of_all_rankings_stays_the_best(rankings: list[list[str]]) -> None:
    first = ["best", *rankings[0]]
    found = fused(*(list(map(hit, ["best", *each])) for each in rankings), limit=20, distinct=True)
    assert found[0].session == "best"
    assert len(found) == len(first)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
