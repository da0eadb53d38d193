"""Models of one configuration: the chain of the configured ones, and others that people choose by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hermes.domain.errors import ConfigError
from hermes.domain.turn.usage import Price
from hermes.domain.values import dataclass
from hermes.ports.agent import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTerms:
    """Window and price of one model."""

    context_window: int
    price: Price = Price()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """Model that a person or a setting chose."""

    provider: str = ""  # empty: of the configured model
    model: str = ""  # empty: the configured one


def _no_other_provider(choice: ModelChoice) -> Model:
    raise ConfigError(f"there is no provider {choice.provider}")


class ModelSet:
    def __init__(self, chain: Sequence[Model], make: Callable[[ModelChoice], Model] = _no_other_provider) -> None:
        self.chain = tuple(chain)
        self._make = make
        self._others: dict[str, Model] = {}  # by provider

    def chain_for(self, choice: ModelChoice) -> tuple[Model, ...]:
        """Return the chain that begins with the provider of the choice. Raises ConfigError if its key is missing."""
        if choice.provider in ("", self.chain[0].provider):
            return self.chain
        if choice.provider not in self._others:
            self._others[choice.provider] = self._make(choice)
        return (self._others[choice.provider], *self.chain[1:])

    async def close(self) -> None:
        for model in (*self.chain, *self._others.values()):
            await model.close()
