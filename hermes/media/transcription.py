"""Transcription of voice messages by an OpenAI-compatible endpoint.

Only the configured address is used; redirects are not followed, and the size of the answer is limited.
"""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.config.secret import Secret
from hermes.domain.errors import PlatformError
from hermes.domain.values import dataclass
from hermes.ports.chat import Attachment
from hermes.system.regular_file import read_regular_file

if TYPE_CHECKING:
    import aiohttp

_MAX_ANSWER = 1 << 20
_MAX_FILE = 1 << 27


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptionSettings:
    base_url: str
    model: str
    key: Secret | None = None
    timeout_s: float = 60.0


class Transcriber:
    def __init__(self, settings: TranscriptionSettings) -> None:
        self._settings = settings
        self._url = f"{settings.base_url.rstrip('/')}/audio/transcriptions"

    async def __call__(self, path: Path, attachment: Attachment) -> str:
        """Return the text of a voice message. Raises PlatformError."""
        import aiohttp  # noqa: PLC0415 - slow

        data = await asyncio.to_thread(read_regular_file, path, max_bytes=_MAX_FILE)
        key = self._settings.key
        headers = {"Authorization": f"Bearer {key.reveal()}"} if key is not None else {}
        form = aiohttp.FormData({"model": self._settings.model, "response_format": "json"})
        media_type = attachment.media_type or "application/octet-stream"
        form.add_field("file", io.BytesIO(data), filename=f"sound{path.suffix or '.ogg'}", content_type=media_type)
        timeout = aiohttp.ClientTimeout(total=self._settings.timeout_s)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.post(self._url, data=form, headers=headers, allow_redirects=False) as response,
            ):
                return await _words(response)
        except TimeoutError:
            raise PlatformError(f"the transcription timed out after {self._settings.timeout_s:g} s") from None
        except aiohttp.ClientError as error:
            raise PlatformError(f"could not reach the transcription endpoint ({type(error).__name__})") from error


async def _words(response: aiohttp.ClientResponse) -> str:
    if response.status != 200:
        raise PlatformError(f"the transcription endpoint returned status {response.status}")
    body = b""
    async for piece in response.content.iter_chunked(_MAX_ANSWER):
        body += piece
        if len(body) > _MAX_ANSWER:
            break
    try:
        text = json.loads(body)["text"]
    except (ValueError, KeyError, TypeError):
        text = None
    if not isinstance(text, str):
        raise PlatformError("the transcription endpoint returned an invalid answer")
    return text
