"""Delivery actor: sends the outbox messages to chat platforms, in order in each chat, until they are confirmed.

It holds what the outbox holds. A chat that cannot be reached is retried with backoff and does not delay other chats.
Messages for a chat that is gone become dead letters. A chat that has moved goes on under its new id, in the same
order. While a turn runs, its growing reply is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from loguru import logger

from hermes.actors.delivery.attempt import DeliveryAttempt
from hermes.actors.delivery.attempt_tasks import AttemptTasks, Work
from hermes.actors.delivery.delivery_protocol import (
    AttemptDone,
    Chat,
    ContinueLane,
    Deliveries,
    Drain,
    DropMessage,
    DropOutcome,
    DroppedMessage,
    FailedAttempt,
    ForgetSession,
    Load,
    ShowTyping,
)
from hermes.actors.delivery.lane import MAX_MOVES, Lane, Live, is_hopeless, oldest_problem, pause_s
from hermes.actors.kernel.future import LoopFuture
from hermes.actors.kernel.journaled import JournaledActor, LoadState
from hermes.domain.errors import DeliveryError, HermesError
from hermes.domain.events import TurnAnswered, TurnGaveUp
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.outbox_message import OutboxKind, OutboxMessage
from hermes.domain.read.views import ActorView
from hermes.domain.values import replace
from hermes.ports.chat import Platform
from hermes.ports.given import Clock
from hermes.ports.hub import Hub
from hermes.ports.storage import Journal

TYPING_EVERY_S = 4.0
LOAD_AGAIN_S = 1.0

_Mail: TypeAlias = FailedAttempt | DroppedMessage


class DeliveryActor(JournaledActor[_Mail, None]):
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
        super().__init__(journal)
        self._platforms = platforms
        self._hub = hub
        self._clock = clock
        self._jitter = jitter  # between 0 and 1
        self._fresh_after_s = fresh_after_s  # see DeliveryAttempt
        self._attempts: dict[str, DeliveryAttempt] = {}
        self._lanes: dict[Chat, Lane] = {}
        self._moved: dict[Chat, Chat] = {}  # current chat by its earlier id
        self._tasks = AttemptTasks(self.tell_self)
        self._unknown: set[str] = set()  # platforms that are not configured
        self._withdrawn: set[str] = set()  # messages of erased sessions that were being sent
        self._drains: list[LoopFuture] = []
        self._early: list[OutboxMessage] = []  # arrived before the outbox was loaded

    def statistics(self) -> ActorView:
        """Return the usual figures, with the number of undelivered messages and the oldest failure."""
        outgoing = [self._attempts[name].outgoing for lane in self._lanes.values() for name in lane.queue]
        view = super().statistics()
        state = f"{len(outgoing)} to say" if outgoing and view.state == "running" else view.state
        problem = oldest_problem(outgoing, self._clock())
        if not problem and self._unknown:
            problem = f"there are messages for {', '.join(sorted(self._unknown))}, which is not configured"
        return replace(view, state=state, last_error=problem or view.last_error)

    def on_start(self) -> None:
        self._load()

    def handle(self, message: object) -> None:
        match message:
            case Deliveries() if self.load_state is not LoadState.LOADED:
                self._early.extend(message.outgoing)
            case Deliveries():
                self._add_all(message.outgoing)
            case Load():
                self._load()
            case AttemptDone():
                self._on_attempt_done(message)
            case ContinueLane():
                self._continue_lane(message)
            case ShowTyping():
                self._show_typing(message)
            case ForgetSession():
                self._forget_session(message.session)
            case DropMessage():
                self._drop_on_request(message, self.defer_reply())
            case Drain():
                self._drains.append(self.defer_reply())
                for chat, lane in tuple(self._lanes.items()):
                    self._start_next(chat, lane)
            case _:
                super().handle(message)
        self._answer_drains()

    def on_end(self) -> None:
        self._tasks.cancel()
        for lane in self._lanes.values():
            for live in lane.streams.values():
                live.feed.close()

    # ------------------------------------------------------------ the outbox

    def _load(self) -> None:
        self.load(lambda reader: reader.outbox())

    def on_loaded(self, found: Sequence[OutboxMessage] | None) -> None:
        self._add_all((*(found or ()), *self._early))
        self._early.clear()

    def on_load_failed(self, error: HermesError) -> None:
        """Send nothing: messages that were sent before might be sent twice."""
        logger.error("delivery: could not read the outbox, retrying every {:.0f} s: {}", LOAD_AGAIN_S, error)
        self.tell_later(LOAD_AGAIN_S, Load())

    def on_ready(self) -> None:
        self._answer_drains()

    def _add_all(self, outgoing: Iterable[OutboxMessage]) -> None:
        for each in outgoing:
            platform = self._platforms.get(each.place.platform)
            if platform is None:
                self._warn_unconfigured(each.place.platform)
            elif each.kind is OutboxKind.SIGN:
                self._tasks.sign(partial(platform.show_waiting, each.place))
            else:
                self._add(each)

    def _warn_unconfigured(self, platform: str) -> None:
        if platform not in self._unknown:
            self._unknown.add(platform)
            logger.warning("delivery: platform {} is not configured; its messages wait", platform)

    def _add(self, outgoing: OutboxMessage) -> None:
        attempt = self._attempts.get(outgoing.id)
        chat = self._current_chat((outgoing.place.platform, outgoing.place.chat))
        lane = self._lanes.setdefault(chat, Lane())
        if attempt is None:
            attempt = self._attempts[outgoing.id] = self._new_attempt(outgoing)
        elif outgoing.final:
            attempt.settle(outgoing)
        if outgoing.final:
            self._close_stream(lane, outgoing.id)
            if outgoing.id not in lane.queue:
                lane.queue.append(outgoing.id)
        elif outgoing.id not in lane.streams and outgoing.turn is not None and not outgoing.text:
            self._open_stream(chat, lane, outgoing.id, outgoing.turn)
        self._start_next(chat, lane)

    def _forget_session(self, session: SessionId) -> None:
        self._early = [each for each in self._early if each.session != session]
        for chat, lane in self._lanes.items():
            erased = [name for name in lane.queue if self._attempts[name].outgoing.session == session]
            for name in erased:
                if name == lane.busy:
                    self._withdrawn.add(name)
                else:
                    self._withdraw(chat, lane, name)

    def _withdraw(self, chat: Chat, lane: Lane, name: str) -> None:
        """Withdraw a message of an erased session. A half-shown reply is replaced by a note."""
        attempt = self._attempts[name]
        self._withdrawn.discard(name)
        if attempt.withdraw():
            self._tasks.attempt(attempt.keep, lambda _: ContinueLane(chat=chat))
        else:
            self._drop(lane, name)

    def _new_attempt(self, outgoing: OutboxMessage) -> DeliveryAttempt:
        platform = self._platforms[outgoing.place.platform]
        return DeliveryAttempt(
            outgoing, platform=platform, journal=self.journal, clock=self._clock, fresh_after_s=self._fresh_after_s
        )

    # ------------------------------------------------------------ one chat

    def _start_next(self, chat: Chat, lane: Lane) -> None:
        if lane.busy or lane.paused:
            return
        if lane.queue:
            attempt = self._attempts[lane.queue[0]]
            self._start(chat, lane, attempt, attempt.finish, final=True)
        elif not lane.streams:
            del self._lanes[chat]
        elif self._drains:
            self._finish_previews(chat, lane)
        else:
            self._show_growing_reply(chat, lane)

    def _show_growing_reply(self, chat: Chat, lane: Lane) -> None:
        platform = self._platforms[chat[0]]
        if not platform.abilities.edit:
            return
        now = self._clock()
        for name, live in lane.streams.items():
            text = live.stream.shown()
            if not text:
                live.announced = False  # nothing to show yet: the next text is announced again
            if not live.announced:
                continue
            wait_s = live.shown_at + platform.abilities.show_every_s - now
            if wait_s > 0:
                self.tell_later(wait_s, ContinueLane(chat=chat))
                continue
            live.announced = False
            live.shown_at = now
            attempt = self._attempts[name]
            self._start(chat, lane, attempt, partial(attempt.show, text, live.stream.written()), final=False)
            return

    def _finish_previews(self, chat: Chat, lane: Lane) -> None:
        """Remove the sign that more text follows from replies whose turn does not end before the stop."""
        for name, live in lane.streams.items():
            attempt = self._attempts[name]
            if attempt.promises_more and (text := live.stream.written()):
                self._start(chat, lane, attempt, partial(attempt.show, text, text), final=False)
                return

    def _start(self, chat: Chat, lane: Lane, attempt: DeliveryAttempt, work: Work, *, final: bool) -> None:
        name = lane.busy = attempt.outgoing.id
        self._tasks.attempt(work, lambda error: AttemptDone(chat=chat, name=name, final=final, error=error))

    def _on_attempt_done(self, done: AttemptDone) -> None:
        lane = self._lanes[done.chat]
        attempt = self._attempts[done.name]
        if done.error is None or done.name in self._withdrawn:
            lane.tries = 0
            if done.final and done.error is None:
                self._drop(lane, done.name)
            elif done.name in self._withdrawn:
                self._withdraw(done.chat, lane, done.name)
            self._release_lane(done.chat, lane)
        elif isinstance(done.error, DeliveryError) and done.error.moved_to and attempt.moves <= MAX_MOVES:
            self._move(done.chat, lane, done.error.moved_to)
        elif done.final and is_hopeless(done.error, attempt.outgoing):
            logger.warning("delivery: {} failed for good and is kept as a dead letter: {}", done.name, done.error)
            failed = FailedAttempt(chat=done.chat, name=done.name, hopeless=True)
            self.persist(failed, None, attempt.give_up(str(done.error)))
        else:
            lane.tries += 1
            self._pause(done.chat, lane, pause_s(lane.tries, done.error, self._jitter()))
            if done.final:
                logger.info("delivery: {} failed, retrying: {}", done.name, done.error)
                failed = FailedAttempt(chat=done.chat, name=done.name, hopeless=False)
                self.persist(failed, None, attempt.note(lane.tries, done.error))
            else:
                self._release_lane(done.chat, lane)

    def is_awaited(self, mail: _Mail) -> bool:  # noqa: ARG002 - the hook's signature
        return True  # by its chat, which goes on whether or not the failure is stored

    def on_refused(self, mail: _Mail, error: HermesError) -> None:
        if isinstance(mail, DroppedMessage):
            mail.reply.settle(None, error)
            return
        lane = self._lanes[mail.chat]
        if mail.hopeless:  # retried after a pause: the disk may be full
            lane.tries += 1
            self._pause(mail.chat, lane, pause_s(lane.tries, error, self._jitter()))
            self._release_lane(mail.chat, lane)
        else:
            self._go_on(mail)

    def on_persisted(self, mail: _Mail, step: None) -> None:  # noqa: ARG002 - the hook's signature
        if isinstance(mail, DroppedMessage):
            self._on_dropped(mail)
            return
        if mail.hopeless:
            self._drop(self._lanes[mail.chat], mail.name)
        self._go_on(mail)

    def _drop_on_request(self, wish: DropMessage, reply: LoopFuture) -> None:
        attempt = self._attempts.get(wish.name)
        chat = next((chat for chat, lane in self._lanes.items() if wish.name in lane.queue), None)
        if self.load_state is LoadState.LOADED and attempt is None:
            reply.settle(DropOutcome.ABSENT)
        elif attempt is None or chat is None or self._lanes[chat].busy == wish.name:
            reply.settle(DropOutcome.BUSY)
        else:
            dropped = DroppedMessage(chat=chat, name=wish.name, reply=reply)
            self.persist(dropped, None, attempt.give_up(f"dropped by {wish.by}"))

    def _on_dropped(self, dropped: DroppedMessage) -> None:
        lane = self._lanes[dropped.chat]
        if lane.queue[0] == dropped.name:  # the chat waited because of it
            lane.paused, lane.tries = False, 0
        self._drop(lane, dropped.name)
        self._start_next(dropped.chat, lane)
        dropped.reply.settle(DropOutcome.DROPPED)

    def _go_on(self, failed: FailedAttempt) -> None:
        lane = self._lanes[failed.chat]
        if failed.name in self._withdrawn:
            self._withdraw(failed.chat, lane, failed.name)
        self._release_lane(failed.chat, lane)

    def _drop(self, lane: Lane, name: str) -> None:
        lane.queue.remove(name)
        del self._attempts[name]
        self._withdrawn.discard(name)

    def _release_lane(self, chat: Chat, lane: Lane) -> None:
        lane.busy = ""
        self._start_next(chat, lane)

    def _move(self, chat: Chat, lane: Lane, name: str) -> None:
        """Rename the lane of a chat that has moved, and merge it with the lane of the new id."""
        lane.busy = ""
        new = self._current_chat((chat[0], name))
        if new != chat:
            del self._lanes[chat]
            self._moved = {was: new if now == chat else now for was, now in self._moved.items()} | {chat: new}
            there = self._lanes.setdefault(new, lane)
            if there is not lane:
                there.take_over(lane)
                lane = there
        self._start_next(new, lane)

    def _current_chat(self, chat: Chat) -> Chat:
        return self._moved.get(chat, chat)

    def _pause(self, chat: Chat, lane: Lane, wait_s: float) -> None:
        lane.paused = True
        self.tell_later(wait_s, ContinueLane(chat=chat, rested=True))

    def _continue_lane(self, go_on: ContinueLane) -> None:
        chat = self._current_chat(go_on.chat)
        lane = self._lanes.get(chat)
        if lane is not None:
            lane.paused = lane.paused and not go_on.rested
            self._start_next(chat, lane)

    # ------------------------------------------------------------ turns that are shown while they run

    def _open_stream(self, chat: Chat, lane: Lane, name: str, turn: TurnId) -> None:
        live = lane.streams[name] = Live(self._hub.subscribe(turn=turn), self._clock())
        live.task = self._tasks.start(self._follow_turn(chat, name, live), name=f"stream {turn}")
        self.tell_self(ShowTyping(chat=chat, name=name))

    async def _follow_turn(self, chat: Chat, name: str, live: Live) -> None:
        async for event in live.feed:
            if isinstance(event, TurnAnswered | TurnGaveUp):
                break
            live.stream = live.stream.after(event)
            if not live.announced:
                live.announced = True
                self.tell_self(ContinueLane(chat=chat))
        live.feed.close()
        lane = self._lanes.get(self._current_chat(chat))
        if lane is not None and lane.streams.get(name) is live:
            del lane.streams[name]

    def _close_stream(self, lane: Lane, name: str) -> None:
        live = lane.streams.pop(name, None)
        if live is not None:
            live.feed.close()

    def _show_typing(self, shown: ShowTyping) -> None:
        """Show the typing sign while the turn runs."""
        lane, platform = self._lanes.get(self._current_chat(shown.chat)), self._platforms[shown.chat[0]]
        live = lane.streams.get(shown.name) if lane is not None else None
        if live is None or not platform.abilities.typing:
            return
        if not live.stream.asking:
            self._tasks.sign(partial(platform.show_typing, self._attempts[shown.name].outgoing.place))
        self.tell_later(TYPING_EVERY_S, shown)

    # ------------------------------------------------------------ the end

    def _answer_drains(self) -> None:
        if not self._drains or self.load_state is not LoadState.LOADED:
            return
        if any(lane.busy or (lane.queue and not lane.paused) for lane in self._lanes.values()):
            return
        for waiting in self._drains:
            waiting.settle(None)
        self._drains = []
