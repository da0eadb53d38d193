"""Person model port: learns about a person from what they said, and tells what it believes and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hermes.domain.memory.scope import MemoryScope
from hermes.domain.profile.belief import Belief
from hermes.domain.profile.conclusion import Spoken
from hermes.ports.memory import ChangeOrigin


class PersonModel(Protocol):
    """Beliefs about persons, apart for each scope. All methods raise HermesErrors only."""

    async def learn(self, scope: MemoryScope, said: Sequence[Spoken], origin: ChangeOrigin) -> int:
        """Learn from these messages; return how many beliefs are new or changed.

        Repeating an operation changes nothing. Raises an error if the messages have to be given again.
        """

    async def beliefs(self, scope: MemoryScope) -> tuple[Belief, ...]:
        """Return all beliefs, those that are held first."""

    async def people(self) -> tuple[str, ...]:
        """Return the scopes with beliefs, as text; empty if the model cannot list them."""

    async def forget(self, scope: MemoryScope, belief: str | None, origin: ChangeOrigin) -> tuple[Belief, ...]:
        """Forget a belief and its history, or with None everything; return what was forgotten.

        No copy of its text stays in the model. Raises BadInputError if there is no such belief.
        """
