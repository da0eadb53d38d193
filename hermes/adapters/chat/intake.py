"""The edge that all chat platforms share: takes in what people do there, and returns when it is on disk.

A message becomes a turn, a command is carried out at once, a button answers the question it stands under. Each is
taken once, whatever the platform delivers again. What is said in return is an obligation, never sent from here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from loguru import logger

from hermes.adapters.chat.access import AccessControl
from hermes.adapters.chat.coalescing import WAIT_S, Bursts, is_cut_off
from hermes.adapters.chat.confirmation import Confirmations
from hermes.adapters.chat.conversation_key import conversation_key, is_shared
from hermes.adapters.chat.moved import MovedChats
from hermes.adapters.chat.speaker import as_shown, company_of, guarded, named, shown_name
from hermes.domain import fence
from hermes.domain.access import approver_chat
from hermes.domain.access.question import Question, asked_by, button_token, command_token, waiting_call
from hermes.domain.access.role import Role
from hermes.domain.errors import BusyError, QueueFullError, RefusedError, StoppingError, UnknownSessionError
from hermes.domain.media_reference import user_message
from hermes.domain.submission import Receipt, Submission
from hermes.domain.types import (
    EncodedMessage,
    InboundKey,
    OutboxKind,
    OutboxMessage,
    Place,
    Seen,
    Session,
    SessionId,
    SessionKey,
    Source,
    TurnId,
)
from hermes.ports.chat import Abilities, ChatEdge, Foreign, ForeignKind, Inbound, Outbox
from hermes.ports.given import Clock
from hermes.ports.sessions import Sessions
from hermes.services.commands.registry import Parsed, Unknown, parse
from hermes.services.commands.reply import CommandCaller
from hermes.services.commands.service import CommandService
from hermes.system.crash_point import reach

_BUSY_PAUSE_S = 0.5
_BUSY_TRIES = 4
_FULL_SAID_S = 30.0
_FULL_KNOWN = 1000
_NOTED = "chat.noted:"  # how the names of facts begin that are an adapter's

_NOT_YOURS = "This question is for whoever began the conversation."
_OVER = "This question is not open any more."
_NOT_YOURS_OR_OVER = "This question is for whoever began the conversation, or is not open any more."
_FOR_ADMINS = "Only the owner and the admins of this Hermes may answer this."


class ChatIntake(ChatEdge):
    def __init__(
        self,
        *,
        sessions: Sessions,
        outbox: Outbox,
        commands: CommandService,
        door: AccessControl,
        moved: MovedChats,
        new_turn_id: Callable[[], TurnId],
        clock: Clock,
        alive: Callable[[], None],
        trouble: Callable[[str, str], None] = lambda _part, _problem: None,
        per_user: bool = True,
        abilities: Abilities = Abilities(),  # noqa: B008 - a value
        compose: Callable[[Inbound, str], Awaitable[EncodedMessage]] | None = None,
        new_marker: Callable[[], str] = fence.new_marker,
    ) -> None:
        self._sessions = sessions
        self._outbox = outbox
        self._commands = commands
        self._door = door
        self._moved = moved
        self._new_turn_id = new_turn_id
        self._clock = clock
        self._per_user = per_user  # in a group each person has a conversation of their own
        self._abilities = abilities  # of the platform
        self._bursts = Bursts()
        self._confirmations = Confirmations()
        self._full_said: dict[SessionKey, float] = {}  # when somebody was told last that nothing more is taken
        self._compose = compose or _compose  # what a person sent, as a message for a model
        self._private: dict[str, bytes] = {}  # the admins' private chats, as they are on disk
        self._new_marker = new_marker  # of the fences in one message
        self._alive = alive
        self._trouble = trouble

    def alive(self) -> None:
        self._alive()

    def trouble(self, part: str, problem: str) -> None:
        self._trouble(part, problem)

    async def take(self, inbound: Inbound) -> str:
        reach("chat: received")
        key = conversation_key(inbound, group_sessions_per_user=self._per_user)
        aside = ""
        role = await self._door.role(inbound)
        if role is Role.ADMIN and inbound.chat_type == "dm":
            await self._note_private(inbound)
        if role is None:
            await self._door.turn_away(inbound)
            aside = _NOT_YOURS if inbound.answers else ""
        elif inbound.answers:
            aside = await self._pressed(inbound, key, role)
        elif inbound.edited:
            await self._rewrite(inbound, key, role)
        elif inbound.deleted:
            await self._take_back(inbound, key)
        elif not inbound.forwarded and (command := self._parsed(inbound, key)) is not None:
            await self._command(inbound, key, command, role)
        else:
            await self._message(inbound, key, role)
        reach("chat: taken, not confirmed")
        return aside

    async def _note_private(self, inbound: Inbound) -> None:
        """Remember where an admin can be asked."""
        name = approver_chat.fact_of(inbound.place.platform, inbound.user)
        place = approver_chat.encode(inbound.place)
        if self._private.get(name) != place:
            if await self._sessions.fact(name) != place:
                await self._sessions.remember(name, place)
            self._private[name] = place

    async def chat_moved(self, old: str, new: str) -> None:
        await self._moved.note(old, new)

    async def former_id(self, chat: str) -> str:
        return await self._moved.former_id(chat)

    async def places(self, platform: str, most: int) -> list[Place]:
        places = [each.place for each in await self._sessions.recent(most)]
        return [place for place in places if place is not None and place.platform == platform]

    async def noted(self, name: str) -> bytes | None:
        return await self._sessions.fact(f"{_NOTED}{name}")

    async def note(self, name: str, value: bytes) -> None:
        await self._sessions.remember(f"{_NOTED}{name}", value)

    # ------------------------------------------------------------ messages

    async def _message(self, inbound: Inbound, key: SessionKey, role: Role) -> None:
        inbound = await self._unheard(inbound)
        who, now = (key, inbound.user), self._clock()
        more = is_cut_off(inbound.text, self._abilities.splits_at)
        message, changed = await self._for_model(inbound)
        submission = Submission(
            turn=self._new_turn_id(),
            messages=(message,),
            source=self._source(inbound, role),
            key=key,
            inbound=inbound.id,
            also=tuple(piece for piece in inbound.pieces if piece != inbound.id),
            joins=self._bursts.take_up(who, now),
            more_s=WAIT_S if more else 0.0,
            said=inbound.text if changed and not inbound.attachments else "",
            may_answer=not inbound.forwarded,
        )
        try:
            receipt = await self._submit(submission)
        except StoppingError:
            raise  # it stays with the platform, and comes again
        except QueueFullError as error:
            await self._say_full(inbound, key, error, now)
            return
        except RefusedError as error:  # trying again would not help: the person has to know
            await self._say(inbound, f"refused:{inbound.id}", f"Your message was not taken: {error}")
            return
        if more:
            self._bursts.expect(who, receipt.turn, now)
        if receipt.notice and not receipt.duplicate:
            await self._say(inbound, f"notice:{inbound.id}", receipt.notice)

    async def _for_model(self, inbound: Inbound) -> tuple[EncodedMessage, bool]:
        """The message as a model is shown it, and whether its text has more than the person's own words."""
        marker = self._new_marker()
        shown = as_shown(inbound, shared=self._is_shared(inbound), marker=marker)
        return await self._compose(shown, marker), shown.text != inbound.text

    async def _say_full(self, inbound: Inbound, key: SessionKey, error: QueueFullError, now: float) -> None:
        """Once in a while: whoever writes that much is not to be told as much."""
        if now - self._full_said.get(key, 0.0) < _FULL_SAID_S:
            return
        if len(self._full_said) >= _FULL_KNOWN:
            self._full_said.clear()
        self._full_said[key] = now
        text = f"Nothing more is taken for now: {error} when something of that is done, or /stop it."
        await self._say(inbound, f"full:{inbound.id}", text)

    async def _unheard(self, inbound: Inbound) -> Inbound:
        """Of what came in pieces, those that were not taken before: a crash may have come between them."""
        one = Submission(turn=TurnId(""), messages=(), source=Source(platform=inbound.place.platform))
        fresh = [
            piece for piece in inbound.pieces if await self._sessions.accepted(replace(one, inbound=piece)) is None
        ]
        if len(fresh) in (0, len(inbound.pieces)):
            return inbound
        named = list(zip(inbound.pieces, inbound.attachments, strict=True))
        rest = replace(
            inbound, pieces=tuple(fresh), attachments=tuple(each for piece, each in named if piece in fresh)
        )
        return rest if inbound.id in fresh else replace(rest, id=fresh[0], text="", foreign=_forward_sign(inbound))

    async def _submit(self, submission: Submission) -> Receipt:
        for _ in range(_BUSY_TRIES):
            try:
                return await self._sessions.submit(submission)
            except QueueFullError:
                raise  # one who writes a lot is not waited for: that would hold up everybody
            except BusyError:
                await asyncio.sleep(_BUSY_PAUSE_S)
        return await self._sessions.submit(submission)

    async def _rewrite(self, inbound: Inbound, key: SessionKey, role: Role) -> None:
        """What still waits is replaced; what was answered, or is being answered, stays as it was said."""
        session = await self._sessions.bound(key)
        if session is None or parse(inbound.text) is not None:
            return
        try:
            message, _ = await self._for_model(inbound)
            await self._sessions.rewrite(session, inbound.place, message, role)
        except StoppingError:
            raise
        except RefusedError as error:
            logger.debug("{}: an edit came too late: {}", inbound.id, error)

    async def _take_back(self, inbound: Inbound, key: SessionKey) -> None:
        """What still waits is dropped; what was answered, or is being answered, stays."""
        session = await self._sessions.bound(key)
        if session is None:
            return
        for waiting in (await self._sessions.view(session)).session.queue:
            if waiting.place == inbound.place:
                await self._sessions.stop_turn(session, "the message was deleted", waiting.id, by=inbound.place)

    # ------------------------------------------------------------ commands

    def _parsed(self, inbound: Inbound, key: SessionKey) -> Parsed | Unknown | None:
        """The command that a message is, or stands for: a plain yes answers a command that asked."""
        typed = self._confirmations.take((key, inbound.user), inbound.text, self._clock())
        return parse(typed or inbound.text)

    async def _command(self, inbound: Inbound, key: SessionKey, command: Parsed | Unknown, role: Role) -> None:
        """At most once: that it came is on disk before it is carried out. A reply that offers choices has buttons."""
        name = f"command:{inbound.id}"
        says = isinstance(command, Parsed) and command.command.says  # a message: its session knows its id
        if not says and not await self._is_new(inbound, key):
            if await self._outbox.is_known(name):
                return
            word = command.command.name if isinstance(command, Parsed) else command.word
            text = f"Hermes was interrupted while it carried out /{word}. /status says how things stand."
            await self._say(inbound, name, text)
            return
        shared = self._is_shared(inbound)
        if says and shared and isinstance(command, Parsed):
            command = replace(command, argument=guarded(command.argument))
        caller = CommandCaller(
            source=self._source(inbound, role),
            key=key,
            inbound=inbound.id,
            has_buttons=self._abilities.buttons,
            speaker=named(inbound, self._new_marker()) if shared else "",
        )
        reply = await self._commands.run(command, caller)
        if reply.choices and isinstance(command, Parsed):
            word = command.command.name
            self._confirmations.expect((key, inbound.user), word, reply.choices, self._clock())
            token = command_token(word, key, inbound.user)
            await self._say(inbound, name, reply.text, choices=reply.choices, call=token)
        else:
            await self._say(inbound, name, reply.text)

    async def _is_new(self, inbound: Inbound, key: SessionKey) -> bool:
        session = await self._sessions.bound(key) or SessionId("")
        seen = Seen(key=inbound.id, session=session, turn=self._new_turn_id(), fingerprint=b"", at=self._clock())
        return await self._outbox.see(seen)

    # ------------------------------------------------------------ buttons

    async def _pressed(self, inbound: Inbound, key: SessionKey, role: Role) -> str:
        """A button gives a command to whoever was offered it, or it answers a question. Says why it did neither."""
        name, gives_command, _ = inbound.answers.partition("-")
        command = parse(f"/{name} {inbound.text}") if gives_command else None
        if command is None:
            return await self._answer(inbound, key, role)
        if inbound.answers != command_token(name, key, inbound.user):
            return f"This is somebody else's choice. /{name} lets you choose for yourself."
        if isinstance(command, Parsed) and command.command.confirms and command.argument:
            # A press that comes before the buttons are gone must not do it again.
            place = inbound.place
            inbound = replace(inbound, id=InboundKey(f"pressed:{place.platform}:{place.chat}:{place.message}"))
        self._confirmations.take((key, inbound.user), "", self._clock())  # it is answered
        await self._command(inbound, key, command, role)
        return ""

    async def _answer(self, inbound: Inbound, key: SessionKey, role: Role) -> str:
        """A button answers the question of this person's conversation, or one that is for the admins."""
        session = await self._sessions.bound(key)
        try:
            head = None if session is None else (await self._sessions.view(session)).session
            if head is not None and (asked := _asked_with(head, inbound.answers)) is not None:
                if head.owner not in ("", inbound.user) and not (asked.approval and role.approves):
                    return _NOT_YOURS
            else:
                head = await self._routed(inbound.answers)
                asked = None if head is None else _asked_with(head, inbound.answers)
                if head is None or asked is None:
                    return _not_open(inbound, role, talks=session is not None)
            if asked.approval and not role.approves:
                return _FOR_ADMINS
            source = self._source(inbound, role)
            await self._sessions.answer(head.id, _chosen(inbound, asked), source, asked.call)
        except (StoppingError, BusyError):
            raise
        except (RefusedError, UnknownSessionError) as error:
            return f"That was not taken as an answer: {error}"
        return ""

    async def _routed(self, token: str) -> Session | None:
        """The session whose question the owner and the admins were asked with these buttons."""
        waiting = await self._sessions.awaiting_approval()
        return next((each for each in waiting if _asked_with(each, token) is not None), None)

    def _is_shared(self, inbound: Inbound) -> bool:
        return is_shared(inbound, group_sessions_per_user=self._per_user)

    def _source(self, inbound: Inbound, role: Role) -> Source:
        return Source(
            platform=inbound.place.platform,
            user=inbound.user,
            place=inbound.place,
            company=company_of(inbound, shared=self._is_shared(inbound)),
            role=role,
            name=shown_name(inbound),
        )

    async def _say(
        self, inbound: Inbound, name: str, text: str, *, choices: tuple[str, ...] = (), call: str = ""
    ) -> None:
        """What a button brought about is said in the place of its message, and the buttons go."""
        outgoing = OutboxMessage(
            id=name,
            kind=OutboxKind.NOTICE,
            place=inbound.place,
            text=text,
            at=self._clock(),
            choices=choices,
            call=call,
            sent=(inbound.place.message,) if inbound.answers and self._abilities.edit else (),
        )
        await self._outbox.enqueue(outgoing)


def _not_open(inbound: Inbound, role: Role, *, talks: bool) -> str:
    """Why a button did nothing. `talks`: the person has a conversation here."""
    if role.approves or (talks and inbound.chat_type == "dm"):
        return _OVER
    return _NOT_YOURS_OR_OVER if talks else _NOT_YOURS


def _asked_with(session: Session, token: str) -> Question | None:
    """What it asks, if buttons with that token are under it."""
    call, turn = waiting_call(session), session.turn
    if call is None or turn is None or button_token(turn.id, call.id) != token:
        return None
    return asked_by(call, turn.id)


def _chosen(inbound: Inbound, question: Question) -> str:
    """The choice as the question has it: what fits on a button may be less."""
    choices = question.choices
    return choices[inbound.choice] if inbound.choice is not None and inbound.choice < len(choices) else inbound.text


def _forward_sign(inbound: Inbound) -> tuple[Foreign, ...]:
    """That it was forwarded, without its text."""
    return tuple(replace(each, text="") for each in inbound.foreign if each.kind is ForeignKind.FORWARD)


async def _compose(inbound: Inbound, _marker: str) -> EncodedMessage:
    """Where files cannot be fetched."""
    return user_message(inbound.text)
