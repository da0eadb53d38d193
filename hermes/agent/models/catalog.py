"""Creates a model from settings. Slow imports and connections wait until the first turn."""

from __future__ import annotations

from difflib import get_close_matches
from urllib.parse import urlsplit

from hermes.agent.models.local_model import CONTEXT_MAX, LocalModel
from hermes.agent.models.offline_model import OfflineModel
from hermes.agent.models.openai_model import OpenAIModel
from hermes.domain.errors import ConfigError
from hermes.ports.agent import Model

PROVIDERS = ("offline", "openai", "local")


def make_model(
    *,
    provider: str,
    base_url: str,
    name: str,
    api_key: str | None,
    context_window: int,
    connect_timeout_s: float = 10.0,
    idle_timeout_s: float = 60.0,
) -> Model:
    match provider:
        case "offline":
            return OfflineModel()
        case "openai":
            _check_endpoint(base_url, name, api_key)
            return OpenAIModel(
                base_url=base_url,
                name=name,
                api_key=api_key,
                connect_timeout_s=connect_timeout_s,
                idle_timeout_s=idle_timeout_s,
            )
        case "local":
            return LocalModel(context_window=context_window)
    near = get_close_matches(provider, PROVIDERS, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "choose one of " + ", ".join(PROVIDERS)
    raise ConfigError(f"model.provider: unknown provider {provider!r}; {hint}")


def window_of(provider: str, context_window: int) -> int:
    """Return the model's real context window in tokens."""
    return min(context_window, CONTEXT_MAX) if provider == "local" else context_window


def _check_endpoint(base_url: str, name: str, api_key: str | None) -> None:
    if not name:
        raise ConfigError("model.name: set the name of the endpoint's model")
    try:
        url = urlsplit(base_url or "https://")
        usable = not base_url or (url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0)
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError("model.base_url: give the complete URL, like http://127.0.0.1:11434/v1")
    if url.username is not None and api_key:
        raise ConfigError("model.base_url: it has a user name, and there is an API key; remove one of them")
    if api_key and not (api_key.isascii() and api_key.isprintable()):
        raise ConfigError("the model's API key has characters that are not allowed in a header; copy it again")
