"""Person model in Honcho, against a fake server that follows the routes and types of Honcho's SDK, API v3."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from hermes.domain.change import ChangeAuthor
from hermes.domain.errors import BadInputError, StorageError
from hermes.domain.memory.scope import OWNER_SCOPE, MemoryScope, parse_scope
from hermes.domain.profile.conclusion import Spoken
from hermes.ports.memory import ChangeOrigin
from hermes.services.profile.honcho_model import HonchoPersonModel, peer_id

pytest.importorskip("honcho")
NOW = "2026-01-02T03:04:05Z"
ANN, BEN = parse_scope("telegram:1"), parse_scope("telegram:2")


class HonchoServer(ThreadingHTTPServer):
    """Keeps messages, and concludes each one that a peer other than the assistant wrote."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.messages: list[dict[str, Any]] = []
        self.conclusions: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self.status = 200

    def answer(self, method: str, path: str, body: dict[str, Any]) -> Any:
        parts = path.partition("?")[0].split("/")[2:]
        match method, parts:
            case "POST", ["workspaces"]:
                return {"id": body["id"], "created_at": NOW}
            case "POST", ["workspaces", workspace, "peers"]:
                return {"id": body["id"], "workspace_id": workspace, "created_at": NOW}
            case "POST", ["workspaces", workspace, "sessions"]:
                return {"id": body["id"], "workspace_id": workspace, "is_active": True, "created_at": NOW}
            case "POST", ["workspaces", workspace, "sessions", session, "messages"]:
                return [self._add(workspace, session, each) for each in body["messages"]]
            case "POST", ["workspaces", _, "sessions", session, "messages", "list"]:
                wanted = body["filters"]["metadata"]["operation"]
                found = [each for each in self.messages if each["session_id"] == session]
                return _page([each for each in found if each["metadata"]["operation"] == wanted])
            case "POST", ["workspaces", _, "conclusions", "list"]:
                peer = body["filters"].get("observed_id") or body["filters"].get("observed")
                return _page([each for each in self.conclusions if each["observed_id"] == peer])
            case "DELETE", ["workspaces", _, "conclusions", number]:
                self.conclusions = [each for each in self.conclusions if each["id"] != number]
                return None
        raise AssertionError((method, path))

    def _add(self, workspace: str, session: str, message: dict[str, Any]) -> dict[str, Any]:
        number = str(len(self.messages) + 1)
        stored = {"id": number, "session_id": session, "workspace_id": workspace, "token_count": 1, "metadata": {}}
        self.messages.append({**stored, "created_at": NOW, **message})
        if (peer := message["peer_id"]) != "hermes":
            about = {"observer_id": peer, "observed_id": peer, "session_id": session, "created_at": NOW}
            self.conclusions.append({"id": f"c{number}", "content": message["content"], **about})
        return self.messages[-1]


def _page(items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"items": items, "total": len(items), "page": 1, "size": 100, "pages": 1}


class _Handler(BaseHTTPRequestHandler):
    server: HonchoServer

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}")
        self.server.keys.add(self.headers.get("Authorization", ""))
        answer = self.server.answer(self.command, self.path, body) if self.server.status == 200 else {"detail": "no"}
        sent = json.dumps(answer).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    do_POST = do_GET = do_DELETE = _answer  # noqa: N815 - named by the library

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server() -> Iterator[HonchoServer]:
    with HonchoServer() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def model_of(server: HonchoServer) -> HonchoPersonModel:
    address = f"http://127.0.0.1:{server.server_port}"
    return HonchoPersonModel(api_key="secret", base_url=address, workspace="hermes")


async def learn(model: HonchoPersonModel, scope: MemoryScope, text: str, operation: str) -> None:
    said = [
        Spoken(session="s", turn="t", at=1.0, text=text, by_person=True),
        Spoken(session="s", turn="t", at=2.0, text="Noted.", by_person=False),
    ]
    origin = ChangeOrigin(author=ChangeAuthor.REVIEW, operation=operation, session="s", turn="t")
    await model.learn(scope, said, origin)


async def texts(model: HonchoPersonModel, scope: MemoryScope) -> list[str]:
    return [each.text for each in await model.beliefs(scope)]


FORGET = ChangeOrigin(author=ChangeAuthor.PERSON, operation="forget")


async def test_messages_go_to_the_persons_peer_and_its_conclusions_are_beliefs(server: HonchoServer) -> None:
    model = model_of(server)
    await learn(model, ANN, "I like tea. <untrusted-0a>I like war</untrusted-0a>", "a")
    assert [each["peer_id"] for each in server.messages] == [peer_id(ANN), "hermes"]
    assert server.messages[0]["metadata"] == {"operation": "a", "session": "s", "turn": "t"}
    assert "war" not in server.messages[0]["content"], "text of others is not what the person said"
    [belief] = await model.beliefs(ANN)
    assert (belief.text, belief.inferred, belief.is_held) == ("I like tea.", False, True)
    assert server.keys == {"Bearer secret"}


async def test_a_repeated_operation_is_sent_once(server: HonchoServer) -> None:
    for _ in range(2):
        await learn(model_of(server), ANN, "I like tea.", "a")
    assert len(server.messages) == 2


async def test_each_person_is_a_peer_of_their_own(server: HonchoServer) -> None:
    model = model_of(server)
    for scope in (OWNER_SCOPE, ANN, BEN):
        await learn(model, scope, f"I am {scope.text}", "a")
    for scope in (OWNER_SCOPE, ANN, BEN):
        assert await texts(model, scope) == [f"I am {scope.text}"]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", peer_id(scope)) for scope in (OWNER_SCOPE, ANN, BEN))
    bens = (await model.beliefs(BEN))[0].id
    with pytest.raises(BadInputError):
        await model.forget(ANN, bens, FORGET)
    assert await texts(model, BEN) == ["I am person:telegram:2"]


async def test_conclusions_are_deleted_on_request(server: HonchoServer) -> None:
    model = model_of(server)
    await learn(model, ANN, "one", "a")
    await learn(model, ANN, "two", "b")
    [first, _] = sorted(await model.beliefs(ANN), key=lambda each: each.id)
    assert [each.text for each in await model.forget(ANN, first.id, FORGET)] == ["one"]
    assert await texts(model, ANN) == ["two"]
    await model.forget(ANN, None, FORGET)
    assert await texts(model, ANN) == []


async def test_a_failing_server_is_an_error_of_ours(server: HonchoServer) -> None:
    server.status = 401
    with pytest.raises(StorageError, match="AuthenticationError"):
        await learn(model_of(server), ANN, "x", "a")
