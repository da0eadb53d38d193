"""Inner call service: takes the tool calls of scripts to their session, which decides and records them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Final

from hermes.domain.errors import UnknownSessionError
from hermes.domain.event.hook import POST_TOOL, PRE_TOOL
from hermes.domain.events import CallBegan, CallEnded, TurnGaveUp
from hermes.domain.history.message_chain import text_and_calls
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.records import ToolFinished
from hermes.domain.session.builder import encode
from hermes.domain.session.protocol import CallInside, EndInside
from hermes.domain.session.state import Session
from hermes.domain.turn.tool_call import Call, CallOutcome, CallState, Verdict
from hermes.domain.values import replace
from hermes.ports.agent import InnerCalls
from hermes.ports.hooks import ToolHooks, ToolUse
from hermes.ports.hub import Hub, Subscription
from hermes.services.sessions import SessionService

LOOK_S: Final = 60.0  # between two looks at the session, should an event be missed
MAX_STORED_CHARS: Final = 4_000  # of a result, in the journal


class InnerCallService(InnerCalls):
    def __init__(self, sessions: SessionService, hub: Hub) -> None:
        self._sessions = sessions
        self._hub = hub
        self.hooks: ToolHooks | None = None

    async def begin(
        self,
        session: SessionId,
        turn: TurnId,
        call: Call,
        arguments: str,
        *,
        platform: str,
        waits: Callable[[bool], None],
    ) -> str:
        call = await self._judged(call, _use(session, turn, call, arguments, platform))
        feed = self._hub.subscribe(session=session, text=False)
        asked = False
        try:
            head = await self._sessions.tell_inside(session, CallInside(turn=turn, call=call, arguments=arguments))
            while (found := _call_in(head, call.id)) is not None and found.state is not CallState.STARTED:
                if not asked:
                    asked = True
                    waits(True)
                if feed.lagged:
                    feed = self._hub.subscribe(session=session, text=False)
                else:
                    await _next_decision(feed, call.id)
                head = await self._head(session)
        finally:
            feed.close()
            if asked:
                waits(False)
        return "" if found is not None else await self._refusal(session, turn, call.id)

    async def end(
        self,
        session: SessionId,
        turn: TurnId,
        call: Call,
        arguments: str,
        *,
        platform: str,
        text: str,
        outcome: CallOutcome,
        took_s: float,
    ) -> str:
        use, hooks = _use(session, turn, call, arguments, platform), self.hooks
        if hooks is not None and hooks.concern(POST_TOOL, call.name):
            added = await hooks.after(use, text, ok=outcome is CallOutcome.OK)
            text = "\n\n".join(filter(None, (text, added)))
        stored = text if len(text) <= MAX_STORED_CHARS else f"{text[:MAX_STORED_CHARS]}…"
        message = encode(role="tool", tool_call_id=call.id, content=stored)
        ended = EndInside(turn=turn, call=call.id, message=message, outcome=outcome, took_s=took_s)
        await self._sessions.tell_inside(session, ended)
        return text

    async def _judged(self, call: Call, use: ToolUse) -> Call:
        """Return the call with the verdict of the hooks, which can only make its gate stricter."""
        hooks = self.hooks
        if hooks is None or call.problem or call.gate.verdict is Verdict.BLOCK:
            return call
        if not hooks.concern(PRE_TOOL, call.name):
            return call
        return replace(call, gate=await hooks.before(use, call.gate))

    async def _head(self, session: SessionId) -> Session:
        heads = await self._sessions.heads([session])
        if session not in heads:
            raise UnknownSessionError(f"there is no session {session}")
        return heads[session]

    async def _refusal(self, session: SessionId, turn: TurnId, call: str) -> str:
        """Return the text with which the session closed a call that did not run."""
        for each in reversed(await self._sessions.records(session, turn)):
            if isinstance(each.record, ToolFinished) and each.record.call == call:
                return text_and_calls(each.record.message)[0]
        return "Not run: the turn has ended."


def _use(session: SessionId, turn: TurnId, call: Call, arguments: str, platform: str) -> ToolUse:
    given = json.loads(arguments)
    return ToolUse(session=session, turn=turn, call=call.id, tool=call.name, arguments=given, platform=platform)


def _call_in(session: Session, name: str) -> Call | None:
    calls = session.turn.calls if session.turn is not None else ()
    return next((call for call in calls if call.id == name), None)


async def _next_decision(feed: Subscription, call: str) -> None:
    """Wait until the call begins or is closed, or for a while."""
    try:
        async with asyncio.timeout(LOOK_S):
            async for event in feed:
                if isinstance(event, TurnGaveUp) or (isinstance(event, CallBegan | CallEnded) and event.call == call):
                    return
    except TimeoutError:
        return
