"""Client of one Hermes daemon.

A message is sent with an idempotency key, so that a retry after a lost connection is the same turn. Event streams
continue after a break where they ended.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import quote

import aiohttp

from hermes.client.api_error import ApiError, ConnectionFailedError
from hermes.client.connection_pool import ConnectionPool, StreamOverError
from hermes.client.values import (
    ChatAnswer,
    ChatPart,
    FoundMessage,
    OpenQuestion,
    Page,
    RunState,
    ServerEvent,
    SessionInfo,
    TranscriptLine,
    UploadedFile,
)

T = TypeVar("T")
RETRIES = 3
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0
_STATUSES_TO_RETRY = (429, 503)
_RUN_ENDS = ("run.completed", "run.failed", "run.cancelled")


class HermesClient:
    """`async with HermesClient("http://127.0.0.1:8642", key) as client: ...`"""

    def __init__(
        self,
        base_url: str,
        key: str,
        *,
        socket: str = "",
        timeout_s: float = 600.0,
        new_key: Callable[[], str] = lambda: uuid.uuid4().hex,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`socket`: path of the admin socket, with its token as the key, in place of TCP."""
        self._pool = ConnectionPool(base_url, key, socket=socket, timeout_s=timeout_s)
        self._new_key = new_key
        self._sleep = sleep

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._pool.close()

    # ------------------------------------------------------------ chat

    async def chat(self, text: str, *, session_id: str = "", model: str = "hermes", **options: Any) -> ChatAnswer:
        """Send a message and return its answer."""
        body = {"model": model, "messages": [{"role": "user", "content": text}], **options}
        call = self._pool.call
        answer = await self._retried(
            lambda headers: call("POST", "/v1/chat/completions", json=body, headers=headers), session_id
        )
        return ChatAnswer.read(answer)

    async def stream(
        self, text: str, *, session_id: str = "", model: str = "hermes", **options: Any
    ) -> AsyncIterator[ChatPart]:
        """Send a message and yield its answer as it is written."""
        body = {"model": model, "messages": [{"role": "user", "content": text}], "stream": True, **options}
        headers = _session_header(session_id)
        async for event in self._pool.events("POST", "/v1/chat/completions", json=body, headers=headers):
            if event.data == "[DONE]":
                return
            fields = json.loads(event.data)
            if error := fields.get("error"):
                raise ApiError(error["message"], status=502, code=error["code"] or "")
            yield ChatPart.read(event.name, fields)
        raise ConnectionFailedError("the stream ended before the answer")

    # ------------------------------------------------------------ runs

    async def start_run(self, text: str, *, session_id: str = "", **options: Any) -> RunState:
        body = {"input": text, **({"session_id": session_id} if session_id else {}), **options}
        call = self._pool.call
        return RunState.read(
            await self._retried(lambda headers: call("POST", "/v1/runs", json=body, headers=headers))
        )

    async def run(self, run: str) -> RunState:
        return RunState.read(await self._pool.call("GET", f"/v1/runs/{quote(run)}"))

    async def runs(self, *, cursor: str | None = None, **filters: Any) -> Page[RunState]:
        """Return a page of runs, newest first. Filters: status, session_id, platform, limit."""
        body = await self._pool.call("GET", "/v1/runs", params=_given(cursor=cursor, **filters))
        return Page(items=tuple(map(RunState.read, body["data"])), cursor=body["next_cursor"])

    async def run_events(self, run: str) -> AsyncIterator[ServerEvent]:
        """Yield the events of a run until its end, also across restarts of the daemon."""
        async for event in self._followed(f"/v1/runs/{quote(run)}/events", {}):
            yield event
            if event.name in _RUN_ENDS:
                return

    async def wait_for(self, run: str) -> RunState:
        """Return a run when it is over."""
        async for _ in self.run_events(run):
            pass
        return await self.run(run)

    async def stop_run(self, run: str) -> RunState:
        return RunState.read(await self._pool.call("POST", f"/v1/runs/{quote(run)}/stop"))

    # ------------------------------------------------------------ events and approvals

    async def events(
        self, *, types: tuple[str, ...] = (), session_id: str = "", platform: str = "", after: str = ""
    ) -> AsyncIterator[ServerEvent]:
        """Yield the events of all sessions from now on, or after an event id. Continues after a lost connection.

        An event named `gap` tells that events are missing.
        """
        query = _given(type=",".join(types), session_id=session_id, platform=platform)
        async for event in self._followed("/api/events", query, after):
            yield event

    async def open_questions(self) -> list[OpenQuestion]:
        """Return the approvals and questions that wait for a person, in all sessions."""
        return [OpenQuestion.read(each) for each in (await self._pool.call("GET", "/api/approvals"))["approvals"]]

    async def approve(self, question: str, choice: str = "once") -> None:
        """Decide an approval: once, session, always or deny."""
        await self._pool.call("POST", f"/api/approvals/{quote(question)}", json={"choice": choice})

    async def answer(self, question: str, text: str) -> None:
        await self._pool.call("POST", f"/api/approvals/{quote(question)}", json={"answer": text})

    # ------------------------------------------------------------ sessions

    async def create_session(self, **fields: Any) -> SessionInfo:
        """Create a session. Fields: id, title, model, personality, reasoning, busy."""
        return SessionInfo.read((await self._pool.call("POST", "/api/sessions", json=fields))["session"])

    async def change_session(self, session: str, **fields: Any) -> SessionInfo:
        changed = await self._pool.call("PATCH", f"/api/sessions/{quote(session)}", json=fields)
        return SessionInfo.read(changed["session"])

    async def session(self, session: str) -> SessionInfo:
        return SessionInfo.read((await self._pool.call("GET", f"/api/sessions/{quote(session)}"))["session"])

    async def sessions(self, *, cursor: str | None = None, **filters: Any) -> Page[SessionInfo]:
        """Return a page of sessions, last active first. Filters: platform, phase, title, person, since, until."""
        body = await self._pool.call("GET", "/api/sessions", params=_given(cursor=cursor, **filters))
        return Page(items=tuple(map(SessionInfo.read, body["sessions"])), cursor=body["next_cursor"])

    async def all_sessions(self, **filters: Any) -> AsyncIterator[SessionInfo]:
        cursor: str | None = None
        while True:
            page = await self.sessions(cursor=cursor, **filters)
            for each in page.items:
                yield each
            if (cursor := page.cursor) is None:
                return

    async def messages(
        self, session: str, *, after: int | None = None, before: int | None = None, limit: int = 100
    ) -> list[TranscriptLine]:
        """Return a page of messages, oldest first: after or before a position, else the last page."""
        query = _given(after=after, before=before, limit=limit)
        body = await self._pool.call("GET", f"/api/sessions/{quote(session)}/messages", params=query)
        return [TranscriptLine.read(each) for each in body["messages"]]

    async def delete_session(self, session: str) -> None:
        await self._pool.call("DELETE", f"/api/sessions/{quote(session)}")

    async def search(self, words: str, **filters: Any) -> list[FoundMessage]:
        body = await self._pool.call("GET", "/api/search", params=_given(q=words, **filters))
        return [FoundMessage.read(each) for each in body["hits"]]

    # ------------------------------------------------------------ files

    async def upload(self, name: str, data: bytes | Path, *, purpose: str = "user_data") -> UploadedFile:
        content = await asyncio.to_thread(data.read_bytes) if isinstance(data, Path) else data
        form = aiohttp.FormData({"purpose": purpose})
        form.add_field("file", content, filename=name)
        return UploadedFile.read(await self._pool.call("POST", "/v1/files", data=form))

    async def files(self) -> list[UploadedFile]:
        return [UploadedFile.read(each) for each in (await self._pool.call("GET", "/v1/files"))["data"]]

    async def download(self, file: str) -> bytes:
        return await self._pool.read("GET", f"/v1/files/{quote(file)}/content")

    async def delete_file(self, file: str) -> None:
        await self._pool.call("DELETE", f"/v1/files/{quote(file)}")

    # ------------------------------------------------------------ retries

    async def _retried(self, send: Callable[[Mapping[str, str]], Awaitable[Any]], session_id: str = "") -> Any:
        """Send a message, and repeat it under the same key if the server is busy or the connection is lost."""
        headers = {"Idempotency-Key": self._new_key(), **_session_header(session_id)}
        for attempt in range(RETRIES):
            try:
                return await send(headers)
            except ConnectionFailedError:
                pause_s = _pause_s(attempt)
            except ApiError as error:
                if error.status not in _STATUSES_TO_RETRY:
                    raise
                pause_s = error.retry_after_s or _pause_s(attempt)
            await self._sleep(pause_s)
        return await send(headers)

    async def _followed(self, path: str, query: Mapping[str, Any], last_id: str = "") -> AsyncIterator[ServerEvent]:
        """Yield the events of a stream. Connects again when it breaks, with a growing pause."""
        attempt = 0
        while True:
            try:
                async for raw in self._pool.events("GET", path, params=query, last_id=last_id):
                    fields = json.loads(raw.data)
                    stored = raw.id if raw.id != last_id else ""
                    last_id, attempt = raw.id, 0
                    if raw.name != "daemon.stopping":
                        yield ServerEvent(
                            id=stored, name=raw.name, session_id=fields.get("session_id", ""), fields=fields
                        )
            except StreamOverError:
                return
            except ConnectionFailedError:
                pass  # connect again
            except ApiError as error:
                if error.status not in _STATUSES_TO_RETRY:
                    raise
            await self._sleep(_pause_s(attempt))
            attempt += 1


def _pause_s(attempt: int) -> float:
    pause_s: float = min(_FIRST_PAUSE_S * 2.0**attempt, _LONGEST_PAUSE_S)
    return pause_s


def _session_header(session: str) -> dict[str, str]:
    return {"X-Hermes-Session-Id": session} if session else {}


def _given(**fields: Any) -> dict[str, str]:
    return {name: str(value) for name, value in fields.items() if value not in (None, "")}
