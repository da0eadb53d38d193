"""A slash command that came over HTTP, carried out at most once under its Idempotency-Key.

That it came is on disk before it is carried out: whoever repeats a request that was cut off, a restart say, does not
have it done twice. What a command says to the agent is a message, and as such known by its key already.
"""

from __future__ import annotations

from dataclasses import replace

from hermes.adapters.openai_api.service import Service
from hermes.commands.registry import Parsed, Unknown
from hermes.commands.reply import Caller, Reply
from hermes.ports.sessions import Submission

_BEFORE = "This command came before, under the same Idempotency-Key, and is not carried out again."


async def run_once(service: Service, command: Parsed | Unknown, submission: Submission) -> Reply:
    caller = Caller(source=submission.source, session=submission.session, inbound=submission.inbound)
    if isinstance(command, Parsed) and not command.command.says:
        before = await service.sessions.note_command(submission)
        if before is not None:
            return Reply(text=_BEFORE, session=before.session or None, receipt=before)
        caller = replace(caller, inbound=None)
    return await service.commands.run(command, caller)
