"""Commands on the running turn: stop it, add to it, answer its questions."""

from __future__ import annotations

import hashlib
import json

from hermes.domain.access.question import FOR_THE_SESSION, SHOW, whole_question
from hermes.domain.session.state import Session
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Busy, Handling, Receipt, Submission
from hermes.domain.turn.tool_call import Approval, Call
from hermes.services.commands.context import CommandContext, Handler
from hermes.services.commands.reply import NO, YES, CommandReply, refused
from hermes.services.commands.wording import count, dropped, pending, question


async def stop(context: CommandContext) -> CommandReply:
    session = context.open
    if session is None or not (session.turn or session.queue or session.compressing):
        return CommandReply(text="Nothing is running.")
    running = () if session.turn is None else (session.turn,)
    for turn in (*session.queue, *running):  # queued turns first, so that none starts when the running one ends
        await context.sessions.stop_turn(
            session.id, context.typed, turn.id, by=context.caller.source.place, who=context.who
        )
    if session.turn is None and session.compressing:
        await context.sessions.stop_turn(
            session.id, context.typed, None, by=context.caller.source.place, who=context.who
        )
    done = "Stopped the summary; nothing was lost." if session.compressing else "Stopped."
    return CommandReply(text=" ".join(filter(None, (done, dropped(session)))))


async def queue(context: CommandContext) -> CommandReply:
    return await _submit(context, Busy.QUEUE)


async def steer(context: CommandContext) -> CommandReply:
    return await _submit(context, Busy.STEER)


async def _submit(context: CommandContext, how: Busy) -> CommandReply:
    if not context.argument:
        return context.usage("The text is missing.")
    return await submit(context, context.argument, how)


async def submit(context: CommandContext, text: str, how: Busy | str) -> CommandReply:
    """Send a text as the caller's message. `how` empty: as the conversation is set to handle it."""
    session, caller = context.session, context.caller
    if session is not None and (asking := pending(session)) is not None and asking.question:
        return refused(f"{question(asking)}\nAnswer it first, or /stop. Nothing was stored.")
    shown = f"{caller.speaker} {text}" if caller.speaker else text
    receipt = await context.sessions.submit(
        Submission(
            turn=context.services.new_turn_id(),
            messages=(_encoded(shown),),
            source=caller.source,
            session=caller.session if session is None else session.id,
            key=caller.key,
            inbound=caller.inbound,
            fingerprint=hashlib.sha256(_encoded(text)).digest() if caller.inbound else b"",
            busy=how,
        )
    )
    moved = session is None or receipt.session != session.id
    return CommandReply(text=_describe_handling(receipt), session=receipt.session if moved else None, receipt=receipt)


def _encoded(text: str) -> EncodedMessage:
    message = {"role": "user", "content": text}
    return EncodedMessage(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode())


def _describe_handling(receipt: Receipt) -> str:
    if receipt.duplicate:
        return "This message was received before; nothing was done."
    match receipt.handling:
        case Handling.QUEUED:
            return f"Queued. {count(receipt.position, 'turn')} before it."
        case Handling.STEERING:
            return "The running turn takes it into account at its next step."
        case Handling.ANSWER:
            return "Taken as the answer to the question."
    return " ".join(filter(None, ("No turn was running: this one starts now.", receipt.notice)))


# ---------------------------------------------------------------- approval


async def approve(context: CommandContext) -> CommandReply:
    how = context.argument.lower() or Approval.ONCE
    if how in (SHOW, "show all"):
        return await _show(context)
    if how not in (Approval.ONCE, *FOR_THE_SESSION):
        return context.usage(f"“{context.argument[:50]}” is not a way to approve.")
    lasting = {
        Approval.SESSION.value: " for the rest of this conversation",
        Approval.ALWAYS.value: " from now on, in every conversation",
    }
    return await _answer(context, how, f"Approved{lasting.get(how, '')}")


async def _show(context: CommandContext) -> CommandReply:
    """Show the whole call that waits for permission, where it was asked for."""
    session = await _who_asks(context)
    asking = _asking(session)
    if session is None or asking is None or asking.question:
        return refused("No tool call waits for permission.")
    if not asking.cut:
        return CommandReply(text=whole_question(asking))
    after = await context.sessions.answer(session.id, SHOW, context.caller.source, asking.id)
    if session.assignment is not None:
        return CommandReply(text=whole_question(asking))
    if context.caller.source.place is None:  # a terminal: nothing else shows it there
        return context.reply(whole_question(asking), after)
    return context.reply("The whole command follows.", after)


async def deny(context: CommandContext) -> CommandReply:
    return await _answer(context, Approval.DENY, "Denied")


async def _answer(context: CommandContext, answer: str, done: str) -> CommandReply:
    session = await _who_asks(context)
    asking = _asking(session)
    if session is None or asking is None:
        return refused("No tool call waits for permission.")
    if asking.question:
        return refused(f"{question(asking)}\nAnswer this question with a message, or /stop.")
    after = await context.sessions.answer(session.id, answer, context.caller.source, asking.id)
    text = f"{done}: {asking.summary or asking.name}."
    if session.assignment is not None:
        return CommandReply(text=f"Subagent {session.id}. {text}")
    return context.reply("\n".join(filter(None, (text, _next_question(after)))), after)


async def _who_asks(context: CommandContext) -> Session | None:
    """Return the session whose call waits for a person: the conversation, or else one of its subagents."""
    session, agents = context.open, context.services.agents
    if _asking(session) is not None or context.session is None or agents is None:
        return session
    views = await agents.listed(context.session.id)
    return next((view.session for view in views if _asking(view.session) is not None), session)


def _asking(session: Session | None) -> Call | None:
    return None if session is None else pending(session)


def _next_question(session: Session) -> str:
    asking = pending(session)
    return "" if asking is None else question(asking)


async def restart(context: CommandContext) -> CommandReply:
    wish = context.argument.lower()
    if wish == NO:
        return CommandReply(text="Nothing was restarted.")
    if context.caller.has_buttons and wish != YES:
        return CommandReply(text="Restart Hermes? It is unavailable for a moment, for all users.", choices=(YES, NO))
    await context.services.restart(context.typed, context.who)
    return CommandReply(text="Restarting. Running turns get a while to finish; the others continue afterwards.")


HANDLERS: dict[str, Handler] = {
    "stop": stop,
    "restart": restart,
    "queue": queue,
    "steer": steer,
    "approve": approve,
    "deny": deny,
}
