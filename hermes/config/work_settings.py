"""Settings of work beside and within conversations: subagents, scripts, pictures, and the web."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hermes.config.model_settings import AUTO, base_url_complaint
from hermes.config.schema import setting, shaped
from hermes.config.secret import Secret, read_secret_file, usable
from hermes.domain.errors import ConfigError
from hermes.domain.values import dataclass
from hermes.domain.web_search import NO_PROVIDER, WEB_SEARCH_PROVIDERS, WebSearchProvider

if TYPE_CHECKING:
    from collections.abc import Mapping

_variable_complaint = shaped(
    r"([A-Za-z_][A-Za-z0-9_]*)?", "must be the name of an environment variable, not the key itself"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationConfig:
    model: str = setting("", live=True)
    max_iterations: int = setting(50, least=1, most=10_000, live=True)
    max_concurrent_children: int = setting(3, least=1, most=1000, live=True)
    max_spawn_depth: int = setting(1, least=1, most=5, live=True)
    approvals: str = setting("ask", choices=("ask", "deny"), live=True)
    on_parent_end: str = setting("end", choices=("end", "detach"), live=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeExecutionConfig:
    timeout: float = setting(300.0, least=1, most=86_400)
    max_tool_calls: int = setting(50, least=1, most=10_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalsConfig:
    max_turns: int = setting(20, least=0, most=10_000, live=True)
    max_usd: float = setting(0.0, least=0, most=1_000_000, live=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointsConfig:
    enabled: bool = setting(True)
    commands: bool = setting(False)
    max_snapshots: int = setting(50, least=1, most=10_000)
    max_files: int = setting(20_000, least=1, most=10_000_000)
    max_file_mb: int = setting(10, least=1, most=10_000)
    max_total_mb: int = setting(500, least=1, most=1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebConfig:
    allow_private_urls: bool = setting(False)
    search_provider: str = setting(NO_PROVIDER, choices=(NO_PROVIDER, *WEB_SEARCH_PROVIDERS))
    search_base_url: str = setting("", complaint=base_url_complaint)
    search_api_key_env: str = setting(AUTO, complaint=_variable_complaint)
    search_api_key_file: str = setting("", path=True)
    search_max_results: int = setting(10, least=1, most=20)
    search_timeout_s: float = setting(15.0, least=0.1, most=300)

    @property
    def search(self) -> WebSearchProvider | None:
        """Return the search provider; None if none is configured."""
        return WEB_SEARCH_PROVIDERS.get(self.search_provider)

    def search_key(self, environ: Mapping[str, str]) -> Secret | None:
        """Read the key of the search provider; None if it needs none. Raises ConfigError if it cannot be used."""
        if (provider := self.search) is None:
            return None
        if not (self.search_base_url or provider.base_url):
            raise ConfigError(
                f"the search provider {provider.name} needs an address: set web.search_base_url to that of its server"
            )
        if self.search_api_key_file:
            return read_secret_file(Path(self.search_api_key_file), "web.search_api_key_file")
        name = provider.key_variable if self.search_api_key_env == AUTO else self.search_api_key_env
        if not name:
            return None
        if not (value := environ.get(name, "").strip()):
            raise ConfigError(
                f"the key of the web search is missing: the environment variable {name} (web.search_api_key_env) is "
                "not set; set it, or put the key into a file and set web.search_api_key_file; for an endpoint that "
                'needs no key, set web.search_api_key_env to ""',
                missing_variables=(name,),
            )
        return usable(value, f"the key in {name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageGenConfig:
    base_url: str = setting("", complaint=base_url_complaint)
    model: str = setting("gpt-image-1")
    size: str = setting("", complaint=shaped(r"(auto|\d{2,5}x\d{2,5})?", "must be like 1024x1024, or auto"))
    api_key_env: str = setting("", complaint=_variable_complaint)
    timeout_s: float = setting(180.0, least=1, most=3600)

    def api_key(self, environ: Mapping[str, str]) -> Secret | None:
        """Read the key of the endpoint. None if it needs no key."""
        if not self.api_key_env:
            return None
        if not (value := environ.get(self.api_key_env, "").strip()):
            raise ConfigError(
                f"the key for pictures is missing: set the environment variable {self.api_key_env} "
                '(image_gen.api_key_env); for an endpoint that needs no key, set that to ""',
                missing_variables=(self.api_key_env,),
            )
        return usable(value, f"the key in {self.api_key_env}")
