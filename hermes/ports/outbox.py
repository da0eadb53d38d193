"""Outbox as an operator sees it: what is not delivered yet, and what is given up."""

from __future__ import annotations

from typing import Protocol

from hermes.domain.outbox_message import DeadLetter, OutboxMessage


class OutboxControl(Protocol):
    async def waiting(self) -> list[OutboxMessage]:
        """Return the messages that are not delivered yet, oldest first."""

    async def drop(self, name: str, who: str) -> DeadLetter:
        """Stop sending a message. It becomes a dead letter in the same transaction, so that it can be replayed."""

    async def delete_letter(self, name: str, who: str) -> DeadLetter:
        """Delete a dead letter for good."""
