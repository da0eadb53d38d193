"""One session: its conversation, why it is as it is, lineage, processes, and its timeline."""

from __future__ import annotations

import asyncio
from contextlib import closing
from functools import partial
from typing import Any

from aiohttp import web

from hermes.adapters.http import parameter, presentation
from hermes.adapters.http.service import json_response
from hermes.adapters.openai_api.turns import pending
from hermes.domain.events import TextDelta
from hermes.domain.ids import Seq, SessionId
from hermes.domain.read.timeline import read_timeline
from hermes.domain.session.state import Phase, Session
from hermes.web.conversation_view import conversation
from hermes.web.page_kit import PageKit
from hermes.web.pages.approval_page import shown_question
from hermes.web.session_names import names_of

_MESSAGES = 60
_STEPS = 400  # records of a timeline


class SessionPage:
    def __init__(self, kit: PageKit) -> None:
        self._kit = kit

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/ui/sessions/{id}", self.show),
            web.get("/ui/sessions/{id}/messages", self.messages),
            web.get("/ui/sessions/{id}/timeline", self.timeline),
        ]

    async def show(self, request: web.Request) -> web.Response:
        session, service = parameter.session_in_path(request), self._kit.service
        view = await service.view(session, exact=True)
        before = parameter.integer(request, "before", low=0, high=2**63 - 1)
        processes = await service.processes.listed(session)
        return await self._kit.page(
            request,
            "session.html",
            view=view,
            name=await self._name(view.session),
            agents=await self._agents(view.session),
            session=view.session,
            processes=[service.shown_process(each) for each in processes],
            is_open=view.session.phase not in (Phase.SUSPENDED, Phase.ENDED),
            is_suspended=view.session.phase is Phase.SUSPENDED,
            is_latest=before is None,
            **await self._conversation(session, before),
            **self._question(view.session),
        )

    async def messages(self, request: web.Request) -> web.Response:
        """Return the end of the conversation, for the script that follows it."""
        session, service = parameter.session_in_path(request), self._kit.service
        view = await service.view(session, exact=True)
        shown = await self._conversation(session, None)
        html = await self._kit.fragment(request, "conversation.html", session=view.session, **shown)
        agents = await self._agents(view.session)
        state = await self._kit.fragment(
            request, "session_state.html", view=view, session=view.session, agents=agents
        )
        question = await self._kit.fragment(request, "session_question.html", **self._question(view.session))
        parts = {"conversation": html, "state": state, "question": question, "writing": self._writing(view.session)}
        return json_response({"phase": view.session.phase, **parts})

    async def timeline(self, request: web.Request) -> web.Response:
        session = parameter.session_in_path(request)
        view = await self._kit.service.view(session, exact=True)
        steps = await self._kit.parts.journal.fetch(partial(read_timeline, session=session, limit=_STEPS))
        return await self._kit.page(
            request,
            "timeline.html",
            view=view,
            name=await self._name(view.session),
            session=view.session,
            steps=steps,
            cut=view.session.next_seq > _STEPS,
        )

    async def _agents(self, session: Session) -> list[presentation.JsonObject]:
        """Return the subagents that work for a session."""
        listed = [] if self._kit.service.agents is None else await self._kit.service.agents.listed(session.id)
        begun = [each.session for each in listed if each.session is not None]
        names = await names_of(self._kit, begun)
        return [presentation.subagent(each, each.duty.task or names.get(each.duty.child, "")) for each in listed]

    async def _name(self, session: Session) -> str:
        return (await names_of(self._kit, [session]))[session.id]

    async def _conversation(self, session: SessionId, before: int | None) -> dict[str, Any]:
        place = None if before is None else Seq(before)
        stored = await self._kit.service.sessions.messages(session, None, _MESSAGES, exact=True, before=place)
        first = stored[0].seq if stored else 0
        earlier = await self._kit.service.sessions.messages(session, Seq(-1), 1, exact=True) if stored else []
        shown = await asyncio.to_thread(conversation, stored)
        return {"messages": shown, "earlier": first if earlier and earlier[0].seq < first else None}

    def _writing(self, session: Session) -> str:
        """Return what the model has written of its current answer."""
        if session.turn is None:
            return ""
        with closing(self._kit.service.hub.subscribe(turn=session.turn.id, late=True)) as feed:
            return "".join(event.text for event in feed.waiting() if isinstance(event, TextDelta))

    def _question(self, session: Session) -> dict[str, Any]:
        asked = pending.asked_in(session)
        return {"question": None if asked is None else shown_question(session, asked)}
