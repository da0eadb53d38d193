"""Settings of the model and of auxiliary models."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.config.providers import LOCAL, OFFLINE, PROVIDER_NAMES, PROVIDERS, plugin_of_provider
from hermes.config.schema import setting, shaped
from hermes.config.secret import Secret, read_secret_file, usable
from hermes.domain.errors import ConfigError
from hermes.domain.provider import ModelFacts, Provider, WireProtocol
from hermes.domain.turn.usage import Price
from hermes.domain.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

AUTO = "auto"
NONE = "none"
DEFAULT_WINDOW = 128_000  # of a model whose window is not known
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
_DAY_S = 86_400.0
_INSTANT_S = 0.01
_MAX_USD = 1_000_000.0
_NUMBER = r"\d{1,7}(\.\d{1,9})?"
_PRICES = re.compile(rf"(\S+)=({_NUMBER})/(?:({_NUMBER})/)?({_NUMBER})")


def base_url_complaint(text: str) -> str:
    if text and not re.fullmatch(r"https?://[^\s/]+(/\S*)?", text):
        return "must be an address like https://host/v1"
    return "must not contain a password; use api_key_env or api_key_file" if "@" in text else ""


variables_complaint = shaped(
    r"([A-Za-z_][A-Za-z0-9_]*(,[A-Za-z_][A-Za-z0-9_]*)*)?",
    "must be names of environment variables, not the key itself",
)
_alias_complaint = shaped(r"[^\s=:]+=\S+", "must be ALIAS=[PROVIDER:]MODEL")
_chat_complaint = shaped(r"[a-z]+:[^\s=]+=\S+", "must be PLATFORM:CHAT=[PROVIDER:]MODEL")
_prices_complaint = shaped(_PRICES.pattern, "must be MODEL=INPUT/OUTPUT or MODEL=INPUT/CACHED/OUTPUT")
_version_complaint = shaped(r"(20\d\d-\d\d-\d\d)?(-?preview)?", "must be a date like 2024-10-21")


def _name_complaint(text: str) -> str:
    return "must not contain brackets or quotes" if re.search(r"[\[\]\"']", text) else ""


def _fallback_complaint(text: str) -> str:
    if complaint := _name_complaint(text.partition("@")[0]):
        return complaint
    shape = r"[^\s@]+(@https?://[^\s/@]+(/[^\s#]*)?(#[A-Za-z_][A-Za-z0-9_]*)?)?"
    forms = "must be [PROVIDER:]MODEL, MODEL@ADDRESS or MODEL@ADDRESS#VARIABLE_WITH_THE_KEY"
    return "" if re.fullmatch(shape, text) else forms


def _choice_complaint(text: str) -> str:
    return "must be [PROVIDER:]MODEL" if any(map(str.isspace, text)) else _name_complaint(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    provider: str = setting(OFFLINE, choices=PROVIDER_NAMES, also=plugin_of_provider, live=True)
    protocol: str = setting(AUTO, choices=(AUTO, *WireProtocol), live=True)
    base_url: str = setting("", complaint=base_url_complaint, live=True)
    api_version: str = setting("", complaint=_version_complaint, live=True)
    name: str = setting("", complaint=_name_complaint, live=True)
    api_key_env: str = setting(AUTO, complaint=variables_complaint, live=True)
    api_key_file: str = setting("", path=True, live=True)
    context_window: int = setting(0, least=0, most=100_000_000, live=True)
    vision: str = setting(AUTO, choices=(AUTO, "always", "never"), live=True)
    reasoning: str = setting("", choices=("", *EFFORTS), live=True)
    connect_timeout_s: float = setting(10.0, least=_INSTANT_S, most=3600, live=True)
    idle_timeout_s: float = setting(60.0, least=_INSTANT_S, most=_DAY_S, live=True)
    patience_s: float = setting(300.0, least=0, most=_DAY_S, live=True)
    fallbacks: tuple[str, ...] = setting((), complaint=_fallback_complaint, live=True)
    aliases: tuple[str, ...] = setting((), complaint=_alias_complaint, live=True)
    chats: tuple[str, ...] = setting((), complaint=_chat_complaint, live=True)
    price_input: float = setting(0.0, least=0, most=_MAX_USD, live=True)
    price_cached_input: float = setting(0.0, least=0, most=_MAX_USD, live=True)
    price_output: float = setting(0.0, least=0, most=_MAX_USD, live=True)
    prices: tuple[str, ...] = setting((), complaint=_prices_complaint, live=True)

    @property
    def entry(self) -> Provider | None:
        """Return the provider's entry; None for the built-in models."""
        return PROVIDERS.get(self.provider)

    @property
    def is_remote(self) -> bool:
        return self.provider not in (OFFLINE, LOCAL)

    @property
    def key_variables(self) -> tuple[str, ...]:
        """Return the names of the variables with keys of the model, the first choice first."""
        named = self.api_key_env if self.api_key_env != AUTO else self.entry.key_variable if self.entry else ""
        return tuple(filter(None, named.split(",")))

    @property
    def window(self) -> int:
        """Return the context window: the configured one, else the model's own if it is known."""
        known = self.entry.facts(self.name) if self.entry else ModelFacts()
        return self.context_window or known.context_window or DEFAULT_WINDOW

    def price(self) -> Price:
        """Return the prices of the configured model."""
        if self.price_input or self.price_output:
            return Price(
                input=self.price_input, cached_input=self.price_cached_input or None, output=self.price_output
            )
        return self.price_of(self.provider, self.name)

    def price_of(self, provider: str, model: str) -> Price:
        """Return the prices of a model: from the configuration, else the known ones, else zero."""
        for text in self.prices:
            if (found := _PRICES.fullmatch(text)) and found[1] in (model, f"{provider}:{model}"):
                cached = float(found[4]) if found[4] else None
                return Price(input=float(found[2]), cached_input=cached, output=float(found[6]))
        entry = PROVIDERS.get(provider)
        return (entry.facts(model).price if entry else None) or Price()

    def resolved(self, choice: str) -> str:
        """Return `[PROVIDER:]MODEL` for an alias; other choices unchanged."""
        return dict(alias.partition("=")[::2] for alias in self.aliases).get(choice, choice)

    @property
    def chat_models(self) -> tuple[str, ...]:
        """Return the models of single chats."""
        return tuple(entry.rpartition("=")[2] for entry in self.chats)

    def for_chat(self, place: str) -> str:
        """Return the model of a chat (`PLATFORM:CHAT`); empty if it has none of its own."""
        return dict(entry.rpartition("=")[::2] for entry in self.chats).get(place, "")

    def api_keys(self, environ: Mapping[str, str]) -> tuple[tuple[str, Secret], ...]:
        """Read the keys of the model, each with its source. Empty if none is named: the endpoint needs no key."""
        if self.api_key_file:
            return ((self.api_key_file, read_secret_file(Path(self.api_key_file), "model.api_key_file")),)
        if not self.key_variables:
            return ()
        first, *others = self.key_variables
        if not environ.get(first, "").strip():
            raise ConfigError(
                f"the model's key is missing: the environment variable {first} (model.api_key_env) is not "
                "set; set it, or put the key into a file and set model.api_key_file; for an endpoint that "
                'needs no key, set model.api_key_env to ""',
                missing_variables=(first,),
            )
        found = [first, *(name for name in others if environ.get(name, "").strip())]
        return tuple((name, usable(environ[name].strip(), f"the key in {name}")) for name in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuxiliaryConfig:
    """Models for side tasks, as `[PROVIDER:]MODEL` or an alias."""

    summary: str = setting("", complaint=_choice_complaint, live=True)
    title: str = setting("", complaint=_choice_complaint, live=True)
    vision: str = setting("", complaint=_choice_complaint, live=True)
    approval: str = setting("", complaint=_choice_complaint, live=True)
    goal_judge: str = setting("", complaint=_choice_complaint, live=True)
    search: str = setting("", complaint=_choice_complaint, live=True)
    review: str = setting("", complaint=_choice_complaint, live=True)
    profile: str = setting("", complaint=_choice_complaint, live=True)
