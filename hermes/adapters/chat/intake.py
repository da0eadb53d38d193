"""Intake of all chat platforms: takes messages, commands and button presses, and returns when they are on disk.

A message becomes a turn, a command runs immediately, a button answers its question. Redelivered messages are taken
once. Replies go through the outbox; nothing is sent from here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from loguru import logger

from hermes.adapters.chat.access import AccessControl
from hermes.adapters.chat.coalescing import WAIT_S, Bursts, is_cut_off
from hermes.adapters.chat.confirmation import Confirmations
from hermes.adapters.chat.conversation_key import conversation_key, is_shared
from hermes.adapters.chat.moved import MovedChats
from hermes.adapters.chat.speaker import chat_context_of, escape_brackets, for_model, shown_name, speaker_label
from hermes.domain.access import approver_chat
from hermes.domain.access.question import Question, asked_by, button_token, command_token, waiting_call
from hermes.domain.access.role import Role
from hermes.domain.errors import BusyError, QueueFullError, RefusedError, StoppingError, UnknownSessionError
from hermes.domain.ids import InboundKey, SessionId, SessionKey, TurnId
from hermes.domain.media.reference import user_message
from hermes.domain.outbox_message import OutboxKind, OutboxMessage
from hermes.domain.session.state import Session
from hermes.domain.source import Place, Source
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Receipt, Seen, Submission
from hermes.domain.values import replace
from hermes.ports.chat import Abilities, ChatIntake, Foreign, ForeignKind, Inbound, Outbox
from hermes.ports.given import Clock
from hermes.ports.sessions import Sessions
from hermes.services.commands.registry import Parsed, Unknown, parse
from hermes.services.commands.reply import CommandCaller
from hermes.services.commands.service import CommandService
from hermes.system import random_id
from hermes.system.crash_point import reach

_BUSY_PAUSE_S = 0.5
_BUSY_TRIES = 4
_FULL_NOTICE_EVERY_S = 30.0
_MAX_FULL_NOTICES = 1000
_SAVED = "chat.noted:"  # prefix of facts that adapters save

_OTHERS_QUESTION = "Only the person who started the conversation can answer this."
_NOT_OPEN = "This question is no longer open."
_NOT_OPEN_OR_OTHERS = (
    "This question is no longer open, or only the person who started the conversation can answer it."
)
_FOR_ADMINS = "Only the owner and the admins of this Hermes can answer this."


class SessionChatIntake(ChatIntake):
    """Chat intake that submits messages to sessions and runs commands."""

    def __init__(
        self,
        *,
        sessions: Sessions,
        outbox: Outbox,
        commands: CommandService,
        access: AccessControl,
        moved: MovedChats,
        new_turn_id: Callable[[], TurnId],
        clock: Clock,
        alive: Callable[[], None],
        trouble: Callable[[str, str], None] = lambda _part, _problem: None,
        per_user: bool = True,
        abilities: Abilities = Abilities(),  # noqa: B008 - immutable
        compose: Callable[[Inbound, str], Awaitable[EncodedMessage]] | None = None,
        new_marker: Callable[[], str] = random_id.new_marker,
        learn: Callable[[Source], None] = lambda _: None,
    ) -> None:
        self._learn = learn  # hears the source of each message of an admitted person
        self._sessions = sessions
        self._outbox = outbox
        self._commands = commands
        self._access = access
        self._moved = moved
        self._new_turn_id = new_turn_id
        self._clock = clock
        self._per_user = per_user  # separate conversations of people in a group
        self._abilities = abilities  # of the platform
        self._bursts = Bursts()
        self._confirmations = Confirmations()
        self._full_notices: dict[SessionKey, float] = {}  # time of the last notice
        self._compose = compose or _compose  # builds the message for the model
        self._private: dict[str, bytes] = {}  # admins' private chats, as stored
        self._new_marker = new_marker  # marker of the fences in one message
        self._on_alive = alive
        self._on_trouble = trouble

    def alive(self) -> None:
        self._on_alive()

    def trouble(self, part: str, problem: str) -> None:
        self._on_trouble(part, problem)

    async def take(self, inbound: Inbound) -> str:
        reach("chat: received")
        key = conversation_key(inbound, group_sessions_per_user=self._per_user)
        private_note = ""
        role = await self._access.role(inbound)
        if role is Role.ADMIN and inbound.chat_type == "dm":
            await self._save_private_chat(inbound)
        if role is None:
            await self._access.deny(inbound)
            private_note = _OTHERS_QUESTION if inbound.answers else ""
        else:
            self._learn(self._source(inbound, role))
            private_note = await self._take_admitted(inbound, key, role)
        reach("chat: taken, not confirmed")
        return private_note

    async def _take_admitted(self, inbound: Inbound, key: SessionKey, role: Role) -> str:
        if inbound.answers:
            return await self._press_button(inbound, key, role)
        if inbound.edited:
            await self._rewrite(inbound, key, role)
        elif inbound.deleted:
            await self._drop_deleted(inbound, key)
        elif not inbound.forwarded and (command := self._parse(inbound, key)) is not None:
            await self._run_command(inbound, key, command, role)
        else:
            await self._submit_message(inbound, key, role)
        return ""

    async def _save_private_chat(self, inbound: Inbound) -> None:
        """Save the private chat of an admin, for approval questions."""
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
        return await self._sessions.fact(f"{_SAVED}{name}")

    async def note(self, name: str, value: bytes) -> None:
        await self._sessions.remember(f"{_SAVED}{name}", value)

    # ------------------------------------------------------------ messages

    async def _submit_message(self, inbound: Inbound, key: SessionKey, role: Role) -> None:
        inbound = await self._without_accepted(inbound)
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
            raise  # the platform delivers it again
        except QueueFullError as error:
            await self._report_full_queue(inbound, key, error, now)
            return
        except RefusedError as error:  # a retry would not help
            await self._reply(inbound, f"refused:{inbound.id}", f"Your message was not accepted: {error}")
            return
        if more:
            self._bursts.expect(who, receipt.turn, now)
        if receipt.notice and not receipt.duplicate:
            await self._reply(inbound, f"notice:{inbound.id}", receipt.notice)

    async def _for_model(self, inbound: Inbound) -> tuple[EncodedMessage, bool]:
        """Return the message for the model, and if its text differs from what the person wrote."""
        marker = self._new_marker()
        shown = for_model(inbound, shared=self._is_shared(inbound), marker=marker)
        return await self._compose(shown, marker), shown.text != inbound.text

    async def _report_full_queue(self, inbound: Inbound, key: SessionKey, error: QueueFullError, now: float) -> None:
        """Report a full queue, at most once per interval."""
        if now - self._full_notices.get(key, 0.0) < _FULL_NOTICE_EVERY_S:
            return
        if len(self._full_notices) >= _MAX_FULL_NOTICES:
            self._full_notices.clear()
        self._full_notices[key] = now
        text = f"Your message was not accepted: {error} later, or /stop the running turn."
        await self._reply(inbound, f"full:{inbound.id}", text)

    async def _without_accepted(self, inbound: Inbound) -> Inbound:
        """Drop attachments that were accepted before a crash."""
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
                raise  # do not wait: that would delay all other chats
            except BusyError:
                await asyncio.sleep(_BUSY_PAUSE_S)
        return await self._sessions.submit(submission)

    async def _rewrite(self, inbound: Inbound, key: SessionKey, role: Role) -> None:
        """Replace a message that still waits for its turn. Later edits have no effect."""
        session = await self._sessions.bound(key)
        if session is None or parse(inbound.text) is not None:
            return
        try:
            message, _ = await self._for_model(inbound)
            await self._sessions.rewrite(session, inbound.place, message, role)
        except StoppingError:
            raise
        except RefusedError as error:
            logger.debug("chat: edit {} ignored: {}", inbound.id, error)

    async def _drop_deleted(self, inbound: Inbound, key: SessionKey) -> None:
        """Drop a message that still waits for its turn. Later deletions have no effect."""
        session = await self._sessions.bound(key)
        if session is None:
            return
        for waiting in (await self._sessions.view(session)).session.queue:
            if waiting.place == inbound.place:
                await self._sessions.stop_turn(session, "the message was deleted", waiting.id, by=inbound.place)

    # ------------------------------------------------------------ commands

    def _parse(self, inbound: Inbound, key: SessionKey) -> Parsed | Unknown | None:
        """Parse the command in a message. A plain yes or no answers a command that asked for confirmation."""
        typed = self._confirmations.take((key, inbound.user), inbound.text, self._clock())
        return parse(typed or inbound.text)

    async def _run_command(self, inbound: Inbound, key: SessionKey, command: Parsed | Unknown, role: Role) -> None:
        """Run a command at most once: its id is on disk first. Choices in the reply become buttons."""
        name = f"command:{inbound.id}"
        # A message, also that of a skill: its session checks the id.
        says = self._commands.says(command, role)
        if not says and not await self._is_new(inbound, key):
            if await self._outbox.is_known(name):
                return
            word = command.command.name if isinstance(command, Parsed) else command.word
            text = f"Hermes was interrupted while running /{word}. /status shows the current state."
            await self._reply(inbound, name, text)
            return
        shared = self._is_shared(inbound)
        if says and shared:
            command = replace(command, argument=escape_brackets(command.argument))
        caller = CommandCaller(
            source=self._source(inbound, role),
            key=key,
            inbound=inbound.id,
            has_buttons=self._abilities.buttons,
            speaker=speaker_label(inbound, self._new_marker()) if shared else "",
        )
        reply = await self._commands.run(command, caller)
        if reply.choices and isinstance(command, Parsed):
            self._confirmations.expect((key, inbound.user), command.command, reply.choices, self._clock())
            token = command_token(command.command.name, key, inbound.user)
            await self._reply(inbound, name, reply.text, choices=reply.choices, call=token)
        else:
            await self._reply(inbound, name, reply.text)

    async def _is_new(self, inbound: Inbound, key: SessionKey) -> bool:
        session = await self._sessions.bound(key) or SessionId("")
        seen = Seen(key=inbound.id, session=session, turn=self._new_turn_id(), fingerprint=b"", at=self._clock())
        return await self._outbox.see(seen)

    # ------------------------------------------------------------ buttons

    async def _press_button(self, inbound: Inbound, key: SessionKey, role: Role) -> str:
        """Run the command of a button, or answer the question above it. Returns why neither was possible."""
        name, gives_command, _ = inbound.answers.partition("-")
        command = parse(f"/{name} {inbound.text}") if gives_command else None
        if command is None:
            return await self._answer(inbound, key, role)
        if inbound.answers != command_token(name, key, inbound.user):
            return f"These buttons are for another person. Send /{name} to get your own."
        if isinstance(command, Parsed) and command.command.confirms and command.argument:
            # A second press before the buttons disappear must not run it again.
            place = inbound.place
            inbound = replace(inbound, id=InboundKey(f"pressed:{place.platform}:{place.chat}:{place.message}"))
        self._confirmations.take((key, inbound.user), "", self._clock())  # the confirmation is answered
        await self._run_command(inbound, key, command, role)
        return ""

    async def _answer(self, inbound: Inbound, key: SessionKey, role: Role) -> str:
        """Answer the question of this conversation, or a question routed to the admins."""
        session = await self._sessions.bound(key)
        try:
            head = None if session is None else (await self._sessions.view(session)).session
            if head is not None and (asked := _question_with(head, inbound.answers)) is not None:
                if head.owner not in ("", inbound.user) and not (asked.approval and role.approves):
                    return _OTHERS_QUESTION
            else:
                head = await self._find_routed(inbound.answers)
                asked = None if head is None else _question_with(head, inbound.answers)
                if head is None or asked is None:
                    return _why_ignored(inbound, role, talks=session is not None)
            if asked.approval and not role.approves:
                return _FOR_ADMINS
            source = self._source(inbound, role)
            await self._sessions.answer(head.id, _chosen(inbound, asked), source, asked.call)
        except (StoppingError, BusyError):
            raise
        except (RefusedError, UnknownSessionError) as error:
            return f"Your answer was not accepted: {error}"
        return ""

    async def _find_routed(self, token: str) -> Session | None:
        """Return the session that asked the owner and the admins with these buttons."""
        waiting = await self._sessions.awaiting_approval()
        return next((each for each in waiting if _question_with(each, token) is not None), None)

    def _is_shared(self, inbound: Inbound) -> bool:
        return is_shared(inbound, group_sessions_per_user=self._per_user)

    def _source(self, inbound: Inbound, role: Role) -> Source:
        return Source(
            platform=inbound.place.platform,
            user=inbound.user,
            place=inbound.place,
            company=chat_context_of(inbound, shared=self._is_shared(inbound)),
            role=role,
            name=shown_name(inbound),
        )

    async def _reply(
        self, inbound: Inbound, name: str, text: str, *, choices: tuple[str, ...] = (), call: str = ""
    ) -> None:
        """Enqueue a reply. The reply to a button press replaces the message with the buttons."""
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


def _why_ignored(inbound: Inbound, role: Role, *, talks: bool) -> str:
    """Return why a button did nothing. `talks`: the person has a conversation here."""
    if role.approves or (talks and inbound.chat_type == "dm"):
        return _NOT_OPEN
    return _NOT_OPEN_OR_OTHERS if talks else _OTHERS_QUESTION


def _question_with(session: Session, token: str) -> Question | None:
    """Return the open question if its buttons have this token."""
    call, turn = waiting_call(session), session.turn
    if call is None or turn is None or button_token(turn.id, call.id) != token:
        return None
    return asked_by(call, turn.id)


def _chosen(inbound: Inbound, question: Question) -> str:
    """Return the full choice; a button label may be shortened."""
    choices = question.choices
    return choices[inbound.choice] if inbound.choice is not None and inbound.choice < len(choices) else inbound.text


def _forward_sign(inbound: Inbound) -> tuple[Foreign, ...]:
    """Return the forward markers without their texts."""
    return tuple(replace(each, text="") for each in inbound.foreign if each.kind is ForeignKind.FORWARD)


async def _compose(inbound: Inbound, _marker: str) -> EncodedMessage:
    """Default composer, for platforms without file downloads."""
    return user_message(inbound.text)
