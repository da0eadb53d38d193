"""Commands about the turn in flight: stop it, add to it, answer what it asks."""

from __future__ import annotations

import hashlib
import json

from hermes.asking import SHOW, whole_question
from hermes.commands.errand import Errand, Handler
from hermes.commands.reply import NO, YES, Reply, refused
from hermes.commands.wording import count, dropped, pending, question
from hermes.ports.sessions import Receipt, Submission
from hermes.types import Busy, Call, EncodedMessage, Session


async def stop(errand: Errand) -> Reply:
    session = errand.open
    if session is None or not (session.turn or session.queue or session.compressing):
        return Reply(text="Nothing is running.")
    running = () if session.turn is None else (session.turn,)
    for turn in (*session.queue, *running):  # in this order, so that none starts when the one before it ends
        await errand.sessions.stop_turn(session.id, errand.reason, turn.id, by=errand.caller.source.place)
    if session.turn is None and session.compressing:
        await errand.sessions.stop_turn(session.id, errand.reason, None, by=errand.caller.source.place)
    done = "Stopped the summary; nothing was lost." if session.compressing else "Stopped."
    return Reply(text=" ".join(filter(None, (done, dropped(session)))))


async def queue(errand: Errand) -> Reply:
    return await _say(errand, Busy.QUEUE)


async def steer(errand: Errand) -> Reply:
    return await _say(errand, Busy.STEER)


async def _say(errand: Errand, how: Busy) -> Reply:
    text, session, caller = errand.argument, errand.session, errand.caller
    if not text:
        return errand.usage("There is nothing to say.")
    if session is not None and (asking := pending(session)) is not None and asking.question:
        return refused(f"{question(asking)}\nAnswer that first, or /stop. Nothing was stored.")
    shown = f"{caller.speaker} {text}" if caller.speaker else text
    receipt = await errand.sessions.submit(
        Submission(
            turn=errand.desk.new_turn_id(),
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
    return Reply(text=_handled(receipt), session=receipt.session if moved else None, receipt=receipt)


def _encoded(text: str) -> EncodedMessage:
    message = {"role": "user", "content": text}
    return EncodedMessage(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode())


def _handled(receipt: Receipt) -> str:
    if receipt.duplicate:
        return "This came before, and was taken then."
    match receipt.handling:
        case "queued":
            return f"Queued. {count(receipt.position, 'turn')} before it."
        case "steering":
            return "The running turn takes it into account at its next step."
        case "answer":
            return "Taken as the answer to what was asked."
    return " ".join(filter(None, ("Nothing was running: it starts now.", receipt.notice)))


# ---------------------------------------------------------------- leave


async def approve(errand: Errand) -> Reply:
    how = errand.argument.lower() or "once"
    if how in (SHOW, "show all"):
        return await _show(errand)
    if how not in ("once", "session", "always"):
        return errand.usage(f"“{errand.argument[:50]}” is not a way to approve.")
    lasting = {"session": " for the rest of this conversation", "always": " from now on, in every conversation"}
    return await _answer(errand, how, f"Approved{lasting.get(how, '')}")


async def _show(errand: Errand) -> Reply:
    """All of what waits for permission, on the surface that asks for it."""
    asking = _asking(errand.open)
    if asking is None or asking.question:
        return refused("Nothing waits for permission.")
    assert errand.open is not None
    if not asking.cut:
        return Reply(text=whole_question(asking))
    after = await errand.sessions.answer(errand.open.id, SHOW, errand.caller.source, asking.id)
    if errand.caller.source.place is None:  # a terminal: nothing else shows it there
        return errand.reply(whole_question(asking), after)
    return errand.reply("All of it follows.", after)


async def deny(errand: Errand) -> Reply:
    return await _answer(errand, "deny", "Denied")


async def _answer(errand: Errand, answer: str, done: str) -> Reply:
    asking = _asking(errand.open)
    if asking is None:
        return refused("Nothing waits for permission.")
    if asking.question:
        return refused(f"{question(asking)}\nThat is a question: answer it with a plain message, or /stop.")
    assert errand.open is not None
    after = await errand.sessions.answer(errand.open.id, answer, errand.caller.source, asking.id)
    text = f"{done}: {asking.summary or asking.name}."
    return errand.reply("\n".join(filter(None, (text, _next_question(after)))), after)


def _asking(session: Session | None) -> Call | None:
    return None if session is None else pending(session)


def _next_question(session: Session) -> str:
    asking = pending(session)
    return "" if asking is None else question(asking)


async def restart(errand: Errand) -> Reply:
    wish = errand.argument.lower()
    if wish == NO:
        return Reply(text="Nothing was restarted.")
    if errand.caller.has_buttons and wish != YES:
        return Reply(text="Restart Hermes? It is away for a moment, for everybody.", choices=(YES, NO))
    await errand.desk.restart(errand.reason)
    return Reply(text="Restarting. What runs gets a while to finish; the rest goes on afterwards.")


HANDLERS: dict[str, Handler] = {
    "stop": stop,
    "restart": restart,
    "queue": queue,
    "steer": steer,
    "approve": approve,
    "deny": deny,
}
