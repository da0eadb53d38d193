"""Embedder at an endpoint with OpenAI's API, through the package openai. Blocking: it is called in threads."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

from hermes.domain.errors import StorageError
from hermes.ports.search import Embedder

MAX_CHARS: Final = 8_000  # of a text; endpoints refuse longer ones
TIMEOUT_S: Final = 30.0


class EndpointEmbedder(Embedder):
    def __init__(self, *, model: str, base_url: str, api_key: str) -> None:
        self._model = model
        self._base_url = base_url
        self._api_key = api_key
        self._client: Any = None

    @property
    def name(self) -> str:
        return self._model

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        np: Any = import_module("numpy")
        openai: Any = import_module("openai")
        if self._client is None:
            self._client = openai.OpenAI(
                api_key=self._api_key or "none", base_url=self._base_url, timeout=TIMEOUT_S, max_retries=1
            )
        try:
            answer = self._client.embeddings.create(
                model=self._model, input=[text[:MAX_CHARS] or " " for text in texts], encoding_format="float"
            )
        except openai.OpenAIError as error:
            raise StorageError(f"the embedding endpoint failed ({type(error).__name__})") from error
        vectors = [np.array(each.embedding, dtype=np.float32) for each in sorted(answer.data, key=lambda e: e.index)]
        if len(vectors) != len(texts):
            raise StorageError(f"the embedding endpoint returned {len(vectors)} vectors for {len(texts)} texts")
        lengths = [max(float(np.linalg.norm(vector)), 1e-9) for vector in vectors]
        return [
            (vector / length).astype(np.float16).tobytes() for vector, length in zip(vectors, lengths, strict=True)
        ]

    def release(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
