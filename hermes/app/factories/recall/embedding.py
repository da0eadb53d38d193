"""Factory of the embedder for search by meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec

from hermes.config.settings import Config
from hermes.domain.errors import ConfigError
from hermes.ports.search import Embedder
from hermes.system.extra import install_line


def embedder_of(config: Config, environ: Mapping[str, str]) -> Callable[[], Embedder] | None:
    """Return what makes the embedder; None: searches are by words only."""
    semantic = config.semantic
    if semantic.provider == "none":
        return None

    def make() -> Embedder:
        if find_spec("numpy") is None:
            raise ConfigError(f"semantic.provider needs the extra semantic: {install_line('semantic')}")
        if semantic.provider == "local":
            from hermes.search.meaning.local_embedder import LocalEmbedder  # noqa: PLC0415 - off by default

            return LocalEmbedder()
        from hermes.search.meaning.endpoint_embedder import EndpointEmbedder  # noqa: PLC0415 - off by default

        key = environ.get(semantic.api_key_env, "").strip()
        return EndpointEmbedder(model=semantic.model, base_url=semantic.base_url, api_key=key)

    return make
