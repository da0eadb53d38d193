"""Slash command over HTTP, run at most once per Idempotency-Key.

The key is on disk before the command runs, and its reply afterwards. A client that repeats a request gets the stored
reply; the command is not run twice. A command that sends a message to the agent is made unique by the key
of its message.
"""

from __future__ import annotations

import json

from loguru import logger

from hermes.adapters.http.key_scope import REFUSED_COMMANDS
from hermes.adapters.http.service import Service
from hermes.adapters.openai_api.own_sessions import OwnSessions
from hermes.domain.access.api_key import PLATFORM_PREFIX
from hermes.domain.errors import HermesError
from hermes.domain.turn.submission import Receipt, Submission
from hermes.domain.values import replace
from hermes.services.commands.registry import Parsed, Unknown
from hermes.services.commands.reply import CommandCaller, CommandReply, refused

_CUT_OFF = (
    "This command was sent before with this Idempotency-Key, and Hermes was interrupted while running it. "
    "It is not run again; /status shows the current state."
)


async def run_once(service: Service, command: Parsed | Unknown, submission: Submission) -> CommandReply:
    """Run a command once. Raises an error if the caller may not take part in the session."""
    command = service.commands.resolved(command, submission.source.standing)
    if problem := _refusal(service, command, submission):
        return refused(problem)
    if isinstance(service.sessions, OwnSessions):  # commands themselves can reach all sessions
        await service.sessions.check_writer(submission.session)
    caller = CommandCaller(source=submission.source, session=submission.session, inbound=submission.inbound)
    if not service.commands.says(command, submission.source.standing):
        before = await service.sessions.note_command(submission)
        if before is not None:
            return await _said_before(service, submission, before)
        reply = await service.commands.run(command, replace(caller, inbound=None))
        await _note(service, submission, reply)
        return reply
    return await service.commands.run(command, caller)


def _refusal(service: Service, command: Parsed | Unknown, submission: Submission) -> str:
    if isinstance(command, Unknown):
        return ""
    name = command.command.name
    if name in REFUSED_COMMANDS and submission.source.platform.startswith(PLATFORM_PREFIX):
        return f"/{name} is for the owner's key only."
    if name == "yolo" and not service.allow_yolo:
        return "/yolo is not allowed over the API; the setting api.allow_yolo changes that."
    return ""


async def _note(service: Service, submission: Submission, reply: CommandReply) -> None:
    said = json.dumps({"text": reply.text, "ok": reply.ok, "session": reply.session})
    try:
        await service.sessions.note_reply(submission, said.encode("utf-8", "replace"))
    except HermesError as error:  # the command was run: reply anyway
        logger.warning("api: could not store a command's reply: {}", error)


async def _said_before(service: Service, submission: Submission, before: Receipt) -> CommandReply:
    said = None if submission.inbound is None else await service.sessions.reply_of(submission.inbound)
    if said is None:
        return CommandReply(text=_CUT_OFF, ok=False, session=before.session or None, receipt=before)
    fields = json.loads(said)
    session = fields["session"] or before.session or None
    return CommandReply(text=fields["text"], ok=fields["ok"], session=session, receipt=before)
