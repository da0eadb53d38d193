"""Operations of files, search and the routes of hermes-agent, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from hermes.adapters.http.parameter import IDEMPOTENCY_HEADER, KEY_HEADER, SESSION_HEADER
from hermes.adapters.openai_api.file_api import FileListQuery
from hermes.adapters.openai_api.jobs.job_operations import JOBS
from hermes.adapters.openai_api.mcp.tool_input import RpcMessage
from hermes.adapters.openai_api.openapi import stream_text, surface_answers
from hermes.adapters.openai_api.openapi.operation import ApiRoute
from hermes.adapters.openai_api.provider_api import EmbeddingsRequest, ImageRequest, SpeechRequest
from hermes.adapters.openai_api.sessions.search_api import SearchQuery
from hermes.adapters.openai_api.sessions.session_chat_api import SessionMessage
from hermes.adapters.openai_api.text_completion import TextCompletionRequest

_TURN = (SESSION_HEADER, KEY_HEADER, IDEMPOTENCY_HEADER)

_AGENT = (
    ApiRoute(
        route="POST /v1/completions",
        id="createCompletion",
        summary="Send a prompt as a message and get its answer; use chat completions instead",
        answer=surface_answers.TextCompletionJson,
        body=TextCompletionRequest,
        example={"model": "hermes", "prompt": "Hello"},
        headers=_TURN,
        events=surface_answers.TextCompletionJson,
        stream_text="Parts of the text, then `[DONE]`.",
    ),
    ApiRoute(
        route="POST /api/sessions/{id}/chat",
        id="chatInSession",
        summary="Send a message to a stored session and get its answer",
        answer=surface_answers.SessionChatAnswer,
        body=SessionMessage,
        example={"message": "Hello"},
        headers=(IDEMPOTENCY_HEADER,),
    ),
    ApiRoute(
        route="POST /api/sessions/{id}/chat/stream",
        id="streamInSession",
        summary="Send a message to a stored session and stream its answer",
        body=SessionMessage,
        example={"message": "Hello"},
        headers=(IDEMPOTENCY_HEADER,),
        events=surface_answers.SessionChatEvent,
        stream_text=stream_text.SESSION_CHAT,
    ),
    ApiRoute(
        route="POST /mcp",
        id="sendMcpMessage",
        summary="Send one message of the Model Context Protocol, over streamable HTTP",
        answer=dict[str, Any],
        body=RpcMessage,
        also={202: None, 400: dict[str, Any]},  # 400: a JSON-RPC error
        example={"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    ),
    ApiRoute(
        route="GET /v1/health", id="getAgentHealth", summary="Liveness", answer=surface_answers.AgentHealth, open=True
    ),
    ApiRoute(
        route="GET /health/detailed",
        id="getDetailedHealth",
        summary="State of the daemon and its platforms, for the owner",
        answer=dict[str, Any],
    ),
    ApiRoute(
        route="GET /v1/capabilities",
        id="getCapabilities",
        summary="List features and routes",
        answer=dict[str, Any],
    ),
    ApiRoute(
        route="GET /v1/toolsets", id="listToolsets", summary="List toolsets", answer=surface_answers.ToolsetList
    ),
    ApiRoute(
        route="POST /v1/embeddings",
        id="createEmbeddings",
        summary="Pass a request for embeddings to the provider",
        body=EmbeddingsRequest,
        example={"model": "text-embedding-3-small", "input": "Hello"},
        binary=True,
    ),
    ApiRoute(
        route="POST /v1/audio/speech",
        id="createSpeech",
        summary="Pass a request for speech to the provider",
        body=SpeechRequest,
        example={"model": "tts-1", "voice": "alloy", "input": "Hello"},
        binary=True,
    ),
    ApiRoute(
        route="POST /v1/audio/transcriptions",
        id="createTranscription",
        summary="Pass a request for a transcription to the provider",
        body=surface_answers.TranscriptionForm,
        form=True,
        binary=True,
    ),
    ApiRoute(
        route="POST /v1/images/generations",
        id="createImage",
        summary="Pass a request for an image to the provider",
        body=ImageRequest,
        example={"model": "gpt-image-1", "prompt": "A lighthouse"},
        binary=True,
    ),
)
_FILES = (
    ApiRoute(
        route="GET /api/search",
        id="search",
        summary="Search the messages of all sessions, best hits first",
        answer=surface_answers.SearchResult,
        query=SearchQuery,
    ),
    ApiRoute(
        route="POST /v1/files",
        id="createFile",
        summary="Upload a file",
        answer=surface_answers.FileJson,
        body=surface_answers.FileUpload,
        form=True,
    ),
    ApiRoute(
        route="GET /v1/files",
        id="listFiles",
        summary="List the key's files, newest first",
        answer=surface_answers.FileList,
        query=FileListQuery,
    ),
    ApiRoute(route="GET /v1/files/{id}", id="getFile", summary="Describe a file", answer=surface_answers.FileJson),
    ApiRoute(
        route="DELETE /v1/files/{id}", id="deleteFile", summary="Delete a file", answer=surface_answers.FileDeleted
    ),
    ApiRoute(route="GET /v1/files/{id}/content", id="readFile", summary="Download a file", binary=True),
)

SURFACE: tuple[ApiRoute, ...] = (*_AGENT, *_FILES, *JOBS)
