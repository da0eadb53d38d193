"""image_generate against an endpoint that follows "Create image" of the OpenAI API reference."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from aiohttp import web

from hermes.domain.ids import SessionId, TurnId
from hermes.domain.turn.tool_call import Effect
from hermes.domain.values import replace
from hermes.media.store import MediaLimits, MediaStore
from hermes.tools.image_generate import ImageDelivery, ImageSettings, image_tool
from hermes.tools.tool import ToolContext, ToolError, ToolResult
from hermes.tools.toolbox import Toolbox

KEY = "key-of-the-owner"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (8).to_bytes(4, "big") * 2 + b"\x08\x02\0\0\0" + bytes(8)
CONTEXT = ToolContext(
    session=SessionId("s"), turn=TurnId("t"), call="c", platform="telegram", folder=Path("/nowhere")
)


class Studio:
    """Endpoint with one answer, and what was stored and downloaded."""

    def __init__(self, root: Path) -> None:
        self.answer: web.Response | dict[str, Any] = {
            "created": 1,
            "data": [{"b64_json": base64.b64encode(PNG).decode()}],
        }
        self.asked: list[tuple[str, dict[str, Any], str]] = []
        self.shelved: list[tuple[str, str, bytes]] = []
        self.downloads: list[str] = []
        self.base_url = ""
        self.store = MediaStore(root / "media", limits=MediaLimits(), clock=lambda: 0.0)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request.path, await request.json(), request.headers["Authorization"]))
        return self.answer if isinstance(self.answer, web.Response) else web.json_response(self.answer)

    async def shelve(self, platform: str, name: str, file: BinaryIO) -> str:
        self.shelved.append((platform, name, file.read()))
        return "file-1"

    async def download(self, url: str) -> bytes:
        self.downloads.append(url)
        return PNG

    @property
    def delivery(self) -> ImageDelivery:
        return ImageDelivery(
            put_aside=self.store.put_aside,
            shelve=self.shelve,
            download=self.download,
            platforms=frozenset({"telegram"}),
        )

    async def generate(self, prompt: str = "a red kite", *, platform: str = "telegram") -> Any:
        settings = ImageSettings(base_url=self.base_url, model="painter", key=KEY, size="256x256", timeout_s=20)
        tool = image_tool(settings, self.delivery)
        result = await tool.run(replace(CONTEXT, platform=platform), prompt=prompt)
        return json.loads(result.text if isinstance(result, ToolResult) else result)


@pytest.fixture
async def studio(tmp_path: Path) -> AsyncIterator[Studio]:
    made = Studio(tmp_path)
    app = web.Application()
    app.router.add_post("/{path:.*}", made.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield made
    finally:
        await runner.cleanup()


async def test_a_picture_is_stored_for_its_delivery(studio: Studio) -> None:
    told = await studio.generate()
    copy = Path(told["copy"])
    assert (copy.name, await asyncio.to_thread(copy.read_bytes)) == ("picture.png", PNG)
    wanted = {"model": "painter", "prompt": "a red kite", "n": 1, "size": "256x256"}
    assert studio.asked == [("/v1/images/generations", wanted, f"Bearer {KEY}")]


async def test_a_client_of_the_api_gets_a_file_id(studio: Studio) -> None:
    told = await studio.generate(platform="api")
    assert told == {"status": "ready for download", "file_id": "file-1", "name": "picture.png"}
    assert studio.shelved == [("api", "picture.png", PNG)]


async def test_a_picture_given_as_a_url_is_downloaded(studio: Studio) -> None:
    studio.answer = {"created": 1, "data": [{"url": "https://pictures.example/1.png"}]}
    copy = Path((await studio.generate())["copy"])
    assert await asyncio.to_thread(copy.read_bytes) == PNG
    assert studio.downloads == ["https://pictures.example/1.png"]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (web.Response, "status 401"),
        ({"created": 1, "data": []}, "gave no picture"),
        ({"created": 1, "data": [{"b64_json": base64.b64encode(b"<svg>").decode()}]}, "not a picture"),
        ({"created": 1, "data": [{"b64_json": "%"}]}, "not a picture"),
    ],
)
async def test_an_answer_without_a_picture_is_an_error(studio: Studio, answer: Any, problem: str) -> None:
    studio.answer = web.Response(status=401, text=f"bad key {KEY}") if answer is web.Response else answer
    with pytest.raises(ToolError, match=problem) as caught:
        await studio.generate()
    assert KEY not in str(caught.value)
    assert not studio.store.root.exists()


async def test_nothing_is_generated_where_it_cannot_be_sent(studio: Studio) -> None:
    for prompt, platform in (("x", "cli"), (" ", "telegram"), ("x" * 5000, "telegram")):
        with pytest.raises(ToolError, match=r"[Nn]othing was generated"):
            await studio.generate(prompt, platform=platform)
    assert not studio.asked


def test_it_is_offered_with_an_endpoint_only_and_never_repeated(tmp_path: Path) -> None:
    tool = image_tool(None, Studio(tmp_path).delivery)
    assert Toolbox((tool,), toolsets={"default": ("image_gen",)}).names("telegram") == ()
    assert tool.effect is Effect.EFFECT
    assert KEY not in repr(ImageSettings(base_url="", model="", key=KEY))
