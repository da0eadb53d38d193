"""Table of model providers. A new provider is an entry here; no other code names one.

Addresses and variables are those of the providers' documentation. Prices (US dollars per million tokens) and windows
are listed only for models whose values do not depend on the request; `hermes model list` reads others live.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from hermes.domain.provider import EffortStyle, ModelFacts, Provider, ReasoningReplay, WireProtocol
from hermes.domain.turn.usage import Price

OFFLINE: Final = "offline"  # built in, not an AI
LOCAL: Final = "local"  # small model in this process
_K = 1000


def _priced(
    window: int,
    output: int,
    prices: tuple[float, float, float] | None = None,
    *,
    vision: bool = True,
    reasoning: bool = False,
) -> ModelFacts:
    price = None if prices is None else Price(input=prices[0], cached_input=prices[1], output=prices[2])
    return ModelFacts(context_window=window, max_output=output, price=price, vision=vision, reasoning=reasoning)


_OPENAI_MODELS = (
    ("gpt-5", _priced(400 * _K, 128 * _K, (1.25, 0.125, 10.0), reasoning=True)),
    ("gpt-5-mini", _priced(400 * _K, 128 * _K, (0.25, 0.025, 2.0), reasoning=True)),
    ("gpt-5-nano", _priced(400 * _K, 128 * _K, (0.05, 0.005, 0.4), reasoning=True)),
    ("gpt-4.1", _priced(1_047_576, 32_768, (2.0, 0.5, 8.0))),
    ("gpt-4.1-mini", _priced(1_047_576, 32_768, (0.4, 0.1, 1.6))),
    ("gpt-4.1-nano", _priced(1_047_576, 32_768, (0.1, 0.025, 0.4))),
    ("gpt-4o", _priced(128 * _K, 16_384, (2.5, 1.25, 10.0))),
    ("gpt-4o-mini", _priced(128 * _K, 16_384, (0.15, 0.075, 0.6))),
    ("o3", _priced(200 * _K, 100 * _K, (2.0, 0.5, 8.0), reasoning=True)),
    ("o4-mini", _priced(200 * _K, 100 * _K, (1.1, 0.275, 4.4), reasoning=True)),
)
_CLAUDE_MODELS = (
    ("claude-opus-4-5", _priced(200 * _K, 64 * _K, (5.0, 0.5, 25.0), reasoning=True)),
    ("claude-sonnet-4-5", _priced(200 * _K, 64 * _K, (3.0, 0.3, 15.0), reasoning=True)),
    ("claude-haiku-4-5", _priced(200 * _K, 64 * _K, (1.0, 0.1, 5.0), reasoning=True)),
    ("claude-opus-4-1", _priced(200 * _K, 32 * _K, (15.0, 1.5, 75.0), reasoning=True)),
    ("claude-opus-4-0", _priced(200 * _K, 32 * _K, (15.0, 1.5, 75.0), reasoning=True)),
    ("claude-opus-4", _priced(200 * _K, 32 * _K, (15.0, 1.5, 75.0), reasoning=True)),
    ("claude-sonnet-4-0", _priced(200 * _K, 64 * _K, (3.0, 0.3, 15.0), reasoning=True)),
    ("claude-sonnet-4", _priced(200 * _K, 64 * _K, (3.0, 0.3, 15.0), reasoning=True)),
    ("claude-3-7-sonnet", _priced(200 * _K, 64 * _K, (3.0, 0.3, 15.0), reasoning=True)),
    ("claude-3-5-haiku", _priced(200 * _K, 8192, (0.8, 0.08, 4.0))),
)
# Their prices depend on the length of the prompt.
_GEMINI_MODELS = (
    ("gemini-2.5-pro", _priced(1_048_576, 65_536, reasoning=True)),
    ("gemini-2.5-flash", _priced(1_048_576, 65_536, (0.3, 0.03, 2.5), reasoning=True)),
)
_LOW_TO_HIGH = (("minimal", "low"), ("xhigh", "high"))

_ENTRIES = (
    Provider(
        name="openai",
        title="OpenAI",
        base_url="https://api.openai.com/v1",
        key_variable="OPENAI_API_KEY",
        effort=EffortStyle.FIELD,
        models=_OPENAI_MODELS,
    ),
    Provider(
        name="openrouter",
        title="OpenRouter",
        base_url="https://openrouter.ai/api/v1",
        key_variable="OPENROUTER_API_KEY",
        effort=EffortStyle.OBJECT,
        replay=ReasoningReplay.DETAILS,
    ),
    Provider(
        name="anthropic",
        title="Anthropic",
        base_url="https://api.anthropic.com/v1",
        key_variable="ANTHROPIC_API_KEY",
        key_header="x-api-key",
        protocol=WireProtocol.MESSAGES,
        models=_CLAUDE_MODELS,
    ),
    Provider(
        name="gemini",
        title="Google Gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        key_variable="GEMINI_API_KEY",
        effort=EffortStyle.FIELD,
        efforts=(("xhigh", "high"),),
        models=_GEMINI_MODELS,
    ),
    Provider(
        name="nous",
        title="Nous Portal",
        base_url="https://inference-api.nousresearch.com/v1",
        key_variable="NOUS_API_KEY",
        effort=EffortStyle.OBJECT,
    ),
    Provider(
        name="nvidia",
        title="NVIDIA NIM",
        base_url="https://integrate.api.nvidia.com/v1",
        key_variable="NVIDIA_API_KEY",
    ),
    Provider(
        name="zai",
        title="z.ai (GLM)",
        base_url="https://api.z.ai/api/paas/v4",
        key_variable="ZAI_API_KEY",
        effort=EffortStyle.SWITCH,
        replay=ReasoningReplay.TEXT,
    ),
    Provider(
        name="kimi",
        title="Kimi (Moonshot AI)",
        base_url="https://api.moonshot.ai/v1",
        key_variable="MOONSHOT_API_KEY",
        effort=EffortStyle.SWITCH,
        replay=ReasoningReplay.TEXT,
    ),
    Provider(
        name="minimax",
        title="MiniMax",
        base_url="https://api.minimax.io/v1",
        key_variable="MINIMAX_API_KEY",
    ),
    Provider(
        name="xiaomi",
        title="Xiaomi MiMo",
        base_url="https://api.xiaomimimo.com/v1",
        key_variable="XIAOMI_API_KEY",
        effort=EffortStyle.SWITCH,
        replay=ReasoningReplay.TEXT,
    ),
    Provider(
        name="huggingface",
        title="Hugging Face",
        base_url="https://router.huggingface.co/v1",
        key_variable="HF_TOKEN",
        effort=EffortStyle.FIELD,
        efforts=_LOW_TO_HIGH,
    ),
    Provider(
        name="groq",
        title="Groq",
        base_url="https://api.groq.com/openai/v1",
        key_variable="GROQ_API_KEY",
        effort=EffortStyle.FIELD,
        efforts=_LOW_TO_HIGH,
    ),
    Provider(
        name="deepseek",
        title="DeepSeek",
        base_url="https://api.deepseek.com/v1",
        key_variable="DEEPSEEK_API_KEY",
        effort=EffortStyle.SWITCH_AND_FIELD,
        efforts=(("minimal", "low"), ("medium", "high"), ("xhigh", "high")),
        replay=ReasoningReplay.TEXT,
    ),
    Provider(
        name="mistral",
        title="Mistral",
        base_url="https://api.mistral.ai/v1",
        key_variable="MISTRAL_API_KEY",
    ),
    Provider(
        name="together",
        title="Together AI",
        base_url="https://api.together.xyz/v1",
        key_variable="TOGETHER_API_KEY",
        effort=EffortStyle.FIELD,
        efforts=_LOW_TO_HIGH,
    ),
    Provider(name="ollama", title="Ollama", base_url="http://127.0.0.1:11434/v1", effort=EffortStyle.FIELD),
    Provider(name="lmstudio", title="LM Studio", base_url="http://127.0.0.1:1234/v1", effort=EffortStyle.FIELD),
    Provider(name="vllm", title="vLLM", base_url="http://127.0.0.1:8000/v1", effort=EffortStyle.FIELD),
    Provider(
        name="llamacpp", title="llama.cpp server", base_url="http://127.0.0.1:8080/v1", effort=EffortStyle.FIELD
    ),
    Provider(
        name="azure",
        title="Azure OpenAI",
        key_variable="AZURE_OPENAI_API_KEY",
        key_header="api-key",
        versioned=True,
        effort=EffortStyle.FIELD,
        models=_OPENAI_MODELS,
    ),
    Provider(name="custom", title="any other endpoint", effort=EffortStyle.FIELD),
)

_WITHOUT_ENTRY: Final = ("", OFFLINE, LOCAL)  # built in, so no plugin is looked for: that takes 50 ms and 1 MB
PLUGIN_GROUP: Final = "hermes.providers"  # entry points of packages: the name is the provider's


class _Providers(Mapping[str, Provider]):
    """Built-in providers, and those of plugins, which are looked for only by a name that is not built in."""

    def __init__(self, entries: Iterable[Provider]) -> None:
        self._built_in = {entry.name: entry for entry in entries}
        self._added: dict[str, Provider | None] = {}

    def __getitem__(self, name: str) -> Provider:
        if (entry := self._built_in.get(name)) is not None:
            return entry
        if name not in self._added:
            self._added[name] = None if name in _WITHOUT_ENTRY else _of_plugin(name)
        if (added := self._added[name]) is None:
            raise KeyError(name)
        return added

    def __iter__(self) -> Iterator[str]:
        return iter(self._built_in)

    def __len__(self) -> int:
        return len(self._built_in)


def plugin_of_provider(name: str) -> tuple[str, ...] | None:
    """Return the names of the plugins of the package with this provider; None if no package has it."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - for names that are not built in

    point = next(iter(entry_points(group=PLUGIN_GROUP, name=name)), None) if name.isidentifier() else None
    if point is None or point.dist is None:
        return None
    package = point.dist.name
    return tuple(
        each.name for each in entry_points(group="hermes.plugins") if each.dist and each.dist.name == package
    )


def _of_plugin(name: str) -> Provider | None:
    from importlib.metadata import entry_points  # noqa: PLC0415 - for names that are not built in

    point = next(iter(entry_points(group=PLUGIN_GROUP, name=name)), None) if name.isidentifier() else None
    try:
        found = None if point is None else point.load()
    except Exception:  # noqa: BLE001 - code of others: the name is then unknown
        return None
    return found if isinstance(found, Provider) and found.name == name else None


PROVIDERS: Final[Mapping[str, Provider]] = _Providers(_ENTRIES)
PROVIDER_NAMES: Final = (OFFLINE, LOCAL, *PROVIDERS)
