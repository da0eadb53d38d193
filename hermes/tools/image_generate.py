"""Image_generate tool: a picture made by an OpenAI-compatible endpoint, and sent like a file of send_file.

Rules:
- The picture is stored before its call has a result, so its delivery survives a crash.
- An answer that is not a picture of a known type is refused. A URL is fetched under the address guard.
- No error contains the endpoint's answer or the key.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import Awaitable, Callable
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

from hermes.domain.access.api_key import surface_of
from hermes.domain.media.reference import COPY
from hermes.domain.values import dataclass
from hermes.media.picture import PICTURE_TYPES, picture_type
from hermes.media.store import MediaError
from hermes.tools.tool import Tool, ToolContext, ToolError, tool

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types import Image

MAX_PROMPT_CHARS = 4_000
_API = "api"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSettings:
    base_url: str
    model: str
    key: str = field(default="", repr=False)
    size: str = ""  # empty: the endpoint's own
    timeout_s: float = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageDelivery:
    """Ways to store a picture for its delivery. They may raise OSError and MediaError."""

    put_aside: Callable[[BinaryIO, str], Path]
    shelve: Callable[[str, str, BinaryIO], Awaitable[str]]  # platform, name, file; returns a file id
    download: Callable[[str], Awaitable[bytes]]  # of a public URL; raises ToolError
    platforms: frozenset[str]  # chat platforms that accept files


def image_tool(settings: ImageSettings | None, delivery: ImageDelivery) -> Tool:
    """Return the tool. Without settings it is not offered."""
    why = "" if settings else "no endpoint for pictures is configured (image_gen.base_url)"

    @tool("image_gen", available=lambda: why)
    async def image_generate(
        context: ToolContext, *, prompt: Annotated[str, "complete description of the picture"]
    ) -> str:
        """Generate a picture from a description and send it to the person.

        Each call costs money. The picture is sent automatically: do not send it again.
        """
        assert settings is not None  # else it is not offered
        for_download = surface_of(context.platform) == _API
        if context.platform not in delivery.platforms and not for_download:
            raise ToolError("Pictures cannot be sent here: nothing was generated.")
        if not prompt.strip() or len(prompt) > MAX_PROMPT_CHARS:
            raise ToolError(f"prompt must have 1 to {MAX_PROMPT_CHARS} characters. Nothing was generated.")
        image = await _generated(settings, prompt)
        data = _decoded(image.b64_json) if image.b64_json else await delivery.download(image.url or "")
        if (kind := picture_type(data)) is None:
            raise ToolError("The endpoint for pictures sent something that is not a picture. Nothing was sent.")
        name = f"picture{PICTURE_TYPES[kind]}"
        try:
            if for_download:
                file_id = await delivery.shelve(context.platform, name, io.BytesIO(data))
                return json.dumps({"status": "ready for download", "file_id": file_id, "name": name})
            copy = await asyncio.to_thread(delivery.put_aside, io.BytesIO(data), name)
        except (OSError, MediaError) as error:
            raise ToolError(f"The picture was generated but not sent: could not store it: {error}") from error
        return json.dumps({"status": "queued for delivery", "size_bytes": len(data), COPY: str(copy)})

    return image_generate


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except ValueError:
        return b""  # refused like other data that is no picture


def _client(settings: ImageSettings) -> AsyncOpenAI:
    """Slow, and it reads files."""
    from openai import AsyncOpenAI  # noqa: PLC0415 - slow, and only for pictures

    key = settings.key or "none"  # the package insists on one
    return AsyncOpenAI(base_url=settings.base_url, api_key=key, timeout=settings.timeout_s, max_retries=0)


async def _generated(settings: ImageSettings, prompt: str) -> Image:
    client = await asyncio.to_thread(_client, settings)
    import openai  # noqa: PLC0415 - imported by the client

    size = settings.size or openai.omit
    try:
        async with asyncio.timeout(settings.timeout_s), client:
            answer = await client.images.generate(model=settings.model, prompt=prompt, n=1, size=size)
        return (answer.data or [])[0]
    except (TimeoutError, openai.APITimeoutError) as error:
        raise ToolError(
            f"The endpoint for pictures timed out after {settings.timeout_s:g} s. It may have charged the picture."
        ) from error
    except openai.APIStatusError as error:
        raise ToolError(
            f"The endpoint for pictures answered status {error.status_code}. The owner should check "
            "image_gen.base_url, image_gen.model and the key; status 400 can mean that it refuses this description."
        ) from error
    except (openai.OpenAIError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise ToolError(f"The endpoint for pictures gave no picture ({type(error).__name__}).") from error
