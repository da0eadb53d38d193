"""Delivery attempt: one outbox message on its way to a chat platform. It waits for the network and the disk.

The intent to send a part is on disk before the part is sent, and the id of the part is on disk before the next one is
sent. After a crash at most one part is in doubt. It is looked up if the platform can do that, or else sent again and
marked as a possible repeat. Files follow the text, one message each. A line replaces a file that cannot be sent.

Platforms do not notify people of edits. So a reply that grew for long, or since before a restart, ends as a new
message. The old one, which ends with the cursor, is deleted when the id of the new one is on disk. If it cannot be
deleted, it points to the new one. A turn without an answer keeps the text that was shown.

A message that amends another one edits the parts of that one and sends none.
"""

from __future__ import annotations

import math
from contextlib import suppress

from hermes.actors.commit import look_up, store
from hermes.actors.delivery.preview import CURSOR
from hermes.domain.errors import DeliveryError, HermesError, UnsendableFileError
from hermes.domain.operations import Cancel, Enqueue, MarkDelivered, Operation, RecordDelivery, set_aside
from hermes.domain.outbox import last_words
from hermes.domain.outbox_message import DeliveredMessage, OutboxKind, OutboxMessage, TurnEnd
from hermes.domain.values import replace
from hermes.ports.chat import Platform
from hermes.ports.given import Clock
from hermes.ports.storage import Journal, Transaction
from hermes.system.crash_point import reach

BELOW = "(The answer is below.)"
ERASED = "(This conversation was deleted.)"
REPEATED = "(This may be a repeat: Hermes was interrupted while it sent it.)\n\n"


