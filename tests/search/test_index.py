from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from hermes.domain.errors import StorageError
from hermes.domain.ids import Seq, SessionId
from hermes.ports.search import SearchFilter
from hermes.search.index import FILE_NAME, Hit, Indexed, SearchIndex


def said(text: str, session: str = "s1", **changes: Any) -> Indexed:
    plain = {"root": session, "seq": Seq(0), "at": 1000.0, "role": "user", "platform": "api"}
    return Indexed(session=SessionId(session), text=text, **{**plain, **changes})


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SearchIndex]:
    index = SearchIndex(tmp_path / "search")
    yield index
    index.close()


def texts(hits: list[Hit]) -> list[str]:
    return [hit.snippet.replace(">>>", "").replace("<<<", "") for hit in hits]


def found(index: SearchIndex, query: str, **options: Any) -> list[str]:
    return texts(index.search(query, only=SearchFilter(**options)))


def test_nothing_is_opened_before_its_first_use(tmp_path: Path) -> None:
    index = SearchIndex(tmp_path / "search")
    assert not index.path.parent.exists()
    assert index.position() == 0
    assert index.path.exists()
    index.close()


def test_its_files_are_private(index: SearchIndex) -> None:
    index.add(1, [said("x")])
    files = list(index.path.parent.iterdir())
    assert files
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(index.path.parent.stat().st_mode) == 0o700


def test_a_hit_tells_where_and_what(index: SearchIndex) -> None:
    index.add(7, [said("the red fox", "child", root="parent", seq=Seq(4), at=5.0, role="assistant")])
    [hit] = index.search("fox")
    assert (hit.session, hit.root, hit.seq, hit.at, hit.role, hit.platform) == (
        "child", "parent", 4, 5.0, "assistant", "api"
    )  # fmt: skip
    assert hit.snippet == "the red >>>fox<<<"
    assert hit.score > 0


def test_the_position_and_what_it_stands_for_survive_a_reopening(index: SearchIndex) -> None:
    index.add(41, [said("kept")])
    index.close()
    assert index.position() == 41
    assert found(index, "kept") == ["kept"]


def test_what_was_taken_in_before_is_passed_over(index: SearchIndex) -> None:
    index.add(5, [said("once")])
    index.add(5, [said("once")])
    index.add(4, [said("once")])
    assert len(index.search("once", only=SearchFilter(session=SessionId("s1")))) == 1
    assert index.position() == 5


def test_a_position_moves_also_without_entries(index: SearchIndex) -> None:
    index.add(9, [])
    assert index.position() == 9


def test_one_hit_for_each_conversation_the_best_first(index: SearchIndex) -> None:
    index.add(
        1,
        [
            said("fox and many other words that make it a weaker place to look at", "a", root="r1"),
            said("fox", "b", root="r1"),
            said("a fox somewhere", "c", root="r2"),
        ],
    )
    hits = index.search("fox")
    assert [hit.session for hit in hits] == ["b", "c"]
    assert [hit.score for hit in hits] == sorted([hit.score for hit in hits], reverse=True)
    assert len(index.search("fox", limit=1)) == 1
    assert index.search("fox", limit=0) == []


def test_a_conversation_that_has_most_of_the_hits_does_not_hide_the_others(index: SearchIndex) -> None:
    index.add(1, [said("fox", "loud", seq=Seq(n)) for n in range(1000)] + [said("there was a fox here", "quiet")])
    assert [hit.session for hit in index.search("fox", limit=2)] == ["loud", "quiet"]


def test_a_search_can_be_narrowed(index: SearchIndex) -> None:
    index.add(
        1,
        [
            said("fox one", "a", root="r1", at=10.0),
            said("fox two", "b", root="r1", at=20.0, role="assistant"),
            said("fox three", "c", root="r2", at=30.0),
        ],
    )
    assert sorted(found(index, "fox", session="b")) == ["fox one", "fox two"]
    assert found(index, "fox", role="assistant") == ["fox two"]
    assert found(index, "fox", since=25.0) == ["fox three"]
    assert found(index, "fox", since=99.0) == []
    assert found(index, "fox", session="unknown") == []
    assert sorted(found(index, "fox", until=25.0)) == ["fox two"]
    assert found(index, "fox", until=5.0) == []


