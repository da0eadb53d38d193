"""Delivery of the reports of jobs: the chats that the targets mean, and the note in the conversation there.

The messages are stored in the transaction that ends the run, and so is a fact for each of them, the duty to note the
report in the conversation of its chat. So the person can reply, and the agent there knows what they mean. A note is
stored once, under the id of the message.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Final

from loguru import logger

from hermes.actors.commit import store
from hermes.domain.access import home_channel
from hermes.domain.access.home_channel import fact_of, key_in
from hermes.domain.errors import AlreadySeenError, BadInputError, HermesError, RefusedError, UnknownSessionError
from hermes.domain.ids import SessionId, SessionKey
from hermes.domain.job.job import Job, JobRun
from hermes.domain.operations import PutFact
from hermes.domain.outbox_message import OutboxKind, OutboxMessage
from hermes.domain.read.reader import Reader
from hermes.domain.session.protocol import NotePost
from hermes.domain.session.state import is_open
from hermes.domain.source import Place, Source
from hermes.domain.text.fence import fenced
from hermes.domain.values import dataclass
from hermes.ports.channels import Channels
from hermes.ports.given import Clock
from hermes.ports.storage import Journal
from hermes.services.home import HomeService
from hermes.services.sessions import SessionService

PREFIX: Final = "mirror:"  # of the facts that are duties to note a report
_MAX_SHOWN: Final = 6_000  # characters of a report that the model sees
_RETRY_S: Final = 30.0
_KINDS: Final = ("dm", "group", "channel", "thread")


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Messages to enqueue, the duties that follow from them, and the targets that mean no chat."""

    messages: tuple[OutboxMessage, ...] = ()
    duties: tuple[PutFact, ...] = ()
    unknown: tuple[str, ...] = ()


class JobDelivery:
    def __init__(
        self,
        *,
        sessions: SessionService,
        homes: HomeService,
        channels: Channels,
        journal: Journal,
        clock: Clock,
        new_marker: Callable[[], str],
    ) -> None:
        self._sessions = sessions
        self._homes = homes
        self._channels = channels
        self._journal = journal
        self._clock = clock
        self._new_marker = new_marker
        self._noting: set[asyncio.Task[None]] = set()
        self._lock = asyncio.Lock()

    async def report(self, job: Job, run: JobRun, text: str) -> Report:
        """Return what delivers a text to all targets of the job."""
        places: dict[tuple[str, str, str], Place] = {}
        unknown = []
        for written in job.deliver:
            try:
                found = await self._channels.places((written,), job.source.place)
            except BadInputError as error:
                unknown.append(f"{written} ({error})")
                continue
            places.update({(each.platform, each.chat, each.thread): each for each in found})
        messages = tuple(
            OutboxMessage(
                id=f"job:{job.id}:{run.number}:{index}",
                kind=OutboxKind.NOTICE,
                place=place,
                text=text,
                at=self._clock(),
            )
            for index, place in enumerate(places.values())
        )
        duties = tuple(PutFact(name=PREFIX + each.id, value=_encoded(job, run, each)) for each in messages)
        return Report(messages=messages, duties=duties, unknown=tuple(unknown))

    async def asked_in(self, job: Job) -> Place | None:
        """Return the chat where approvals of a run are asked for: that of the job, else a home channel."""
        return job.source.place or next(iter(await self._homes.places()), None)

    # ------------------------------------------------------------ the note in the conversation

    def take_up(self) -> None:
        """Note in the background what was reported."""
        task = asyncio.create_task(self._note_all(), name="notes of reports")
        self._noting.add(task)
        task.add_done_callback(self._noting.discard)

    async def close(self) -> None:
        for task in (tasks := list(self._noting)):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _note_all(self) -> None:
        async with self._lock:
            while not await self._try_all():  # noqa: ASYNC110 - there is no event to wait for
                await asyncio.sleep(_RETRY_S)

    async def _try_all(self) -> bool:
        try:
            for name, value in await self._journal.fetch(_read_duties):
                await self._note(json.loads(value))
                await store(self._journal, (PutFact(name=name, value=None),))
        except HermesError as error:
            logger.warning("jobs: reports are noted in their conversations later: {}", error)
            return False
        return True

    async def _note(self, duty: dict[str, str]) -> None:
        place = Place(platform=duty["platform"], chat=duty["chat"], thread=duty["thread"])
        outgoing = OutboxMessage(
            id=duty["id"], kind=OutboxKind.NOTICE, place=place, text=duty["text"], at=self._clock()
        )
        shown = fenced(duty["text"], self._new_marker(), max_chars=_MAX_SHOWN)
        label = f"Report of the scheduled job {duty['job']} ({duty['name']}), run {duty['run']}:"
        wish = NotePost(outgoing=outgoing, shown=f"{label}\n{shown}", queued=True)
        own, others = await self._keys(place, duty["key"])
        for key in (*own, *others):
            if (bound := await self._sessions.bound(key)) is None:
                continue
            try:
                await self._sessions.post(await self._open(bound, key, place), wish)
            except AlreadySeenError:
                return
            except (RefusedError, UnknownSessionError) as error:
                logger.info("job {}: its report is not noted in session {}: {}", duty["job"], bound, error)
                continue
            return
        if own:  # nobody has written there yet
            source = Source(platform=place.platform, user=duty["user"], place=place)
            await self._sessions.post((await self._sessions.begin(source, key=own[0])).id, wish)

    async def _open(self, bound: SessionId, key: SessionKey, place: Place) -> SessionId:
        """Return the open session of a chat. One that has ended is followed by a new one."""
        head = await self._sessions.conversation(bound)
        if is_open(head):
            return head.id
        source = Source(platform=head.platform, user=head.owner, place=place, company=head.company)
        return (await self._sessions.begin(source, key=key)).id

    async def _keys(self, place: Place, origin: str) -> tuple[list[SessionKey], list[SessionKey]]:
        """Return the keys that are known of a place, the best one first, and those that it can have."""
        home = await self._sessions.fact(fact_of(place.platform))
        chosen = key_in(home) if home_channel.decode(place.platform, home) == place else None
        where = f"{place.chat}:{place.thread}" if place.thread else place.chat
        shared = (f"agent:main:{place.platform}:{kind}:{where}" for kind in _KINDS)
        own = [SessionKey(key) for key in (origin, chosen) if key]
        return own, [SessionKey(key) for key in shared]


def _encoded(job: Job, run: JobRun, message: OutboxMessage) -> bytes:
    place, origin = message.place, job.source.place
    is_origin = origin is not None and (origin.platform, origin.chat, origin.thread) == (
        place.platform,
        place.chat,
        place.thread,
    )
    value = {
        "id": message.id,
        "job": job.id,
        "name": job.label,
        "run": str(run.number),
        "platform": place.platform,
        "chat": place.chat,
        "thread": place.thread,
        "text": message.text,
        "key": job.origin_key if is_origin else "",
        "user": job.source.user if is_origin else "",
    }
    return json.dumps(value).encode()


def _read_duties(reader: Reader) -> list[tuple[str, bytes]]:
    return [(name, reader.fact(name) or b"{}") for name in reader.facts(PREFIX)]
