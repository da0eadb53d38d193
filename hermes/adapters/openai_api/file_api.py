"""/v1/files: files that clients upload, and files that the agent sends to them. Each key has its own.

A file is removed after `media.keep_days`, or earlier when all received files together are too large.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Annotated, Final, Literal, get_args
from urllib.parse import quote

from aiohttp import BodyPartReader, MultipartReader, web
from aiohttp.http_exceptions import HttpProcessingError
from msgspec import UNSET, Meta, UnsetType

from hermes.adapters.http.body import ask_for_body
from hermes.adapters.http.parameter import query
from hermes.adapters.http.presentation import JsonObject
from hermes.adapters.http.problem import ProblemError, refusal
from hermes.adapters.http.schema import Fields
from hermes.adapters.http.service import Service, json_response
from hermes.domain.errors import BadInputError
from hermes.media.file_shelf import FileShelf, ShelvedFile
from hermes.media.store import FileTooLargeError, MediaError

MAX_NAME = 255
Purpose = Literal["assistants", "batch", "evals", "fine-tune", "user_data", "vision"]
_DEFAULT_PURPOSE: Final[Purpose] = "user_data"
_MAX_PURPOSE = 64
_UPLOAD_TIMEOUT_S = 300.0
_PIECE_BYTES = 64 << 10
_FORM_BYTES = 64 << 10  # besides the file
_MEDIA_TYPE = re.compile(r"[a-z0-9.+-]{1,60}/[a-z0-9.+-]{1,60}")


class FileListQuery(Fields):
    purpose: str | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 10_000
    after: str | UnsetType = UNSET
    order: Literal["asc", "desc"] = "desc"


class FileApi:
    def __init__(self, service: Service) -> None:
        self._service = service

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/files", self.upload),
            web.get("/v1/files", self.all),
            web.get("/v1/files/{id}", self.one),
            web.delete("/v1/files/{id}", self.remove),
            web.get("/v1/files/{id}/content", self.content),
        ]

    @property
    def _shelf(self) -> FileShelf:
        if self._service.files is None:
            raise refusal(501, "no_files", "This daemon stores no files.")
        return self._service.files

    async def upload(self, request: web.Request) -> web.Response:
        """Store the part `file` of a form; `purpose` comes before or after it."""
        shelf = self._shelf
        self._service.lifetime.check_intake()
        if request.content_type != "multipart/form-data":
            raise refusal(415, "unsupported_media_type", "Send the file as multipart/form-data.")
        if (request.content_length or 0) > shelf.max_bytes + _FORM_BYTES:
            raise _too_large(shelf.max_bytes)
        await ask_for_body(request)
        try:
            async with asyncio.timeout(_UPLOAD_TIMEOUT_S):
                stored = await self._stored(request, shelf)
        except TimeoutError:
            raise refusal(408, "request_timeout", "The file did not arrive in time.", close=True) from None
        except (ValueError, HttpProcessingError) as error:  # of the form's parser
            raise BadInputError("The form is not valid.", code="invalid_body") from error
        return json_response(self._object(stored))

    async def _stored(self, request: web.Request, shelf: FileShelf) -> ShelvedFile:
        parts, purpose = await request.multipart(), None
        async for part in parts:
            if not isinstance(part, BodyPartReader):
                continue
            if part.name == "purpose":
                purpose = await _purpose(part)
            elif part.name == "file":
                return await self._add(request, shelf, _File(part, parts, purpose))
        raise BadInputError("The form has no part named file.", param="file", code="invalid_value")

    async def _add(self, request: web.Request, shelf: FileShelf, file: _File) -> ShelvedFile:
        part = file.part
        name = " ".join((part.filename or "file").split())[:MAX_NAME].replace("\0", "")
        kind = part.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        media_type = kind if _MEDIA_TYPE.fullmatch(kind) else "application/octet-stream"
        try:
            return await shelf.add(
                self._service.owner(request), name, _pieces(part), purpose=file.purpose, media_type=media_type
            )
        except MediaError as error:
            status = 413 if isinstance(error, FileTooLargeError) else 507
            raise refusal(status, "file_not_stored", f"The file was not stored: {error}.", close=True) from error

    async def all(self, request: web.Request) -> web.Response:
        asked = query(request, FileListQuery)
        files = await self._shelf.all(self._service.owner(request))
        if not isinstance(asked.purpose, UnsetType):
            files = [each for each in files if each.purpose == asked.purpose]
        if asked.order == "asc":
            files.reverse()
        ids = [each.id for each in files]
        first = ids.index(asked.after) + 1 if not isinstance(asked.after, UnsetType) and asked.after in ids else 0
        page = [self._object(each) for each in files[first : first + asked.limit]]
        return json_response(
            {
                "object": "list",
                "data": page,
                "has_more": len(files) > first + len(page),
                "first_id": page[0]["id"] if page else None,
                "last_id": page[-1]["id"] if page else None,
            }
        )

    async def one(self, request: web.Request) -> web.Response:
        found = await self._shelf.find(self._service.owner(request), request.match_info["id"])
        if found is None:
            raise _unknown(request)
        return json_response(self._object(found[0]))

    async def remove(self, request: web.Request) -> web.Response:
        if not await self._shelf.remove(self._service.owner(request), request.match_info["id"]):
            raise _unknown(request)
        return json_response({"id": request.match_info["id"], "object": "file", "deleted": True})

    async def content(self, request: web.Request) -> web.StreamResponse:
        found = await self._shelf.find(self._service.owner(request), request.match_info["id"])
        if found is None:
            raise _unknown(request)
        about, path = found
        headers = {
            "Content-Type": about.media_type,
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(about.name, safe='')}",
        }
        return web.FileResponse(path, headers=headers)

    def _object(self, file: ShelvedFile) -> JsonObject:
        return {
            "id": file.id,
            "object": "file",
            "bytes": file.size_bytes,
            "created_at": int(file.created_at),
            "expires_at": int(file.created_at + self._shelf.keep_s),
            "filename": file.name,
            "purpose": file.purpose,
            "status": "processed",
        }


async def _pieces(part: BodyPartReader) -> AsyncIterator[bytes]:
    while piece := await part.read_chunk(_PIECE_BYTES):
        yield piece


class _File:
    """File of a form whose purpose comes before or after it."""

    def __init__(self, part: BodyPartReader, rest: MultipartReader, purpose: Purpose | None) -> None:
        self.part = part
        self._rest = rest
        self._purpose = purpose

    async def purpose(self) -> str:
        """Return the purpose. Reads the rest of the form if it did not come before the file."""
        if self._purpose is not None:
            return self._purpose
        async for part in self._rest:
            if isinstance(part, BodyPartReader) and part.name == "purpose":
                return await _purpose(part)
        return _DEFAULT_PURPOSE


async def _purpose(part: BodyPartReader) -> Purpose:
    data = bytearray()
    async for piece in _pieces(part):
        data += piece
        if len(data) > _MAX_PURPOSE:
            break
    for known in get_args(Purpose):
        if data == known.encode():
            return known  # type: ignore[no-any-return]
    raise BadInputError(
        f"purpose must be one of {', '.join(get_args(Purpose))}.", param="purpose", code="invalid_value"
    )


def _too_large(most: int) -> ProblemError:
    return refusal(413, "request_too_large", f"A file may have at most {most:,} bytes.", close=True)


def _unknown(request: web.Request) -> ProblemError:
    return refusal(404, "file_not_found", f"There is no file {request.match_info['id'][:80]!r}.")