class DeliveryAttempt:
    """One outbox message and its progress. Its methods raise only HermesErrors; confirmed parts stay confirmed."""

    def __init__(
        self,
        outgoing: OutboxMessage,
        *,
        platform: Platform,
        journal: Journal,
        clock: Clock,
        fresh_after_s: float = 0.0,
    ) -> None:
        """`fresh_after_s`: a reply that grew for longer ends as a new message; 0: never."""
        self.outgoing = outgoing
        self._platform = platform
        self._journal = journal
        self._clock = clock
        self._shown: dict[int, str] = {}  # text of each part, if this process sent it
        self._fresh_after_s = fresh_after_s
        # A reply that an earlier boot began to show stands above the notices of the restart.
        self._growing_since = -math.inf if outgoing.sent and not outgoing.final else None
        self._fresh = False  # send new messages instead of edits
        self._written = ""  # text of the reply that was shown last
        self.moves = 0  # how often the chat moved during the delivery

    @property
    def promises_more(self) -> bool:
        """Return whether the shown text ends with the cursor."""
        return self._shown.get(0, "").endswith(CURSOR)

    def settle(self, final: OutboxMessage) -> None:
        """Replace the preview by the final form of the reply."""
        was = self.outgoing
        self.outgoing = replace(
            final,
            place=was.place if self.moves else final.place,
            sent=was.sent,
            sending=was.sending,
            tries=was.tries,
            refusals=was.refusals,
            repeated=was.repeated,
            superseded=was.superseded,
        )
        since = self._growing_since
        self._fresh = (
            self._platform.abilities.delete
            and self._fresh_after_s > 0
            and final.end is not TurnEnd.STOPPED  # the person who stopped it is looking at it
            and since is not None
            and self._clock() - since >= self._fresh_after_s
        )

    def withdraw(self) -> bool:
        """Drop the text, as its session was erased. Return whether a half-shown reply needs a note in its place."""
        was = self.outgoing
        self._fresh = False
        self.outgoing = OutboxMessage(
            id=was.id,
            kind=was.kind,
            place=was.place,
            text=ERASED,
            at=was.at,
            sent=was.sent or was.superseded[:1],
            superseded=was.superseded if was.sent else was.superseded[1:],
        )
        return was.kind is OutboxKind.REPLY and (len(was.sent) == 1 or bool(was.superseded))

    async def keep(self) -> None:
        await self._write(Enqueue(outgoing=self.outgoing))

    async def show(self, text: str, written: str = "") -> None:
        """Show the reply so far: its first part, in the message that will hold the final form.

        `written`: the text that stays if the turn ends without an answer.
        """
        self._written = written
        try:
            await self._show(text)
        except DeliveryError as error:
            await self._move(error.moved_to)
            raise

    async def _show(self, text: str) -> None:
        if self._growing_since is None:
            self._growing_since = self._clock()
        if self.outgoing.sending:
            return  # it is unknown whether the message exists; the final form decides
        if self.outgoing.sent:
            await self._send_or_edit(0, self._platform.parts(text)[0])
            return
        await self._platform.ready(self.outgoing.place)
        if self.outgoing.final:
            return  # the final form came first; it is sent once
        await self._write(Enqueue(outgoing=replace(self.outgoing, text=text, final=False)))
        await self._send_or_edit(0, self._platform.parts(text)[0])
        await self._write(self._progress())

    async def finish(self) -> None:
        if self.outgoing.amends:
            await self._amend()
            return
        try:
            if self.moves:  # it was stored under the former id of the chat
                await self._write(Enqueue(outgoing=self.outgoing))
            await self._finish()
        except DeliveryError as error:
            await self._move(error.moved_to)
            raise

    async def _amend(self) -> None:
        """Edit the messages of an earlier delivery. Messages that cannot be edited stay as they are."""
        shown = await look_up(self._journal, lambda reader: reader.sent(self.outgoing.amends))
        if shown is not None and self._platform.abilities.edit:
            self.outgoing = replace(self.outgoing, place=shown.place, sent=shown.messages)
            # Never more messages than there are.
            for text, message in zip(self._platform.parts(self.outgoing.text), shown.messages, strict=False):
                try:
                    await self._platform.edit(self.outgoing, message, text)
                except DeliveryError as error:
                    if not (error.gone or error.refused or error.moved_to):
                        raise
        await self._write(Cancel(id=self.outgoing.id))

    async def _move(self, chat: str) -> None:
        """Start again in the chat's new id. The ids of sent messages are not valid there."""
        if not chat:
            return
        place = replace(self.outgoing.place, chat=chat, message="")
        self.outgoing = replace(self.outgoing, place=place, sent=(), superseded=())
        self._shown.clear()
        self.moves += 1
        await self._write(Cancel(id=self.outgoing.id), Enqueue(outgoing=self.outgoing))

    async def _finish(self) -> None:
        if self.outgoing.end is not TurnEnd.ANSWERED and (self.outgoing.sent or self.outgoing.sending):
            await self._store_last_words()
        if self._fresh:
            self._supersede_shown()
        parts = self._platform.parts(self.outgoing.text) if self.outgoing.text else ()
        if len(self.outgoing.sent) <= len(parts):  # files follow the final text
            for number, text in enumerate(parts):
                await self._send_or_edit(number, text)
        for number, path in enumerate(self.outgoing.files, len(parts)):
            if number >= len(self.outgoing.sent):
                await self._send(number, "", path)
        await self._delete_superseded()
        if not self.outgoing.sent:
            with suppress(DeliveryError):  # only a waiting sign
                await self._platform.show_waiting(self.outgoing.place, over=True)
        reach("reply: shown, not noted")
        outgoing = self.outgoing
        sent = DeliveredMessage(
            id=outgoing.id,
            kind=outgoing.kind,
            place=outgoing.place,
            at=outgoing.at,
            sent_at=self._clock(),
            messages=outgoing.sent,
            session=outgoing.session,
            turn=outgoing.turn,
            repeated=bool(outgoing.repeated),
        )
        await self._write(MarkDelivered(sent=sent))

    async def _store_last_words(self) -> None:
        """Store the last words before they are sent, so that a retry after a kill sends the same."""
        ended = replace(self.outgoing, text=last_words(self.outgoing, self._written))
        if ended.text != self.outgoing.text:
            await self._write(Enqueue(outgoing=ended))
        self.outgoing, self._written = ended, ""

    def _supersede_shown(self) -> None:
        """Send new messages, unless a part is in doubt: an edit can resolve that."""
        self._fresh, self._growing_since = False, None  # once
        if not self.outgoing.sending and not self.outgoing.repeated:
            self.outgoing = replace(self.outgoing, sent=(), superseded=self.outgoing.sent)
            self._shown.clear()

    async def _delete_superseded(self) -> None:
        if not self.outgoing.superseded:
            return
        await self._write(self._progress())  # the new messages are confirmed from here on
        for message in self.outgoing.superseded:
            try:
                await self._platform.delete(self.outgoing, message)
            except DeliveryError as error:
                if not (error.gone or error.refused):
                    raise
                await self._point_down(message)
        self.outgoing = replace(self.outgoing, superseded=())

    async def _point_down(self, message: str) -> None:
        """Edit a message that cannot be deleted, so that it does not look unfinished."""
        try:
            await self._platform.edit(self.outgoing, message, BELOW)
        except DeliveryError as error:
            if not (error.gone or error.refused):
                raise  # else it is gone or cannot change; the answer is sent

    def note(self, tries: int, error: HermesError) -> Transaction:
        """Keep a failed attempt in mind. Return what has to be stored."""
        refused = isinstance(error, DeliveryError) and error.refused
        refusals = self.outgoing.refusals + 1 if refused else 0
        self.outgoing = replace(self.outgoing, tries=tries, problem=str(error), refusals=refusals)
        return (self._progress(),)

    def give_up(self, problem: str) -> Transaction:
        """Return what makes the message a dead letter: it can never be sent."""
        return set_aside(self.outgoing, problem, self._clock())

    async def _send_or_edit(self, number: int, text: str) -> None:
        marked = REPEATED + text if number in self.outgoing.repeated else text
        if number < len(self.outgoing.sent) and not await self._edit(number, marked):
            self.outgoing = replace(self.outgoing, sent=self.outgoing.sent[:number])  # the message was deleted
        if number >= len(self.outgoing.sent):
            await self._send(number, text)

    async def _edit(self, number: int, text: str) -> bool:
        """Edit a sent part. Return False if that message does not exist any more."""
        if self._shown.get(number) == text or not self._platform.abilities.edit:
            return True
        try:
            await self._platform.edit(self.outgoing, self.outgoing.sent[number], text)
        except DeliveryError as error:
            if error.gone:
                return False
            raise
        self._shown[number] = text
        return True

    async def _send(self, number: int, text: str, path: str = "") -> None:
        await self._platform.ready(
            self.outgoing.place
        )  # before the intent is stored: a crash while it waits leaves no doubt
        doubtful = self.outgoing.sending
        if doubtful and self._platform.abilities.find:
            found = await self._platform.find(self.outgoing, number)
            if found is not None:
                self._record_sent(found)
                if not path:
                    await self._edit(number, text)
                return
        elif doubtful:
            text = REPEATED + text
            self.outgoing = replace(self.outgoing, repeated=(*self.outgoing.repeated, number))
        else:
            await self._write(replace(self._progress(), sending=True))
            self.outgoing = replace(self.outgoing, sending=True)
        reach("reply: about to be sent")
        try:
            message = await (self._send_file(path, text) if path else self._platform.send(self.outgoing, text))
        except DeliveryError as error:
            if not (error.arrived_perhaps or doubtful):
                self.outgoing = replace(self.outgoing, sending=False)
            raise
        reach("reply: sent")
        self._record_sent(message)
        self._shown[number] = text

    async def _send_file(self, path: str, text: str) -> str:
        problem = f"no files can be sent on {self._platform.name}"
        if self._platform.abilities.files:
            try:
                return await self._platform.send_file(self.outgoing, path, text.strip())
            except UnsendableFileError as error:
                problem = str(error)
        name = path.rpartition("/")[2]
        return await self._platform.send(self.outgoing, f"{text}(The file {name} could not be sent: {problem}.)")

    def _record_sent(self, message: str) -> None:
        self.outgoing = replace(self.outgoing, sent=(*self.outgoing.sent, message), sending=False)

    def _progress(self) -> RecordDelivery:
        outgoing = self.outgoing
        return RecordDelivery(
            id=outgoing.id,
            sent=outgoing.sent,
            sending=outgoing.sending,
            tries=outgoing.tries,
            problem=outgoing.problem,
            refusals=outgoing.refusals,
            repeated=outgoing.repeated,
            superseded=outgoing.superseded,
        )

    async def _write(self, *operations: Operation) -> None:
        await store(self._journal, operations)
