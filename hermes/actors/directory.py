"""Session directory: resolves an address to the live actor of its session.

Callers address a session and never create one. The directory activates it on its first message, passivates it when it
is idle, and restarts it after a crash. All mail for sessions passes here, so a session that is leaving memory or
restarting loses none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from loguru import logger

from hermes.actors.directory_protocol import (
    AnnounceStopToAll,
    BringBack,
    Configure,
    FoundPending,
    Peek,
    Release,
    Routed,
    SessionGlance,
    Sweep,
    found_pending,
)
from hermes.actors.kernel.actor import ActorDied, LoopActor
from hermes.actors.kernel.future import LoopFuture
from hermes.actors.reset.after_reset import AfterReset
from hermes.actors.reset.reset_rules import ResetRules
from hermes.actors.session.session import SessionActor
from hermes.actors.session.session_crash import SessionCrashes
from hermes.actors.session.session_limits import SessionLimits, SharedFact, read_shared_facts
from hermes.actors.session.session_mail import (
    ApproverPlaces,
    Born,
    Granted,
    MayLeave,
    Outdated,
    Post,
    Returned,
    Revoked,
    SessionServices,
    StayedBusy,
    Succeeded,
    fail,
)
from hermes.actors.session.session_registry import SessionRegistry
from hermes.domain.cause.cause import InterruptionCause
from hermes.domain.child.child import ChildDuty
from hermes.domain.directory.directory_settings import DirectorySettings
from hermes.domain.directory.eviction import SteadyClock, evictable
from hermes.domain.errors import HermesError, UnknownSessionError
from hermes.domain.ids import SessionId, SessionKey
from hermes.domain.operations import ForgetSeen
from hermes.domain.outbox_message import OutboxMessage
from hermes.domain.process.process_record import Heartbeat
from hermes.domain.read.lineage import CLOSED_PHASES, Address, Route, find_route
from hermes.domain.session.opening import may_open, no_open_session, open_session
from hermes.domain.session.protocol import AnnounceStop, Begin, Recover
from hermes.domain.session.state import Session, is_pending
from hermes.domain.session.transaction import restorations
from hermes.domain.text.listing import counted, some
from hermes.domain.turn.submission import Submission
from hermes.domain.values import replace
from hermes.ports.agent import Agent
from hermes.ports.given import Clock, IdSource
from hermes.ports.hub import Hub
from hermes.ports.storage import Journal
from hermes.ports.supervision import RestartPolicy
from hermes.system.crash_point import reach

SWEEP_EVERY_S = 5.0
RECOVER_EVERY_S = 0.05  # between two slices of the recovery
SEEN_PER_SWEEP = 1000


class SessionDirectory(LoopActor):
    kind = "directory"

    def __init__(
        self,
        *,
        settings: DirectorySettings,
        journal: Journal,
        agent: Agent,
        hub: Hub,
        clock: Clock,
        identity: IdSource,
        restart_policy: RestartPolicy,
        memory_bytes: Callable[[], int],
        resets: ResetRules,
        was_reset: AfterReset,
        deliver: Callable[[Sequence[OutboxMessage]], None],
        start_children: Callable[[Sequence[ChildDuty]], None],
        heads: dict[SessionId, Session],
    ) -> None:
        super().__init__()
        self._settings = settings
        self._journal = journal
        self._clock = clock
        self._identity = identity
        self._memory_bytes = memory_bytes
        self._crashes = SessionCrashes(restart_policy, journal=journal, hub=hub, clock=clock)
        self._limits = SessionLimits(settings.limits)
        self._stopping: AnnounceStop | None = None
        self._registry = SessionRegistry()
        self._outdated: set[SessionId] = set()  # leaving memory; must be read again
        self._steady = SteadyClock(clock())
        self._resolving: dict[Address, list[Post]] = {}
        self._services = SessionServices(
            journal=journal,
            agent=agent,
            hub=hub,
            clock=clock,
            new_session=identity.session,
            tell_directory=self.tell_self,
            limits=self._limits,
            resets=resets,
            was_reset=was_reset,
            deliver=deliver,
            start_children=start_children,
            heads=heads,
        )

    def on_start(self) -> None:
        self._journal.read(read_shared_facts, self._on_facts_read)
        if self._settings.take_up:
            self._find_pending()
        self.tell_later(SWEEP_EVERY_S, Sweep())

    def _on_facts_read(self, known: tuple[SharedFact, ...] | None, error: HermesError | None) -> None:
        for each in (error,) if error is not None else known or ():
            self.tell_self(each)

    def _find_pending(self) -> None:
        look = self._registry.look()

        def tell(routes: list[Route] | None, error: HermesError | None) -> None:
            found = found_pending(look, routes or [])
            if found.heads:
                held = f"turns that were cut off wait for a message ({self._settings.hold})"
                then = held if self._settings.hold else "it is taken up"
                what = counted(len(found.heads), "session has", "sessions have")
                logger.info("{} open work; {}: {}", what, then, some([head.id for head in found.heads]))
            self.tell_self(error or found)

        self._journal.read(
            lambda reader: [find_route(reader, Address(session=id_, exact=True)) for id_ in reader.pending()], tell
        )

    def on_receive(self, message: object) -> object:
        match message:
            case Post():
                self._dispatch(replace(message, reply=self.defer_reply()))
            case Routed():
                self._on_routed(message)
            case ActorDied():
                self._on_died(message)
            case Returned():
                self._on_returned(message)
            case BringBack():
                self._bring_back(message.session)
            case FoundPending():
                self._recover(message)
            case Sweep():
                self._sweep()
            case HermesError():
                raise message
            case Born() | Outdated() | Succeeded() | StayedBusy() | MayLeave() | Heartbeat():
                self._on_report(message)
            case Granted() | Revoked() | ApproverPlaces():
                self._limits.note(message)
            case _:
                return self._on_request(message)
        return None

    def _on_report(self, message: Born | Outdated | Succeeded | StayedBusy | MayLeave | Heartbeat) -> None:
        """Handle what a session reports about itself, or a process actor to its session."""
        match message:
            case Born():
                self._registry.is_born(message.session)
            case Outdated():
                self._outdated.add(message.session)
            case Succeeded():
                self._on_succeeded(message)
            case StayedBusy():
                self._registry.stays(message.session, self._clock())
            case MayLeave():
                self._registry.dismiss(message.session)
            case Heartbeat():
                if not self._registry.tell_live(message.process.session, message):
                    self._services.resets.receive(message)

    def _on_request(self, message: object) -> object:
        match message:
            case AnnounceStopToAll():
                self._announce_stop(message.stop, self.defer_reply())
            case Release():
                self._registry.release(message.session, self.defer_reply())
            case Peek():
                mailbox = self._registry.mailbox(message.session)
                return SessionGlance(mailbox=mailbox, parked=self._crashes.parked(message.session))
            case Configure():
                if message.settings.take_up and not self._settings.take_up:
                    self._find_pending()
                self._settings = message.settings
                self._limits.configure(message.settings.limits)
            case _:
                super().on_receive(message)
        return None

    # ------------------------------------------------------------ from address to actor

    def _dispatch(self, post: Post) -> None:
        address = post.address
        if address in self._resolving:
            self._resolving[address].append(post)
        elif address.session is not None and self._registry.is_live(address.session):
            self._hand_over(address.session, post)
        elif (unborn := self._registry.unborn(address.key)) is not None:
            self._hand_over(unborn, post)
        elif address.session is None and address.key is None:
            self._start_fresh(post, None)
        else:
            self._resolving[address] = [post]
            self._read_route(address)

    def _read_route(self, address: Address) -> None:
        look = self._registry.look()
        self._journal.read(
            lambda reader: find_route(reader, address),
            lambda route, error: self.tell_self(
                Routed(address=address, look=look, route=route or Route(), error=error)
            ),
        )

    def _on_routed(self, routed: Routed) -> None:
        if routed.route.damaged and routed.error is None:
            self._repair(routed)
            return
        if routed.look.is_outdated(routed.route.head):
            self._read_route(routed.address)
            return
        first, *others = self._resolving.pop(routed.address)
        if routed.error is None:
            self._deliver_or_start(first, routed.route.head)
            for post in others:  # resolve again: the first may have created what was missing
                self._dispatch(post)
            return
        for post in (first, *others):
            fail(post, routed.error)

    def _repair(self, routed: Routed) -> None:
        """Store the rows that were rebuilt from the log, then continue."""
        for session in routed.route.damaged:
            logger.error("session {}: row damaged, rebuilt from its log", session.id)
        rows = restorations(routed.route.damaged, self._journal.epoch, self._clock(), self._services.resets.due)
        mended = replace(routed, route=replace(routed.route, damaged=()))
        self._journal.commit(rows, lambda error: self.tell_self(replace(mended, error=error)))

    def _deliver_or_start(self, post: Post, head: Session | None) -> None:
        meant = post.address.session if head is None else head.id  # one that is not stored yet has only its id
        if meant is not None and meant in self._registry:
            self._hand_over(meant, post)
        elif head is not None and self._crashes.parked(head.id):
            if self._crashes.pardon(head, post):
                self._activate(head, InterruptionCause.ACTOR_CRASH)
                if post.reply is not None:
                    post.reply.settle(head)
        elif isinstance(post.event, Submission | Begin) and (head is None or head.phase in CLOSED_PHASES):
            if may_open(post.event, head):
                self._start_fresh(post, head)
            else:
                fail(post, no_open_session(post.address, head))
        elif head is None:
            fail(post, UnknownSessionError(f"there is no session {post.address.session or post.address.key}"))
        else:
            self._activate(head, self._crashes.interruption(head.id))
            self._hand_over(head.id, post)

    def _hand_over(self, session: SessionId, post: Post) -> None:
        self._registry.hand_over(session, post, self._clock())

    # ------------------------------------------------------------ activation

    def _recover(self, found: FoundPending) -> None:
        """Resume work that was open when the daemon stopped: the oldest first, within the allowed rate.

        A message to one of these sessions activates it immediately.
        """
        if self._stopping:
            return  # a session started now would only be interrupted again
        at_once = max(1, round(self._settings.resume_per_s * RECOVER_EVERY_S))
        for head in found.heads[:at_once]:
            if head.id in self._registry:
                continue
            if found.look.is_outdated(head):
                self._bring_back(head.id)
            else:
                self._activate(head, self._crashes.interruption(head.id))
        if len(found.heads) > at_once:
            self.tell_later(RECOVER_EVERY_S, replace(found, heads=found.heads[at_once:]))

    def _activate(self, head: Session, interruption: InterruptionCause) -> None:
        self._start_actor(head, recovery=Recover(cause=interruption, hold=self._settings.hold))

    def _start_fresh(self, post: Post, parent: Session | None) -> None:
        assert isinstance(post.event, Submission | Begin)
        now = self._clock()
        opening = open_session(
            fresh_id=self._identity.session(now),
            address=post.address,
            event=post.event,
            parent=parent,
            epoch=self._journal.epoch,
            now=now,
        )
        self._start_actor(opening.session, post.address.key, opening=(opening.started,), alongside=opening.alongside)
        self._hand_over(opening.session.id, replace(post, notice=opening.notice))

    def _start_actor(self, session: Session, key: SessionKey | None = None, **how: Any) -> None:
        ref = SessionActor.start(
            self._services, session, stopping=self._stopping, name=session.id, owner=self.actor_ref, **how
        )
        self._registry.enter(session.id, ref, self._clock(), key)

    # ------------------------------------------------------------ ends

    def _on_died(self, died: ActorDied) -> None:
        self._services.heads.pop(session := SessionId(died.name), None)
        unhandled = (post for post in died.unhandled if isinstance(post, Post) and post.reply is not None)
        mail = [*unhandled, *self._registry.has_left(session)]
        if died.cause is not None:
            pause_s = self._crashes.judge(session, died, mail)
            self._registry.comes_back(session, mail)
            self.tell_later(pause_s, BringBack(session=session))
        elif session in self._outdated:
            self._outdated.discard(session)
            self._registry.comes_back(session, mail)
            self._bring_back(session)
        else:
            reach("session: gone from memory")
            for post in mail:
                self._dispatch(post)

    def _bring_back(self, session: SessionId) -> None:
        """Bring the session back from disk, if it has open work, and its mail with it."""
        look = self._registry.look()
        for post in self._registry.mail_for(session):
            self._dispatch(post)  # its key may mean another session by now
        if not self._crashes.parked(session):
            self._journal.read(
                lambda reader: [find_route(reader, Address(session=session, exact=True))],
                lambda routes, error: self.tell_self(error or found_pending(look, routes or [])),
            )

    def _on_returned(self, returned: Returned) -> None:
        """Route a returned message again. A session that has ended leaves memory first."""
        if self._registry.is_away(returned.session):
            self._hand_over(returned.session, returned.post)
        elif returned.moved and self._registry.is_live(returned.session):
            self._registry.dismiss(returned.session, [returned.post])
        else:
            self._dispatch(returned.post)

    def _on_succeeded(self, succeeded: Succeeded) -> None:
        """Activate the session that continues the open work of one that has ended."""
        self._registry.dismiss(succeeded.session)
        child = succeeded.child
        if is_pending(child) and child.id not in self._registry:
            self._activate(child, InterruptionCause.UNKNOWN)

    # ------------------------------------------------------------ leaving memory

    def _sweep(self) -> None:
        now = self._clock()
        for session in evictable(self._registry.touched(), now, self._settings, self._memory_bytes()):
            self._registry.dismiss(session)
        self._crashes.forget_old(now)
        if self._steady.is_steady(now):
            forget = ForgetSeen(before=now - self._settings.seen_for_s, limit=SEEN_PER_SWEEP)
            self._journal.commit((forget,), _log_error)
        self.tell_later(SWEEP_EVERY_S, Sweep())

    def _announce_stop(self, stop: AnnounceStop, done: LoopFuture) -> None:
        """Have every session mark its work in flight; answer when the last one has it on disk."""
        self._stopping = stop
        marks: list[LoopFuture] = []
        for session in self._registry.sessions():
            marks.append(LoopFuture())
            address = Address(session=session, exact=True)
            self._hand_over(session, Post(event=stop, reply=marks[-1], address=address))
        done.settle(marks)

    def on_end(self) -> None:
        for ref in self._registry.refs():
            ref.stop(block=False)


def _log_error(error: HermesError | None) -> None:
    if error is not None:
        logger.warning("directory: sweep could not write: {}", error)
