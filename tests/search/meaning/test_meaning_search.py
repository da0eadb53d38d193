"""Search by meaning with a small embedder of our own: words of one group mean the same."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from hermes.domain.errors import StorageError
from hermes.domain.ids import Seq, SessionId
from hermes.ports.search import NO_FILTER, Embedder, SearchFilter
from hermes.search.index import Indexed, SearchIndex
from hermes.search.meaning.endpoint_embedder import EndpointEmbedder
from hermes.search.meaning.local_embedder import PACKAGE, LocalEmbedder
from hermes.search.meaning.meaning_search import MeaningSearch

np: Any = pytest.importorskip("numpy")

GROUPS = ({"car", "auto", "vehicle"}, {"tea", "drink"}, {"birthday", "born"})


class GroupEmbedder(Embedder):
    """Embedder with one direction for each group of words."""

    def __init__(self, name: str = "groups") -> None:
        self._name = name
        self.texts: list[str] = []
        self.trouble: StorageError | None = None

    @property
    def name(self) -> str:
        return self._name

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        if self.trouble is not None:
            raise self.trouble
        self.texts += texts
        vectors = [[float(bool(group & set(text.lower().split()))) for group in GROUPS] for text in texts]
        return [(np.array(v) / max(np.linalg.norm(v), 1e-9)).astype(np.float16).tobytes() for v in vectors]

    def release(self) -> None: ...


def said(text: str, session: str, **changes: Any) -> Indexed:
    plain = {"root": session, "seq": Seq(0), "at": 1000.0, "role": "user", "platform": "cli", "person": "owner"}
    return Indexed(session=SessionId(session), text=text, **{**plain, **changes})


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SearchIndex]:
    index = SearchIndex(tmp_path)
    index.add(
        1,
        [
            said("my auto is red", "a"),
            said("tea please", "b", person="telegram:7", platform="telegram"),
            said("nothing of interest", "c"),
            said("another vehicle", "d", at=5000.0),
        ],
    )
    yield index
    index.close()


@pytest.fixture
async def search(index: SearchIndex) -> AsyncIterator[MeaningSearch]:
    search = MeaningSearch(index, GroupEmbedder(), least=0.5, retry_s=0.01, follow_s=0.01)
    search.start()
    yield search
    await search.stop()


async def embedded(search: MeaningSearch, count: int) -> None:
    async def all_done() -> bool:
        return await search.count() == (count, count)

    async with asyncio.timeout(30):
        while not await all_done():  # noqa: ASYNC110 - the count is in a file
            await asyncio.sleep(0)


async def names(search: MeaningSearch, query: str, only: SearchFilter = NO_FILTER) -> set[str]:
    return {each.session for each in await search.search(query, limit=5, only=only)}


async def test_other_words_with_the_same_meaning_are_found(search: MeaningSearch) -> None:
    await embedded(search, 4)
    assert await names(search, "car") == {"a", "d"}
    assert await names(search, "drink") == {"b"}
    assert await names(search, "born") == set()
    assert await names(search, '"car"') == set(), "a phrase is meant literally"
    assert await names(search, "car -red") == {"d"}


async def test_filters_apply(search: MeaningSearch) -> None:
    await embedded(search, 4)
    assert await names(search, "car", SearchFilter(since=2000.0)) == {"d"}
    assert await names(search, "car", SearchFilter(until=2000.0)) == {"a"}
    assert await names(search, "car", SearchFilter(session=SessionId("a"))) == {"a"}
    assert await names(search, "car drink", SearchFilter(person="telegram:7")) == {"b"}
    assert await names(search, "car drink", SearchFilter(platform="cli", role="user")) == {"a", "d"}
    assert await names(search, "car", SearchFilter(role="assistant")) == set()


async def test_new_messages_are_embedded_once_and_erased_ones_forgotten(index: SearchIndex) -> None:
    embedder = GroupEmbedder()
    search = MeaningSearch(index, embedder, least=0.5, follow_s=0.01)
    search.start()
    await embedded(search, 4)
    await asyncio.to_thread(index.add, 2, [said("a car", "e")])
    await embedded(search, 5)
    assert sorted(embedder.texts) == sorted({*embedder.texts}), "no text twice"
    await asyncio.to_thread(index.forget, SessionId("a"))
    assert await search.count() == (4, 4)
    assert await names(search, "car") == {"d", "e"}
    await search.stop()


async def test_vectors_of_another_model_are_made_again(index: SearchIndex) -> None:
    for name in ("one", "two"):
        embedder = GroupEmbedder(name)
        search = MeaningSearch(index, embedder, least=0.5)
        search.start()
        await embedded(search, 4)
        await search.stop()
        assert len(embedder.texts) == 4
    again = GroupEmbedder("two")
    search = MeaningSearch(index, again, least=0.5)
    search.start()
    await embedded(search, 4)
    await search.stop()
    assert again.texts == []


async def test_a_failing_embedder_is_tried_again_and_breaks_no_search(index: SearchIndex) -> None:
    embedder = GroupEmbedder()
    embedder.trouble = StorageError("down")
    search = MeaningSearch(index, embedder, least=0.5, retry_s=0.01)
    search.start()
    assert await names(search, "car") == set()
    embedder.trouble = None
    await embedded(search, 4)
    assert await names(search, "car") == {"a", "d"}
    await search.stop()


def test_a_message_that_was_replaced_meanwhile_gets_no_vector(index: SearchIndex) -> None:
    from hermes.search.meaning.vector_table import VectorTable

    table = VectorTable(index, "m")
    rows = [(number, text, b"\0\0") for number, text in table.unembedded(10)]
    index.forget(SessionId("d"))
    index.add(3, [said("takes the number of the erased one", "f")])
    table.add(rows)
    assert table.count() == (3, 4)


@pytest.mark.skipif(find_spec(PACKAGE) is None, reason="the weights of the local model are not installed")
def test_the_local_model_has_the_published_similarities() -> None:
    """The model's page shows these sentences with these figures."""
    texts = ["That is a happy person", "That is a happy dog", "That is a very happy person", "Today is a sunny day"]
    vectors = np.array([np.frombuffer(each, np.float16) for each in LocalEmbedder().embed(texts)], dtype=np.float32)
    assert (vectors @ vectors[0]).round(2).tolist() == pytest.approx([1.0, 0.69, 0.94, 0.26], abs=0.011)


class FakeEndpoint(BaseHTTPRequestHandler):
    status = 200

    def do_POST(self) -> None:
        import json

        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        data = [
            {"object": "embedding", "index": number, "embedding": [3.0, 4.0] if "a" in text else [0.0, 2.0]}
            for number, text in enumerate(asked["input"])
        ]
        answer = {"object": "list", "model": asked["model"], "data": data[::-1], "usage": {}}
        body = json.dumps(answer if self.status == 200 else {"error": {"message": "no"}}).encode()
        self.send_response(self.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


def test_an_endpoint_embeds_in_order_and_with_length_one() -> None:
    server = HTTPServer(("127.0.0.1", 0), FakeEndpoint)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        embedder = EndpointEmbedder(model="m", base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key="k")
        vectors = [np.frombuffer(each, np.float16).tolist() for each in embedder.embed(["a", "b"])]
        assert vectors == [pytest.approx([0.6, 0.8], abs=1e-3), [0.0, 1.0]]
        FakeEndpoint.status = 400
        with pytest.raises(StorageError, match="BadRequestError"):
            embedder.embed(["a"])
        embedder.release()
    finally:
        FakeEndpoint.status = 200
        server.shutdown()
        thread.join()
        server.server_close()