def test_a_search_for_a_person_finds_their_messages_and_the_answers(index: SearchIndex) -> None:
    crowd = [said(f"fox of bob {n}", f"b{n}", person="telegram:bob", platform="telegram") for n in range(30)]
    index.add(
        1,
        [
            said("fox of ann", "a", person="telegram:ann", platform="telegram"),
            said("a fox in the answer", "a2", person="telegram:ann", platform="telegram"),
            said("fox of the owner", "o", person="owner", platform="cli"),
            *crowd,
        ],
    )
    index.add(2, [said("the fox, answered", "o", platform="", role="assistant", at=2000.0)])
    assert sorted(found(index, "fox", person="telegram:ann")) == ["a fox in the answer", "fox of ann"]
    assert found(index, "fox", person="owner", role="assistant") == ["the fox, answered"]
    assert found(index, "owner", platform="cli") == ["fox of the owner"]
    assert found(index, "ann", platform="cli") == []
    assert found(index, "fox", person="ann") == []
    assert found(index, "fox", person="telegram:ann", platform="cli") == []


def test_words_phrases_exclusions_and_alternatives(index: SearchIndex) -> None:
    index.add(1, [said("red fox", "a"), said("fox in red", "b"), said("blue bird", "c")])
    assert sorted(found(index, "fox red")) == ["fox in red", "red fox"]
    assert found(index, '"red fox"') == ["red fox"]
    assert found(index, 'fox -"red fox"') == ["fox in red"]
    assert sorted(found(index, '"red fox" OR bird')) == ["blue bird", "red fox"]
    assert found(index, "bir*") == ["blue bird"]
    assert found(index, "fox bird") == []


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Das Café in Zürich", "cafe zurich"),
        ("naive", "naïve"),
        ("ÀÉÎ", "aei"),
        ("Straße", "STRASSE"),
        ("今日は東京駅で会いましょう", "東京"),
        ("今日は東京駅で会いましょう", "駅"),
        ("今日は東京駅で会いましょう", "会いましょう"),
        ("我们明天去北京吧", "北京"),
        ("안녕하세요 세계", "안녕"),
        ("สวัสดีชาวโลก", "ชาวโลก"),
        ("Привет, мир", "привет"),
        ("\uff26\uff35\uff2c\uff2c width", "full"),
        ("call foo_bar.baz() now", "foo_bar"),
        ("call foo_bar.baz() now", "bar.baz"),
        ("the reconnection failed", "connect"),
        ("error E1234-567", "e1234"),
        ("half \ud83d of a pair and \0 nothing", "pair nothing"),
    ],
)
def test_it_is_found_whatever_the_script(index: SearchIndex, text: str, query: str) -> None:
    index.add(1, [said(text), said("something else", "s2")])
    assert [hit.session for hit in index.search(query)] == ["s1"]


def test_without_trigrams_beginnings_of_words_are_found(tmp_path: Path) -> None:
    index = SearchIndex(tmp_path, trigrams=False)
    index.add(1, [said("the reconnection failed"), said("東京駅", "s2")])
    assert found(index, "reconn") == ["the reconnection failed"]
    assert found(index, "connect") == []
    assert found(index, "京駅") == ["東京駅"]
    index.forget(SessionId("s1"))
    index.tidy()
    assert found(index, "reconn") == []
    index.close()


def test_parts_of_words_must_stand_together(index: SearchIndex) -> None:
    index.add(1, [said("abcxdefg"), said("xabcdefgx", "s2"), said("xabcdefgx not this", "s3")])
    assert [hit.session for hit in index.search("abcdefg -this")] == ["s2"]


def test_whole_words_come_before_parts_of_words(index: SearchIndex) -> None:
    index.add(1, [said("unconnected", "part"), said("we did connect " + "x " * 50, "whole")])
    assert [hit.session for hit in index.search("connect")] == ["whole", "part"]


def test_a_session_that_is_forgotten_leaves_no_trace_in_the_file(index: SearchIndex) -> None:
    index.add(1, [said("keep the platypus"), said("a secretword here", "s2"), said("zweites geheimnis", "s2")])
    index.forget(SessionId("s2"))
    assert found(index, "secretword") == []
    assert found(index, "platypus") == ["keep the platypus"]
    index.tidy()
    index.close()
    content = index.path.read_bytes()
    assert b"platypus" in content
    for trace in (b"secretword", b"geheimnis", b"cretw"):
        assert trace not in content


