"""Notices: texts for the person of a conversation, outside a turn."""

from __future__ import annotations

from hermes.actors.process.process_services import Announcement
from hermes.domain.events import Notice
from hermes.domain.outbox_message import OutboxKind, OutboxMessage
from hermes.ports.chat import Outbox
from hermes.ports.given import Clock
from hermes.ports.hub import Hub
from hermes.ports.storage import Journal


class NoticeService:
    def __init__(self, *, hub: Hub, journal: Journal, outbox: Outbox, clock: Clock) -> None:
        self._hub = hub
        self._journal = journal
        self._outbox = outbox
        self._clock = clock

    async def announce(self, said: Announcement) -> None:
        """Publish a notice, and enqueue it for the chat where the person wrote last."""
        self._hub.publish(Notice(session=said.session, text=said.text, turn=said.turn))
        head = await self._journal.fetch(lambda reader: reader.head(said.session))
        if head is None or head.place is None:
            return
        await self._outbox.enqueue(
            OutboxMessage(
                id=f"notice:{said.id}",
                kind=OutboxKind.NOTICE,
                place=head.place,
                text=said.text,
                at=self._clock(),
                session=said.session,
            )
        )
