"""Conversion of a person's message to a model message: fetch files, transcribe voice messages, describe everything.

An image is part of the message, for vision models; the text contains its name, size and path for other models and
for tools. File names and types from the sender are fenced, and so is a forwarded voice message's text. A file that
could not be fetched is mentioned with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import TypeAlias

from loguru import logger

from hermes.domain.errors import HermesError, PlatformError
from hermes.domain.media.reference import user_message
from hermes.domain.media.scope import scope_of
from hermes.domain.source import Place
from hermes.domain.text.fence import fenced
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.values import dataclass
from hermes.media.picture import MAX_PICTURE_BYTES, PICTURE_TYPES, picture_type
from hermes.media.store import MediaStore, amount, in_brackets
from hermes.ports.chat import Attachment, FileSource, Inbound

Transcribe: TypeAlias = Callable[[Path, Attachment], Awaitable[str]]  # raises PlatformError

_SUFFIXES = PICTURE_TYPES | {"audio/ogg": ".ogg", "audio/mpeg": ".mp3", "video/mp4": ".mp4"}
_FETCH_WITHIN_S = 60.0
_AT_ONCE = 4  # files, of all people together
_SPOKEN = ("voice", "audio")
_NAME_CHARS = 100
_TYPE_CHARS = 100
_SPOKEN_MAX_CHARS = 16_000
_REMEMBERED = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    note: str
    picture: str = ""  # its scope and name in the store


class Reception:
    def __init__(
        self,
        store: MediaStore,
        *,
        source: FileSource,
        transcribe: Transcribe | None = None,
        fetch_within_s: float = _FETCH_WITHIN_S,
    ) -> None:
        self._store = store
        self._source = source
        self._transcribe = transcribe
        self._fetch_within_s = fetch_within_s
        self._turnstile = asyncio.Semaphore(_AT_ONCE)
        self._heard_lately: dict[str, str] = {}  # a message that is retried brings its file again

    async def message(self, inbound: Inbound, marker: str) -> EncodedMessage:
        """`marker` is that of the message's fences."""
        await self._store.tidy()
        if not inbound.attachments:
            return user_message(inbound.text)
        read = await asyncio.gather(*(self._read(inbound, attachment, marker) for attachment in inbound.attachments))
        text = "\n".join(filter(None, (inbound.text, *(each.note for each in read))))
        return user_message(text, [each.picture for each in read if each.picture])

    async def _read(self, inbound: Inbound, attachment: Attachment, marker: str) -> _Read:
        what = _described(attachment, marker)
        try:
            path = await self._fetched(inbound.place, attachment)
        except (HermesError, TimeoutError) as error:
            why = str(error) or f"timed out after {self._fetch_within_s:.0f} s"
            logger.info("media: could not fetch a received file: {}", why)
            return _Read(note=f"[{what} was sent, but could not be fetched: {in_brackets(why)}. Tell the person.]")
        except Exception as error:  # noqa: BLE001 - else the platform would redeliver the message forever
            logger.opt(exception=error).error("media: could not fetch a received file")
            return _Read(note=f"[{what} was sent, but could not be fetched. Tell the person.]")
        if attachment.kind in _SPOKEN:
            return _Read(note=await self._heard(attachment, what, path, marker if inbound.forwarded else ""))
        note = f"[{what}; stored as {path}]"
        if await asyncio.to_thread(_is_picture, path, attachment.media_type):
            return _Read(note=note, picture=f"{path.parent.name}/{path.name}")
        return _Read(note=note)

    async def _fetched(self, place: Place, attachment: Attachment) -> Path:
        most = self._store.limits.file_bytes
        if attachment.size_bytes > most:
            raise PlatformError(f"files larger than {amount(most)} are not accepted")
        name = attachment.name if "." in attachment.name else _SUFFIXES.get(attachment.media_type, "")
        async with (
            self._turnstile,
            asyncio.timeout(self._fetch_within_s),
            aclosing(self._source.fetch(attachment)) as pieces,
        ):
            return await self._store.keep(scope_of(place), f"{place.platform}:{attachment.file_id}", name, pieces)

    async def _heard(self, attachment: Attachment, what: str, path: Path, marker: str) -> str:
        """Return the note about a voice message. `marker` fences a forwarded one; empty: not forwarded."""
        if self._transcribe is None:
            return _unheard(attachment, what, path)
        try:
            words = self._heard_lately.get(path.name) or await self._transcribe(path, attachment)
        except PlatformError as error:
            logger.warning("media: could not transcribe a voice message: {}", error)
            return f"[{what}: could not be transcribed ({error}). Tell the person. The audio is stored as {path}]"
        self._heard_lately[path.name] = words
        if len(self._heard_lately) > _REMEMBERED:
            del self._heard_lately[next(iter(self._heard_lately))]
        if not words.strip():
            return f"[{what}: contains no speech. The audio is stored as {path}]"
        if marker:
            spoken = fenced(words.strip(), marker, max_chars=_SPOKEN_MAX_CHARS)
            return f"[{what}; forwarded. Automatic transcription: {spoken}]"
        return f"[{what}; spoken by the person. Automatic transcription:]\n{words.strip()}"


def _is_picture(path: Path, media_type: str) -> bool:
    """Return whether the file is an image that can be sent to a model, by its type, size and header."""
    if media_type not in PICTURE_TYPES or path.stat().st_size > MAX_PICTURE_BYTES:
        return False
    return picture_type(path.read_bytes()) == media_type


def _unheard(attachment: Attachment, what: str, path: Path) -> str:
    if attachment.kind == "audio":
        return f"[{what}; you cannot listen to it. Tell the person. It is stored as {path}]"
    return (
        f"[{what}: you cannot listen to it, because no transcription is configured. Tell the person and ask them to "
        f"write instead. The audio is stored as {path}]"
    )


def _described(attachment: Attachment, marker: str) -> str:
    kind = {"image": "picture", "voice": "voice message"}.get(attachment.kind, attachment.kind)
    name, media_type = (" ".join(each.split()) for each in (attachment.name, attachment.media_type))
    about = [
        fenced(name, marker, max_chars=_NAME_CHARS) if name else "",
        fenced(media_type, marker, max_chars=_TYPE_CHARS)
        if media_type and media_type not in _SUFFIXES
        else media_type,
        f"{attachment.seconds} s" if attachment.seconds else "",
        amount(attachment.size_bytes) if attachment.size_bytes else "",
    ]
    return f"{kind} ({', '.join(filter(None, about))})" if any(about) else kind
