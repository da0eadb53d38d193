"""Azure OpenAI: the v1 API over aiohttp, the dated API over the `openai` package."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest

from hermes.agent.models.model_list import list_models
from hermes.config.providers import PROVIDERS
from hermes.domain.errors import ModelError
from hermes.domain.ids import SessionId
from hermes.domain.provider import WireProtocol
from hermes.domain.turn.turn_failure import FailureKind
from hermes.ports.agent import Model, ModelDone, ModelRequest, ModelText
from tests.agent.harness import endpoint_model, heard, user
from tests.support.azure_server import DEPLOYMENT, KEY, VERSION, AzureServer, refused
from tests.support.responses_protocol import response

REQUEST = ModelRequest(session=SessionId("s"), messages=(user("hi"),))
V1: dict[str, Any] = {}
DATED: dict[str, Any] = {"api_version": VERSION}
K = FailureKind


@pytest.fixture
async def server() -> AsyncIterator[AzureServer]:
    async with AzureServer() as server:
        yield server


@pytest.fixture(params=[V1, DATED], ids=["v1", "dated"])
def form(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.param
    return found


def made(server: AzureServer, form: dict[str, Any], **changes: Any) -> Model:
    address = server.address if form else f"{server.address}/openai/v1"
    fields: dict[str, Any] = {"name": DEPLOYMENT, "key": KEY, **form}
    return endpoint_model(PROVIDERS["azure"], address, **(fields | changes))


@pytest.mark.parametrize("protocol", [WireProtocol.CHAT, WireProtocol.RESPONSES])
async def test_an_answer_is_streamed_by_each_api(
    server: AzureServer, form: dict[str, Any], protocol: WireProtocol
) -> None:
    if protocol is WireProtocol.RESPONSES:
        server.handler = lambda body: response("ok")
    model = made(server, form, protocol=protocol)
    *parts, done = await heard(model, REQUEST)
    await model.close()
    assert "".join(part.text for part in parts if isinstance(part, ModelText)) == "ok"
    assert isinstance(done, ModelDone)
    assert done.usage.prompt_tokens > 0


async def test_the_dated_api_is_called_as_the_package_itself_calls_it(server: AzureServer) -> None:
    model = made(server, DATED)
    await heard(model, REQUEST)
    await model.close()
    client = openai.AsyncAzureOpenAI(azure_endpoint=server.address, api_version=VERSION, api_key=KEY)
    async with client:
        said: Any = [{"role": "user", "content": "hi"}]
        stream = await client.chat.completions.create(model=DEPLOYMENT, messages=said, stream=True)
        texts = [chunk.choices[0].delta.content async for chunk in stream if chunk.choices]
        assert texts[0] == "ok"
    (ours, our_body), (theirs, their_body) = server.requests
    assert ours == theirs == f"/openai/deployments/{DEPLOYMENT}/chat/completions?api-version={VERSION}"
    assert our_body["messages"] == their_body["messages"]


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "content_filter", K.POLICY),
        (400, "context_length_exceeded", K.CONTEXT_OVERFLOW),
        (403, "AccessDenied", K.AUTH),
        (429, "429", K.RATE_LIMIT),
        (429, "insufficient_quota", K.BILLING),
        (500, "InternalServerError", K.OVERLOADED),
    ],
)
async def test_a_fault_has_its_kind(
    server: AzureServer, form: dict[str, Any], status: int, code: str, kind: FailureKind
) -> None:
    server.handler = lambda body: refused(status, code, retry_after_ms="1500")
    model = made(server, form)
    with pytest.raises(ModelError) as caught:
        await heard(model, REQUEST)
    await model.close()
    failure = caught.value.failure
    assert (failure.kind, failure.status, failure.retry_after_s) == (kind, status, 1.5)


async def test_an_unknown_deployment_a_wrong_key_and_a_wrong_version_are_told_apart(server: AzureServer) -> None:
    for changes, kind, said in (
        ({"name": "other"}, K.BAD_REQUEST, "deployment"),
        ({"key": "wrong"}, K.AUTH, "TEST_KEY"),
        ({"api_version": "2020-01-01"}, K.BAD_REQUEST, "Resource not found"),
    ):
        model = made(server, DATED, **changes)
        with pytest.raises(ModelError) as caught:
            await heard(model, REQUEST)
        await model.close()
        assert caught.value.failure.kind is kind
        assert said in caught.value.failure.message


async def test_models_are_listed_by_each_api(server: AzureServer, form: dict[str, Any]) -> None:
    address = server.address if form else f"{server.address}/openai/v1"
    found = await list_models(PROVIDERS["azure"], base_url=address, key=KEY, **form)
    assert [each.name for each in found] == ["gpt-4o"]