def test_forgetting_nothing_is_fine(index: SearchIndex) -> None:
    index.forget(SessionId("nobody"))
    index.tidy()
    assert index.position() == 0


def test_only_the_beginning_of_a_huge_message_is_kept(index: SearchIndex) -> None:
    index.add(1, [said("start " + "x" * 50_000 + " finish")])
    assert len(index.search("start")) == 1
    assert index.search("finish") == []


def test_an_answer_without_a_platform_gets_that_of_its_session(index: SearchIndex) -> None:
    index.add(1, [said("question", platform="telegram")])
    index.add(2, [said("answer", platform=""), said("other answer", "s2", platform="")])
    assert [hit.platform for hit in index.search("answer", only=SearchFilter(session=SessionId("s1")))] == [
        "telegram"
    ]
    assert [hit.platform for hit in index.search("other")] == [""]


def test_clearing_resets_the_state(index: SearchIndex) -> None:
    index.add(3, [said("x")])
    index.clear()
    assert index.position() == 0
    assert index.search("x") == []


# ---------------------------------------------------------------- damage


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_foreign_file_is_created_again(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    index = SearchIndex(tmp_path)
    assert index.position() == 0
    index.add(1, [said("fresh")])
    assert found(index, "fresh") == ["fresh"]
    index.close()


def test_file_of_another_version_is_created_again(index: SearchIndex) -> None:
    index.add(5, [said("old")])
    index.close()
    database = sqlite3.connect(index.path)
    database.execute("UPDATE meta SET value = '0 something' WHERE key = 'version'")
    database.commit()
    database.close()
    assert index.position() == 0
    assert index.search("old") == []


def test_foreign_database_is_created_again(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / FILE_NAME)
    database.execute("CREATE TABLE other (x)")
    database.commit()
    database.close()
    index = SearchIndex(tmp_path)
    assert index.position() == 0
    index.close()


def test_damage_found_while_it_is_used_empties_it_and_is_no_error(index: SearchIndex) -> None:
    index.add(500, [said(f"word{n} fox", f"s{n}") for n in range(2000)])
    index.close()
    size = index.path.stat().st_size
    with index.path.open("r+b") as file:  # all but the first pages
        file.seek(8192)
        file.write(b"\xa5" * (size - 8192))
    assert index.search("fox") == []
    assert index.position() == 0
    index.add(1, [said("again a fox")])
    assert found(index, "fox") == ["again a fox"]


def test_what_was_read_for_the_lost_file_is_not_taken_into_the_new_one(index: SearchIndex) -> None:
    """Else the new one would claim to hold all that came before."""
    index.add(500, [said("early")])
    index.clear()
    index.add(600, [said("late")])
    assert index.position() == 0
    index.add(600, [said("early"), said("late")])
    assert index.position() == 600


def test_a_directory_that_cannot_be_used_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="cannot be used"):
        SearchIndex(tmp_path / "file").position()


def test_a_transaction_that_fails_leaves_the_index_as_it_was(index: SearchIndex) -> None:
    def entries() -> Iterator[Indexed]:
        yield said("half")
        raise KeyError

    index.add(1, [said("whole")])
    with pytest.raises(KeyError):
        index.add(2, entries())
    assert index.position() == 1
    assert index.search("half") == []
    assert found(index, "whole") == ["whole"]


def test_threads_take_turns(index: SearchIndex) -> None:
    with ThreadPoolExecutor(4) as pool:
        adding = [pool.submit(index.add, n, [said(f"fox {n}", f"s{n}")]) for n in range(1, 40)]
        asking = [pool.submit(index.search, "fox") for _ in range(40)]
    assert [each.result() for each in adding] == [None] * 39
    assert all(len(each.result()) <= 10 for each in asking)
    assert index.position() == 39


def test_a_large_index_answers_quickly(index: SearchIndex) -> None:
    """Generous: the figures that matter are a tenth of these; this is here to catch a scan of everything."""
    words = [f"word{n % 977} common text about topic{n % 89}" for n in range(10_000)]
    began = process_time()
    for first in range(0, 10_000, 500):
        index.add(first + 500, [said(text, f"s{first // 50}") for text in words[first : first + 500]])
    assert process_time() - began < 20
    began = process_time()
    for query in ("common", "word5", "topic7 text", '"common text"', "ommo"):
        assert index.search(query)
    assert process_time() - began < 2.5
