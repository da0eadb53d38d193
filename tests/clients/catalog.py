"""The clients of the matrix: packages in exact versions, the driver that uses them, and their modes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Ecosystem(Enum):
    PYTHON = "python"
    NODE = "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    key: str  # its name on the command line
    title: str
    packages: tuple[str, ...]
    driver: str  # a module of `drivers/`, without its ending
    modes: tuple[str, ...] = ("chat",)
    ecosystem: Ecosystem = Ecosystem.PYTHON
    opt_in: bool = False  # large: runs only if it is named


CHAT_AND_RESPONSES = ("chat", "responses")
AI_SDK = ("ai@7.0.173", "@ai-sdk/openai@4.0.118", "@ai-sdk/openai-compatible@3.0.92", "zod@4.1.12")

CLIENTS = (
    Client(
        key="openai-python",
        title="openai (Python)",
        packages=("openai==3.51.0",),
        driver="openai_python",
        modes=CHAT_AND_RESPONSES,
    ),
    Client(
        key="openai-npm",
        title="openai (npm)",
        packages=("openai@7.55.0",),
        driver="openai_npm",
        modes=CHAT_AND_RESPONSES,
        ecosystem=Ecosystem.NODE,
    ),
    Client(
        key="ai-sdk",
        title="AI SDK",
        packages=AI_SDK,
        driver="ai_sdk",
        modes=("chat", "responses", "compatible"),
        ecosystem=Ecosystem.NODE,
    ),
    Client(
        key="openai-agents",
        title="OpenAI Agents SDK",
        packages=("openai-agents==0.24.0",),
        driver="openai_agents",
        modes=CHAT_AND_RESPONSES,
    ),
    Client(
        key="litellm",
        title="LiteLLM",
        packages=("litellm[mcp]==1.106.2",),
        driver="litellm_sdk",
        modes=CHAT_AND_RESPONSES,
    ),
    Client(
        key="langchain",
        title="LangChain",
        packages=("langchain-openai==1.7.3",),
        driver="langchain_chat",
        modes=CHAT_AND_RESPONSES,
    ),
    Client(
        key="llama-index",
        title="LlamaIndex",
        packages=("llama-index-llms-openai-like==0.8.1",),
        driver="llama_index_like",
    ),
    Client(
        key="pydantic-ai",
        title="Pydantic AI",
        packages=("pydantic-ai-slim[openai]==2.66.0",),
        driver="pydantic_agent",
        modes=CHAT_AND_RESPONSES,
    ),
    Client(
        key="instructor",
        title="Instructor",
        packages=("instructor==1.17.0",),
        driver="instructor_client",
        modes=CHAT_AND_RESPONSES,
    ),
    Client(key="llm", title="llm", packages=("llm==0.36",), driver="llm_library", modes=CHAT_AND_RESPONSES),
    Client(key="aider", title="aider", packages=("aider-chat==0.86.2",), driver="aider_coder"),
    Client(
        key="open-webui",
        title="Open WebUI",
        packages=("open-webui==0.12.4",),
        driver="open_webui_server",
        opt_in=True,
    ),
)
