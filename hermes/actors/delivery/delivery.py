"""The delivery actor: has said what is owed to chat platforms, in order in each chat, until it is confirmed.

It holds what the outbox holds. A chat that cannot be reached waits with growing pauses and keeps no other one from
its messages; a chat that is gone for good makes dead letters; one that is called by another id goes on under that,
in the same order. While a turn runs, its answer is shown as it grows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from loguru import logger

from hermes.actors.delivery.attempt import DeliveryAttempt
from hermes.actors.delivery.lane import MAX_MOVES, Lane, Live, is_hopeless, pause_s
from hermes.actors.delivery.protocol import (
    AttemptDone,
    Chat,
    ContinueLane,
    Deliveries,
    Drain,
    ForgetSession,
    Load,
    Loaded,
    ProgressSaved,
    ShowTyping,
)
from hermes.actors.kernel.actor import LoopActor
from hermes.actors.kernel.future import LoopFuture
from hermes.actors.kernel.ref import ActorDeadError
from hermes.domain.errors import DeliveryError, HermesError
from hermes.domain.events import TurnAnswered, TurnGaveUp
from hermes.domain.read.views import ActorView
from hermes.domain.types import OutboxKind, OutboxMessage, SessionId, TurnId
from hermes.ports.chat import Platform
from hermes.ports.given import Clock
from hermes.ports.hub import Hub
from hermes.ports.storage import Journal

TYPING_EVERY_S = 4.0
LOAD_AGAIN_S = 1.0

_Work: TypeAlias = Callable[[], Awaitable[None]]  # not begun, so that none is left behind by a stop before it is


class DeliveryActor(LoopActor):
    kind = "delivery"

    def __init__(
        self,
        *,
        platforms: Mapping[str, Platform],
        journal: Journal,
        hub: Hub,
        clock: Clock,
        jitter: Callable[[], float],
        fresh_after_s: float = 0.0,
    ) -> None:
        super().__init__()
        self._platforms = platforms
        self._journal = journal
        self._hub = hub
        self._clock = clock
        self._jitter = jitter  # between 0 and 1
        self._fresh_after_s = fresh_after_s  # see Courier
        self._attempts: dict[str, DeliveryAttempt] = {}
        self._lanes: dict[Chat, Lane] = {}
        self._moved: dict[Chat, Chat] = {}  # by what they were called before
        self._tasks: set[asyncio.Task[None]] = set()
        self._unknown: set[str] = set()  # platforms that are not configured (any more)
        self._called_off: set[str] = set()  # of an erased session, and under way when it was erased
        self._settling: list[LoopFuture] = []
        self._loaded = False
        self._early: list[OutboxMessage] = []  # what is told before it is known how much of it was said already

    def statistics(self) -> ActorView:
        """How much is yet to be said, and what keeps the oldest of it that has failed."""
        outgoing = [self._attempts[name].outgoing for lane in self._lanes.values() for name in lane.queue]
        view = super().statistics()
        state = f"{len(outgoing)} to say" if outgoing and view.state == "running" else view.state
        return replace(view, state=state, last_error=self._oldest_problem(outgoing) or view.last_error)

    def _oldest_problem(self, outgoing: Iterable[OutboxMessage]) -> str:
        failing = min((each for each in outgoing if each.problem), key=lambda each: each.at, default=None)
        if failing is not None:
            since = f"{max(0.0, self._clock() - failing.at):.0f} s"
            return f"{failing.id} is not delivered for {since}: {failing.problem} (tried {failing.tries} times)"
        if self._unknown:
            return f"there are messages for {', '.join(sorted(self._unknown))}, which is not configured"
        return ""

    def on_start(self) -> None:
        self._load()

    def on_receive(self, message: object) -> None:
        match message:
            case Deliveries() if not self._loaded:
                self._early.extend(message.outgoing)
            case Deliveries():
                self._take(message.outgoing)
            case Load():
                self._load()
            case Loaded():
                self._on_loaded(message)
            case AttemptDone():
                self._on_tried(message)
            case ProgressSaved():
                self._on_noted(message)
            case ContinueLane():
                self._resume(message)
            case ShowTyping():
                self._type(message)
            case ForgetSession():
                self._forget_session(message.session)
            case Drain():
                self._settling.append(self.defer_reply())
                for chat, lane in tuple(self._lanes.items()):
                    self._go_on(chat, lane)
            case _:
                super().on_receive(message)
        self._answer_settled()

    def on_stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for lane in self._lanes.values():
            for live in lane.streams.values():
                live.feed.close()

    def on_failure(self, *_: object) -> None:
        self.on_stop()

    # ------------------------------------------------------------ what is owed

    def _load(self) -> None:
        self._journal.read(
            lambda reader: reader.outbox(),
            lambda outgoing, error: self._tell_self(Loaded(outgoing=outgoing or (), error=error)),
        )

    def _on_loaded(self, loaded: Loaded) -> None:
        if loaded.error is not None:  # whatever is sent before it is known what was sent might be sent twice
            logger.error("the outbox could not be read ({}); nothing is said until it can be", loaded.error)
            self.tell_later(LOAD_AGAIN_S, Load())
            return
        self._loaded = True
        self._take((*loaded.outgoing, *self._early))
        self._early.clear()

    def _take(self, outgoing: Iterable[OutboxMessage]) -> None:
        for each in outgoing:
            platform = self._platforms.get(each.place.platform)
            if platform is None:
                self._complain(each.place.platform)
            elif each.kind is OutboxKind.SIGN:
                self._spawn_quietly(partial(platform.show_waiting, each.place))
            else:
                self._add(each)

    def _complain(self, platform: str) -> None:
        if platform not in self._unknown:
            self._unknown.add(platform)
            logger.warning("there are messages for {}, which is not configured; they wait", platform)

    def _add(self, outgoing: OutboxMessage) -> None:
        courier = self._attempts.get(outgoing.id)
        chat = self._now((outgoing.place.platform, outgoing.place.chat))
        lane = self._lanes.setdefault(chat, Lane())
        if courier is None:
            courier = self._attempts[outgoing.id] = self._sender(outgoing)
        elif outgoing.final:
            courier.settle(outgoing)
        if outgoing.final:
            self._close_stream(lane, outgoing.id)
            if outgoing.id not in lane.queue:
                lane.queue.append(outgoing.id)
        elif outgoing.id not in lane.streams and outgoing.turn is not None and not outgoing.text:
            self._open_stream(chat, lane, outgoing.id, outgoing.turn)
        self._go_on(chat, lane)

    def _forget_session(self, session: SessionId) -> None:
        self._early = [each for each in self._early if each.session != session]
        for chat, lane in self._lanes.items():
            erased = [name for name in lane.queue if self._attempts[name].outgoing.session == session]
            for name in erased:
                if name == lane.busy:
                    self._called_off.add(name)
                else:
                    self._call_off(chat, lane, name)

    def _call_off(self, chat: Chat, lane: Lane, name: str) -> None:
        """Of a session that was erased. What is shown half does not stay so."""
        courier = self._attempts[name]
        self._called_off.discard(name)
        if courier.withdraw():
            self._spawn(courier.keep, lambda _: ContinueLane(chat=chat))
        else:
            self._forget(lane, name)

    def _sender(self, outgoing: OutboxMessage) -> DeliveryAttempt:
        platform = self._platforms[outgoing.place.platform]
        return DeliveryAttempt(
            outgoing, platform=platform, journal=self._journal, clock=self._clock, fresh_after_s=self._fresh_after_s
        )

    # ------------------------------------------------------------ one chat

    def _go_on(self, chat: Chat, lane: Lane) -> None:
        if lane.busy or lane.paused:
            return
        if lane.queue:
            courier = self._attempts[lane.queue[0]]
            self._start(chat, lane, courier, courier.finish, final=True)
        elif not lane.streams:
            del self._lanes[chat]
        elif self._settling:
            self._leave(chat, lane)
        else:
            self._show(chat, lane)

    def _show(self, chat: Chat, lane: Lane) -> None:
        platform = self._platforms[chat[0]]
        if not platform.abilities.edit:
            return
        now = self._clock()
        for name, live in lane.streams.items():
            text = live.stream.shown()
            if not text:
                live.announced = False  # there was nothing to see yet: what comes is to be told again
            if not live.announced:
                continue
            wait_s = live.shown_at + platform.abilities.show_every_s - now
            if wait_s > 0:
                self.tell_later(wait_s, ContinueLane(chat=chat))
                continue
            live.announced = False
            live.shown_at = now
            courier = self._attempts[name]
            self._start(chat, lane, courier, partial(courier.show, text, live.stream.written()), final=False)
            return

    def _leave(self, chat: Chat, lane: Lane) -> None:
        """What is shown of a turn that does not end in this life does not say that more is just coming."""
        for name, live in lane.streams.items():
            courier = self._attempts[name]
            if courier.promises_more and (text := live.stream.written()):
                self._start(chat, lane, courier, partial(courier.show, text, text), final=False)
                return

    def _start(self, chat: Chat, lane: Lane, courier: DeliveryAttempt, work: _Work, *, final: bool) -> None:
        name = lane.busy = courier.outgoing.id
        self._spawn(work, lambda error: AttemptDone(chat=chat, name=name, final=final, error=error))

    def _spawn(self, work: _Work, report: Callable[[HermesError | None], object]) -> None:
        async def run() -> None:
            error: HermesError | None = None
            try:
                await work()
            except HermesError as known:
                error = known
            except Exception as unknown:  # noqa: BLE001 - an adapter's mistake must not silence a chat
                logger.opt(exception=unknown).error("a delivery failed unexpectedly")
                error = DeliveryError(f"unexpectedly: {unknown!r}", arrived_perhaps=True)
            self._tell_self(report(error))

        task = asyncio.create_task(run(), name="delivery")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _on_tried(self, tried: AttemptDone) -> None:
        lane = self._lanes[tried.chat]
        courier = self._attempts[tried.name]
        if tried.error is None or tried.name in self._called_off:
            lane.tries = 0
            if tried.final and tried.error is None:
                self._forget(lane, tried.name)
            elif tried.name in self._called_off:
                self._call_off(tried.chat, lane, tried.name)
            self._free(tried.chat, lane)
        elif isinstance(tried.error, DeliveryError) and tried.error.moved_to and courier.moves <= MAX_MOVES:
            self._move(tried.chat, lane, tried.error.moved_to)
        elif tried.final and is_hopeless(tried.error, courier.outgoing):
            logger.warning("{} cannot be delivered and is a dead letter now: {}", tried.name, tried.error)
            self._note(tried, partial(courier.give_up, str(tried.error)), dropped=True)
        else:
            lane.tries += 1
            self._pause(tried.chat, lane, pause_s(lane.tries, tried.error, self._jitter()))
            if tried.final:
                logger.info("{} is not delivered yet ({}); it is tried again", tried.name, tried.error)
                self._note(tried, partial(courier.note, lane.tries, tried.error), dropped=False)
            else:
                self._free(tried.chat, lane)

    def _note(self, tried: AttemptDone, work: _Work, *, dropped: bool) -> None:
        self._spawn(work, lambda error: ProgressSaved(chat=tried.chat, name=tried.name, dropped=dropped, error=error))

    def _on_noted(self, noted: ProgressSaved) -> None:
        lane = self._lanes[noted.chat]
        if noted.dropped and noted.error is not None:  # it is tried again, but not at once: the disk may be full
            lane.tries += 1
            self._pause(noted.chat, lane, pause_s(lane.tries, noted.error, self._jitter()))
        elif noted.dropped:
            self._forget(lane, noted.name)
        elif noted.name in self._called_off:
            self._call_off(noted.chat, lane, noted.name)
        self._free(noted.chat, lane)

    def _forget(self, lane: Lane, name: str) -> None:
        lane.queue.remove(name)
        del self._attempts[name]
        self._called_off.discard(name)

    def _free(self, chat: Chat, lane: Lane) -> None:
        lane.busy = ""
        self._go_on(chat, lane)

    def _move(self, chat: Chat, lane: Lane, name: str) -> None:
        """The chat is called that now, and what was said to it under that id may be waiting already."""
        lane.busy = ""
        new = self._now((chat[0], name))
        if new != chat:
            del self._lanes[chat]
            self._moved = {was: new if now == chat else now for was, now in self._moved.items()} | {chat: new}
            there = self._lanes.setdefault(new, lane)
            if there is not lane:
                there.take_over(lane)
                lane = there
        self._go_on(new, lane)

    def _now(self, chat: Chat) -> Chat:
        return self._moved.get(chat, chat)

    def _pause(self, chat: Chat, lane: Lane, wait_s: float) -> None:
        lane.paused = True
        self.tell_later(wait_s, ContinueLane(chat=chat, rested=True))

    def _resume(self, go_on: ContinueLane) -> None:
        chat = self._now(go_on.chat)
        lane = self._lanes.get(chat)
        if lane is not None:
            lane.paused = lane.paused and not go_on.rested
            self._go_on(chat, lane)

    # ------------------------------------------------------------ turns that are shown while they run

    def _open_stream(self, chat: Chat, lane: Lane, name: str, turn: TurnId) -> None:
        live = lane.streams[name] = Live(self._hub.subscribe(turn=turn), self._clock())
        live.task = asyncio.create_task(self._follow(chat, name, live), name=f"stream {turn}")
        self._tasks.add(live.task)
        live.task.add_done_callback(self._tasks.discard)
        self._tell_self(ShowTyping(chat=chat, name=name))

    async def _follow(self, chat: Chat, name: str, live: Live) -> None:
        async for event in live.feed:
            if isinstance(event, TurnAnswered | TurnGaveUp):
                break
            live.stream = live.stream.after(event)
            if not live.announced:
                live.announced = True
                self._tell_self(ContinueLane(chat=chat))
        live.feed.close()
        lane = self._lanes.get(self._now(chat))
        if lane is not None and lane.streams.get(name) is live:
            del lane.streams[name]

    def _close_stream(self, lane: Lane, name: str) -> None:
        live = lane.streams.pop(name, None)
        if live is not None:
            live.feed.close()

    def _type(self, shown: ShowTyping) -> None:
        """Show that somebody is at it, for as long as somebody is."""
        lane, platform = self._lanes.get(self._now(shown.chat)), self._platforms[shown.chat[0]]
        live = lane.streams.get(shown.name) if lane is not None else None
        if live is None or not platform.abilities.typing:
            return
        if not live.stream.asking:
            self._spawn_quietly(partial(platform.show_typing, self._attempts[shown.name].outgoing.place))
        self.tell_later(TYPING_EVERY_S, shown)

    def _spawn_quietly(self, work: _Work) -> None:
        async def run() -> None:
            with suppress(DeliveryError):  # nobody misses it
                await work()

        task = asyncio.create_task(run(), name="sign")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ------------------------------------------------------------ the end

    def _answer_settled(self) -> None:
        if not self._settling or not self._loaded:
            return
        if any(lane.busy or (lane.queue and not lane.paused) for lane in self._lanes.values()):
            return
        for waiting in self._settling:
            waiting.settle(None)
        self._settling = []

    def _tell_self(self, message: object) -> None:
        with suppress(ActorDeadError):  # it has ended: what is owed is in the outbox
            self.actor_ref.tell(message)
