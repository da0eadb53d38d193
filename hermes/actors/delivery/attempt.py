"""One obligation on its way to a chat platform: the part of delivery that waits for the network and for the disk.

That a message is about to be sent is on disk before it is, and its id is on disk before the next one goes out. So
whatever dies in between, it is known afterwards which messages arrived, and of which one nobody can tell: that one is
looked up where the platform can, and otherwise sent once more, marked as a possible repeat. Files follow the text,
one message each; in the place of one that cannot be sent stands a line that says so.

An answer that was shown for long while it grew, or since before a restart, is said anew in the end, as nobody is
notified of a change. The message that grew, whose last sign says that more is coming, is taken away when the id of
the new one is on disk; where that is not allowed, it points to the new one. Of a turn that came to no answer stays
what was shown; where nothing was, and nothing is to be said, nothing is sent.

What amends another obligation changes the messages of that one, and is never a message itself.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace

from hermes.actors.commit import look_up, store
from hermes.actors.delivery.preview import CURSOR
from hermes.domain.errors import DeliveryError, HermesError, UnsendableFileError
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.operations import Cancel, Enqueue, MarkDelivered, Operation, RecordDelivery, SetAside
from hermes.domain.outbox import last_words
from hermes.domain.outbox_message import DeadLetter, DeliveredMessage, OutboxKind, OutboxMessage, TurnEnd
from hermes.domain.source import Source
from hermes.ports.chat import Platform
from hermes.ports.given import Clock
from hermes.ports.storage import Journal
from hermes.system.crash_point import reach

BELOW = "(The answer is below.)"
ERASED = "(This conversation was deleted.)"
REPEATED = "(This may be a repeat: Hermes was interrupted while it sent it.)\n\n"


class DeliveryAttempt:
    """Each call raises HermesErrors only; what had been confirmed by then stays confirmed."""

    def __init__(
        self,
        outgoing: OutboxMessage,
        *,
        platform: Platform,
        journal: Journal,
        clock: Clock,
        fresh_after_s: float = 0.0,
    ) -> None:
        """`fresh_after_s`: an answer that was shown for so long is said anew in the end; 0: it never is."""
        self.outgoing = outgoing
        self._platform = platform
        self._journal = journal
        self._clock = clock
        self._shown: dict[int, str] = {}  # what each message says, as far as this process has said it
        self._fresh_after_s = fresh_after_s
        # Where an earlier life has shown it, it stands above whatever was said of the restart.
        self._growing_since = -math.inf if outgoing.sent and not outgoing.final else None
        self._anew = False  # to be said in new messages
        self._written = ""  # as much of the answer as was shown last
        self.moves = 0  # of the chat while this was to be said there

    @property
    def promises_more(self) -> bool:
        """Whether what is shown ends with the sign that more is coming."""
        return self._shown.get(0, "").endswith(CURSOR)

    def settle(self, final: OutboxMessage) -> None:
        """The answer is there: from now on this is what is to be said."""
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
        self._anew = (
            self._platform.abilities.delete
            and self._fresh_after_s > 0
            and final.end is not TurnEnd.STOPPED  # who stopped it looks at it
            and since is not None
            and self._clock() - since >= self._fresh_after_s
        )

    def withdraw(self) -> bool:
        """Its conversation was erased: nothing more of it is said. True: a message looks as if it still grew, and is
        to say that instead."""
        was = self.outgoing
        self._anew = False
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
        """Show how far the answer has come: the first part of it, in the message that will hold its final form.

        `written`: what is to stay of that if nothing more comes.
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
            return  # nobody knows whether there is such a message: the final form will say it
        if self.outgoing.sent:
            await self._say(0, self._platform.parts(text)[0])
            return
        await self._platform.ready(self.outgoing.place)
        if self.outgoing.final:
            return  # the answer was there before its turn to be shown: it is said once, and whole
        await self._write(Enqueue(outgoing=replace(self.outgoing, text=text, final=False)))
        await self._say(0, self._platform.parts(text)[0])
        await self._write(self._progress())

    async def finish(self) -> None:
        if self.outgoing.amends:
            await self._amend()
            return
        try:
            if self.moves:  # it was owed to the chat as it was called before
                await self._write(Enqueue(outgoing=self.outgoing))
            await self._finish()
        except DeliveryError as error:
            await self._move(error.moved_to)
            raise

    async def _amend(self) -> None:
        """What it is about went before it in its chat. Where that cannot be changed (any more), it stays as it is."""
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
        """All of it is said in the chat that this one has become: the ids of its messages mean nothing there."""
        if not chat:
            return
        place = replace(self.outgoing.place, chat=chat, message="")
        self.outgoing = replace(self.outgoing, place=place, sent=(), superseded=())
        self._shown.clear()
        self.moves += 1
        await self._write(Cancel(id=self.outgoing.id), Enqueue(outgoing=self.outgoing))

    async def _finish(self) -> None:
        if self.outgoing.end is not TurnEnd.ANSWERED and (self.outgoing.sent or self.outgoing.sending):
            await self._end_what_was_shown()
        if self._anew:
            self._begin_anew()
        parts = self._platform.parts(self.outgoing.text) if self.outgoing.text else ()
        if len(self.outgoing.sent) <= len(parts):  # a file goes out when all of the text is as it stays
            for number, text in enumerate(parts):
                await self._say(number, text)
        for number, path in enumerate(self.outgoing.files, len(parts)):
            if number >= len(self.outgoing.sent):
                await self._send(number, "", path)
        await self._take_away_superseded()
        if not self.outgoing.sent:
            with suppress(DeliveryError):  # nobody misses it
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

    async def _end_what_was_shown(self) -> None:
        """On disk before it is said: whoever goes on with it after a kill says the same."""
        ended = replace(self.outgoing, text=last_words(self.outgoing, self._written))
        if ended.text != self.outgoing.text:
            await self._write(Enqueue(outgoing=ended))
        self.outgoing, self._written = ended, ""

    def _begin_anew(self) -> None:
        """Not where something may have been shown that nobody knows of: that is told apart by being changed."""
        self._anew, self._growing_since = False, None  # once
        if not self.outgoing.sending and not self.outgoing.repeated:
            self.outgoing = replace(self.outgoing, sent=(), superseded=self.outgoing.sent)
            self._shown.clear()

    async def _take_away_superseded(self) -> None:
        if not self.outgoing.superseded:
            return
        await self._write(self._progress())  # from now on there is no doubt about the new ones
        for message in self.outgoing.superseded:
            try:
                await self._platform.delete(self.outgoing, message)
            except DeliveryError as error:
                if not (error.gone or error.refused):
                    raise
                await self._point_down(message)
        self.outgoing = replace(self.outgoing, superseded=())

    async def _point_down(self, message: str) -> None:
        """It may not be taken away, and must not look as if it grew for ever."""
        try:
            await self._platform.edit(self.outgoing, message, BELOW)
        except DeliveryError as error:
            if not (error.gone or error.refused):
                raise  # else it is gone already, or stays: the answer is there

    async def note(self, tries: int, error: HermesError) -> None:
        """Store a failed attempt."""
        refused = isinstance(error, DeliveryError) and error.refused
        refusals = self.outgoing.refusals + 1 if refused else 0
        self.outgoing = replace(self.outgoing, tries=tries, problem=str(error), refusals=refusals)
        await self._write(self._progress())

    async def give_up(self, problem: str) -> None:
        """It can never be said there: it is kept as a dead letter."""
        outgoing = self.outgoing
        letter = DeadLetter(
            id=outgoing.id,
            session=outgoing.session or SessionId(""),
            turn=outgoing.turn or TurnId(""),
            messages=(),
            source=Source(platform=outgoing.place.platform, place=outgoing.place),
            options=b"{}",
            problem=problem,
            at=self._clock(),
            undelivered=outgoing,
        )
        await self._write(SetAside(letter=letter), Cancel(id=outgoing.id))

    async def _say(self, number: int, text: str) -> None:
        marked = REPEATED + text if number in self.outgoing.repeated else text
        if number < len(self.outgoing.sent) and not await self._changed(number, marked):
            self.outgoing = replace(self.outgoing, sent=self.outgoing.sent[:number])  # somebody took the message away
        if number >= len(self.outgoing.sent):
            await self._send(number, text)

    async def _changed(self, number: int, text: str) -> bool:
        """The message says it now; False: there is no such message (any more)."""
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
        await self._platform.ready(self.outgoing.place)  # before it is noted: a death while it waits leaves no doubt
        doubtful = self.outgoing.sending
        if doubtful and self._platform.abilities.find:
            found = await self._platform.find(self.outgoing, number)
            if found is not None:
                self._arrived(found)
                if not path:
                    await self._changed(number, text)
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
        self._arrived(message)
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

    def _arrived(self, message: str) -> None:
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
