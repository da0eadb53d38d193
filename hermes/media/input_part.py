"""Pictures and documents in the messages of API requests.

A picture is stored once and becomes a reference to the media store, with a note for models that cannot see. The text
of a document becomes part of the message. What cannot be used becomes a note with the reason, so that a picture in a
history never ends a chat. The result for equal content is always equal.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import unquote_to_bytes

from hermes.domain.errors import HermesError
from hermes.domain.media.reference import picture
from hermes.domain.media.scope import media_scope
from hermes.domain.text.fence import fenced
from hermes.domain.values import dataclass
from hermes.media.file_shelf import FileShelf
from hermes.media.picture import MAX_PICTURE_BYTES, PICTURE_TYPES, picture_type
from hermes.media.store import MediaStore, amount, in_brackets, once

Download: TypeAlias = Callable[[str], Awaitable[tuple[bytes, str]]]  # body and Content-Type; raises HermesError
ReadDocument: TypeAlias = Callable[[bytes, str, str], Awaitable[str]]  # data, media type, name; raises HermesError

MAX_DOCUMENT_CHARS: Final = 60_000
_NAME_CHARS: Final = 100
_NO_FILE: Final = "there is no such file; it may have been deleted or expired"
_REMEMBERED: Final = 200  # results of addresses, which a client sends with every request
_PARTS: Final = ("image_url", "input_image", "file", "input_file", "input_audio", "image", "document")
_DATA: Final = re.compile(r"data:([A-Za-z0-9.+/-]{0,100})((?:;[A-Za-z0-9=._-]{1,60})*?)(;base64)?,", re.ASCII)


class UnusableError(HermesError):
    """A part of a message cannot be used; the text is the reason."""

    code = "unusable_part"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartData:
    data: bytes
    media_type: str
    name: str = ""


class InputParts:
    def __init__(
        self, store: MediaStore, shelf: FileShelf, *, download: Download, read_document: ReadDocument
    ) -> None:
        self._store = store
        self._shelf = shelf
        self._download = download
        self._read_document = read_document
        self._lately: OrderedDict[str, list[dict[str, Any]]] = OrderedDict()  # by owner and address

    async def resolve(self, body: Any, owner: str) -> Any:
        """Return a request body whose `messages` and `input` have only text parts and stored pictures."""
        if not isinstance(body, dict):
            return body
        found = {name: await self._messages(body[name], owner) for name in ("messages", "input") if name in body}
        return {**body, **found}

    async def _messages(self, messages: Any, owner: str) -> Any:
        if not isinstance(messages, list):
            return messages
        return [await self._message(message, owner) for message in messages]

    async def _message(self, message: Any, owner: str) -> Any:
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(content, list) or not any(map(_is_ours, content)):
            return message
        parts: list[Any] = []
        for part in content:
            parts += await self._part(part, owner) if _is_ours(part) else [part]
        if message.get("role") != "user":  # models take pictures from people only
            parts = [part for part in parts if part.get("type") != "image_url"]
        return {**message, "content": parts}

    async def _part(self, part: Mapping[str, Any], owner: str) -> list[dict[str, Any]]:
        address = _address(part)
        key = f"{owner}\0{address}" if address.startswith(("http://", "https://")) else ""
        if key in self._lately:
            return self._lately[key]
        try:
            found = await self._used(await self._data(part, address, owner))
        except HermesError as error:
            return [_text(f"[{_kind(part)}: cannot be used, because {in_brackets(str(error))}]")]
        if key:
            self._lately[key] = found
            while len(self._lately) > _REMEMBERED:
                self._lately.popitem(last=False)
        return found

    async def _data(self, part: Mapping[str, Any], address: str, owner: str) -> PartData:
        inner = _inner(part)
        name = str(inner.get("filename") or part.get("filename") or "")
        if (file := inner.get("file_id") or part.get("file_id")) is not None:
            return await self._shelved(str(file), owner)
        if address.startswith("data:"):
            return _of_data_url(address, name)
        if address.startswith(("http://", "https://")):
            body, content_type = await self._download(address)
            return PartData(data=body, media_type=content_type.partition(";")[0].strip().lower(), name=name)
        if isinstance(data := inner.get("file_data"), str):  # some clients leave out the prefix
            return PartData(data=_unbase64(data), media_type="", name=name)
        raise UnusableError("it has no data: or http(s): URL and no file_id")

    async def _shelved(self, file: str, owner: str) -> PartData:
        found = await self._shelf.find(owner, file)
        if found is None:
            raise UnusableError(_NO_FILE)
        about, path = found
        try:
            data = await asyncio.to_thread(path.read_bytes)
        except FileNotFoundError as error:  # deleted meanwhile
            raise UnusableError(_NO_FILE) from error
        return PartData(data=data, media_type=about.media_type, name=about.name)

    async def _used(self, given: PartData) -> list[dict[str, Any]]:
        kind = picture_type(given.data)
        size = amount(len(given.data))
        if kind is None:
            return [_text(await self._document(given, size))]
        if len(given.data) > MAX_PICTURE_BYTES:
            raise UnusableError(f"pictures over {amount(MAX_PICTURE_BYTES)} are not supported")
        key = hashlib.sha256(given.data).hexdigest()
        scope = media_scope("pictures of API requests", "")
        path = await self._store.keep(scope, key, PICTURE_TYPES[kind], once(given.data))
        note = f"[picture: {kind}, {size}; a model without vision sees only this note]"
        return [_text(note), picture(f"{scope}/{path.name}")]

    async def _document(self, given: PartData, size: str) -> str:
        text = await self._read_document(given.data, given.media_type, given.name)
        marker = hashlib.sha256(given.data).hexdigest()[:16]
        name = fenced(" ".join(given.name.split()), marker, max_chars=_NAME_CHARS) if given.name else "without a name"
        return f"[file {name}, {size}. Its text:]\n{fenced(text, marker, max_chars=MAX_DOCUMENT_CHARS)}"


def _is_ours(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in _PARTS


def _inner(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the object that holds a part's source: `image_url` or `file` of chat, else the part itself."""
    for name in ("image_url", "file"):
        if isinstance(inner := part.get(name), dict):
            return inner
    return part


def _address(part: Mapping[str, Any]) -> str:
    inner = _inner(part)
    candidates = (inner.get("url"), part.get("image_url"), inner.get("file_url"), inner.get("file_data"))
    return next((each for each in candidates if isinstance(each, str) and ":" in each[:8]), "")


def _of_data_url(address: str, name: str) -> PartData:
    match = _DATA.match(address)
    if match is None:
        raise UnusableError("its data: URL is not valid")
    rest = address[match.end() :]
    data = _unbase64(rest) if match[3] else unquote_to_bytes(rest)
    return PartData(data=data, media_type=match[1].lower(), name=name)


def _unbase64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise UnusableError("its base64 data is not valid") from None


def _kind(part: Mapping[str, Any]) -> str:
    kind = str(part.get("type"))
    return "picture" if "image" in kind else "audio" if "audio" in kind else "file"


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
