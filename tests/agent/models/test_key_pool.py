from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from hermes.agent.models.key_pool import LIMITED_REST_S, REFUSED_REST_S, KeyPool, ProviderKey
from hermes.config.providers import PROVIDERS
from hermes.domain.errors import ModelError
from hermes.domain.ids import SessionId
from hermes.domain.provider import WireProtocol
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.ports.agent import Model, ModelRequest, ModelText
from tests.agent.harness import endpoint_model, heard
from tests.support.model_server import ModelServer, Reply, answer, delta, error, event, stream
from tests.support.responses_protocol import response

K = FailureKind
KEYS = [ProviderKey(value=name, source=f"KEY_{name}") for name in "abc"]
REQUEST = ModelRequest(session=SessionId("s"), messages=(EncodedMessage(b'{"role":"user","content":"hi"}'),))


def failed(kind: FailureKind, retry_after_s: float | None = None) -> Failure:
    return Failure(kind=kind, message="no", retry_after_s=retry_after_s)


def test_a_refused_key_rests_and_the_next_one_is_used() -> None:
    now = [0.0]
    pool = KeyPool(KEYS, clock=lambda: now[0])
    assert pool.rotate(KEYS[0], failed(K.AUTH))
    assert pool.current() == KEYS[1]
    assert pool.rotate(KEYS[1], failed(K.RATE_LIMIT))
    assert pool.current() == KEYS[2]
    assert not pool.rotate(KEYS[2], failed(K.RATE_LIMIT, retry_after_s=5))
    assert pool.current() == KEYS[2]  # back first
    now[0] = LIMITED_REST_S
    assert pool.current() == KEYS[1]
    now[0] = REFUSED_REST_S
    assert pool.current() == KEYS[0]


@pytest.mark.parametrize("kind", [K.OVERLOADED, K.TIMEOUT, K.CONNECTION, K.BAD_REQUEST, K.CONTEXT_OVERFLOW])
def test_other_failures_are_not_about_the_key(kind: FailureKind) -> None:
    assert not KeyPool(KEYS, clock=lambda: 0.0).rotate(KEYS[0], failed(kind))


def test_one_key_or_none_has_nothing_to_rotate_to() -> None:
    assert KeyPool((), clock=lambda: 0.0).current() == ProviderKey()
    assert not KeyPool(KEYS[:1], clock=lambda: 0.0).rotate(KEYS[0], failed(K.AUTH))


@pytest.fixture(params=[WireProtocol.CHAT, WireProtocol.RESPONSES])
async def served(request: pytest.FixtureRequest) -> AsyncIterator[tuple[ModelServer, Model, Reply]]:
    async with ModelServer() as server:
        model = endpoint_model(
            PROVIDERS["openai"], server.base_url, name="m", keys=KEYS, protocol=request.param, clock=lambda: 0.0
        )
        yield server, model, answer("ok") if request.param is WireProtocol.CHAT else response("ok")
        await model.close()


@pytest.mark.parametrize("status", [401, 402, 429])
async def test_the_next_key_answers_without_a_retry(served: Any, status: int) -> None:
    server, model, reply = served
    server.script(error(status), error(status), reply, reply)
    for _ in range(2):
        assert "".join(each.text for each in await heard(model, REQUEST) if isinstance(each, ModelText)) == "ok"
    used = [headers["Authorization"] for headers in server.headers]
    assert used == ["Bearer a", "Bearer b", "Bearer c", "Bearer c"]


async def test_if_every_key_is_refused_the_error_names_the_last_one(served: Any) -> None:
    server, model, _ = served
    server.script(*[error(401)] * 3)
    with pytest.raises(ModelError) as caught:
        await heard(model, REQUEST)
    assert "KEY_c" in caught.value.failure.message
    assert len(server.requests) == 3


async def test_an_answer_that_began_is_not_continued_with_another_key() -> None:
    async with ModelServer() as server:
        model = endpoint_model(PROVIDERS["openai"], server.base_url, name="m", keys=KEYS)
        server.script(stream(delta(content="be"), event({"error": {"message": "x", "code": 429}})), answer("whole"))
        with pytest.raises(ModelError):
            await heard(model, REQUEST)
        assert len(server.requests) == 1
        await model.close()
