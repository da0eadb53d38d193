"""Client of Hermes' API for Python programs, with asyncio."""

from hermes.client.api_error import ApiError, ConnectionFailedError
from hermes.client.hermes_client import HermesClient
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

__all__ = [
    "ApiError",
    "ChatAnswer",
    "ChatPart",
    "ConnectionFailedError",
    "FoundMessage",
    "HermesClient",
    "OpenQuestion",
    "Page",
    "RunState",
    "ServerEvent",
    "SessionInfo",
    "TranscriptLine",
    "UploadedFile",
]
