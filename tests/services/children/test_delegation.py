"""Delegation: a tool call starts its subagents once, waits for them, and ends them with its turn."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from hermes.domain.access.role import Role
from hermes.domain.child.child import PREFIX, ChildEnd, Purpose, first_turn
from hermes.domain.child.delegation import WITHHELD
from hermes.domain.child.task import ChildRole, ChildTask, tasks_of, tools_for
from hermes.domain.errors import BadInputError
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.records import ChildStarted
from hermes.domain.session.protocol import StartBackground
from hermes.domain.session.state import Phase
from hermes.domain.source import Place, Source
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.tool_call import Call, CallState, Effect
from hermes.domain.turn.turn_failure import FailureKind
from hermes.services.children.delegation_purpose import BackgroundPurpose, DelegationPurpose, DelegationSettings
from hermes.services.retention import SessionRetention
from tests.actors.harness import API, SessionHarness, world
from tests.actors.talk import needs_leave
from tests.support.journals import LoopJournal
from tests.support.waiting import until

TOY = Source(platform="toy", user="ann", role=Role.OWNER, place=Place(platform="toy", chat="c"))
TOOLS = {"terminal": "terminal", "read_file": "file", "delegate_task": "delegation", "memory": "memory"}


class Delegating(SessionHarness):
    """A harness whose conversations can delegate."""

    settings = DelegationSettings()

    def register(self) -> None:
        async def offered(platform: str, role: Role, only: tuple[str, ...] | None) -> Mapping[str, str]:
            return {name: TOOLS[name] for name in only or TOOLS}

        async def share(parent: SessionId, child: SessionId) -> None:
            return None

        for purpose, methods in ((Purpose.DELEGATE, DelegationPurpose), (Purpose.BACKGROUND, BackgroundPurpose)):
            subagents = methods(
                sessions=self.desk,
                heads=self.desk.heads,
                clock=lambda: self.now,
                settings=lambda: self.settings,
                offered=offered,
                share=share,
                hub=self.hub,
            )
            self.system.child_sessions.register(purpose, subagents)

    async def delegate(self, arguments: dict[str, Any], count: int = 1) -> None:
        """The model calls the tool."""
        thought = await self.started(1)
        self.agent.started.remove(thought)
        call = Call(id="d1", name="delegate_task", effect=Effect.DURABLE, delegates=count)
        function = {"name": "delegate_task", "arguments": json.dumps(arguments)}
        made_call = {"id": "d1", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [made_call]}
        made = thought._made("", (call,))
        thought.report(replace(made, message=EncodedMessage(json.dumps(message).encode())))
        await self.settle()

    async def children(self, session: str = "s") -> list[ChildStarted]:
        log = self.journal.engine.log(SessionId(session))
        return [each.record for each in log if isinstance(each.record, ChildStarted)]

    def open_duties(self) -> list[str]:
        return list(self.journal.engine.facts(PREFIX))


@asynccontextmanager
async def delegating(journal: LoopJournal | None = None, **settings: Any) -> AsyncIterator[Delegating]:
    async with world(journal, harness=Delegating) as here:
        assert isinstance(here, Delegating)
        here.settings = DelegationSettings(**settings)
        here.register()
        yield here


async def test_children_start_with_the_call_and_their_answers_come_back() -> None:
    async with delegating() as here:
        await here.say("a", "s")
        await here.delegate({"tasks": [{"goal": "one"}, {"goal": "two", "context": "x"}]}, 2)
        first, second = await here.started(2), None
        texts = [bytes(each.job.messages[-1]).decode() for each in here.agent.started]
        assert "one" in texts[0]
        assert "What you need to know" in texts[1]
        assert first is not None
        deed = here.agent.deeds[0]
        assert list(deed.job.children) == [each.child for each in await here.children()]
        waiting = asyncio.create_task(
            here.system.delegations.results(SessionId("s"), TurnId("a"), deed.job.children, lambda _: None)
        )
        await here.answer_next("1")
        await here.answer_next("2")
        results = await waiting
        assert [(each.text, each.problem) for each in results] == [("1", ""), ("2", "")]
        assert here.open_duties() == []
        assert second is None


async def test_next_daemon_waits_for_the_same_children() -> None:
    journal = LoopJournal()
    async with delegating(journal) as here:
        await here.say("a", "s")
        await here.delegate({"goal": "one"})
        await here.started(1)
    async with delegating(journal) as here:
        here.system.take_up()
        await until(lambda: len(here.agent.deeds) == 1 and len(here.agent.started) == 1)
        head = await here.session("s")
        assert head.turn is not None
        assert (head.turn.calls[0].state, head.interruptions) == (CallState.STARTED, 0)
        assert len(await here.children()) == 1
        await here.answer_next("1")
        results = await here.system.delegations.results(
            SessionId("s"), TurnId("a"), here.agent.deeds[0].job.children, lambda _: None
        )
        assert [each.text for each in results] == ["1"]


async def test_stopped_turn_ends_its_children() -> None:
    async with delegating() as here:
        await here.say("a", "s")
        await here.delegate({"goal": "one"})
        await here.started(1)
        [child] = await here.children()
        await here.desk.stop_turn(SessionId("s"), "asked")
        await until(lambda: here.open_duties() == [])
        head = await here.session(child.child)
        assert head.phase is Phase.ENDED
        assert head.last_failure is not None
        assert head.last_failure.kind is FailureKind.CANCELLED
        assert here.agent.started[0].cancelled


async def test_child_that_waits_for_a_place_is_not_started_after_a_stop() -> None:
    async with delegating(max_concurrent_children=1) as here:
        await here.say("a", "s")
        await here.delegate({"tasks": [{"goal": "one"}, {"goal": "two"}]}, 2)
        await here.started(1)
        await here.desk.stop_turn(SessionId("s"), "asked")
        ends = {(Purpose.DELEGATE, ChildEnd.FAILED): 1, (Purpose.DELEGATE, ChildEnd.SKIPPED): 1}
        await until(lambda: here.system.child_sessions.figures().ended == ends)
        assert len(here.agent.started) == 1


@pytest.mark.parametrize("detach", [False, True])
async def test_end_of_the_session_ends_or_detaches_its_children(detach: bool) -> None:
    async with delegating(detach=detach) as here:
        await here.say("a", "s", source=TOY)
        await here.delegate({"goal": "one"})
        await here.started(1)
        [child] = await here.children()
        await here.desk.end(SessionId("s"), "asked")
        if detach:
            await here.answer_next("found it")
        await until(lambda: here.open_duties() == [])
        report = here.journal.engine.outgoing(PREFIX + child.key)
        assert (report is not None) == detach
        assert report is None or "found it" in report.text


@pytest.mark.parametrize("asks", [False, True])
async def test_approval_of_a_child_is_asked_in_the_parents_chat_or_denied(asks: bool) -> None:
    async with delegating(asks=asks) as here:
        await here.say("a", "s", source=TOY)
        await here.delegate({"goal": "one"})
        await here.call_next(needs_leave("x"))
        [child] = await here.children()
        head = await here.session(child.child)
        assert (head.phase is Phase.WAITING) == asks
        if not asks:
            return
        [view] = await here.system.delegations.listed(SessionId("s"))
        assert view.session is not None
        assert view.session.turn is not None
        [call] = view.session.turn.calls
        assert call.asked_in == (TOY.place,)
        await here.desk.answer(child.child, "once", TOY)
        assert [each.job.name for each in here.agent.deeds][-1] != ""
        assert (await here.session(child.child)).phase is Phase.RUNNING


async def test_background_task_reports_into_the_chat_once_it_is_idle() -> None:
    async with delegating() as here:
        await here.say("a", "s", source=TOY)
        await here.answer_next("A")
        wish = StartBackground(turn=TurnId("b"), task="look", source=TOY)
        await here.system.delegations.begin(SessionId("s"), wish)
        await here.started(1)
        await here.say("c", "s", source=TOY)
        await here.started(2)
        await here.answer_next("looked")
        [child] = await here.children()
        name = PREFIX + child.key
        assert here.journal.engine.outgoing(name) is None  # a turn runs
        await here.answer_next("C")
        await until(lambda: here.open_duties() == [])
        report = here.journal.engine.outgoing(name)
        assert report is not None
        assert "looked" in report.text
        assert (await here.session("s")).posted != ()


async def test_background_report_without_a_chat_is_a_turn() -> None:
    async with delegating() as here:
        await here.say("a", "s", source=API)
        await here.answer_next("A")
        wish = StartBackground(turn=TurnId("b"), task="look", source=API)
        await here.system.delegations.begin(SessionId("s"), wish)
        await here.answer_next("looked")
        await until(lambda: here.open_duties() == [])
        thought = await here.started(1)
        assert thought.job.session == "s"
        assert "looked" in bytes(thought.job.messages[-1]).decode()
        [child] = await here.children()
        assert thought.job.turn != first_turn(child.key)


async def test_end_of_a_compressed_conversation_ends_what_works_beside_it() -> None:
    async with delegating() as here:
        await here.say("a", "s", source=API)
        wish = StartBackground(turn=TurnId("b"), task="look", source=API)
        await here.answer_next("A")
        await here.system.delegations.begin(SessionId("s"), wish)
        await here.started(1)
        [child] = await here.children()
        await here.desk.compress(SessionId("s"))
        await here.summarise_next()
        successor = await here.desk.conversation(SessionId("s"))
        assert successor.id != "s"
        await here.desk.end(successor.id, "asked")
        await until(lambda: here.open_duties() == [])
        assert (await here.session(child.child)).phase is Phase.ENDED


async def test_child_that_fills_its_context_with_its_last_answer_ends() -> None:
    async with delegating() as here:
        await here.say("a", "s")
        await here.delegate({"goal": "one"})
        await here.started(1)
        [child] = await here.children()
        await here.answer_next("1", full=True)
        await until(lambda: here.open_duties() == [])
        assert (await here.session(child.child)).phase is Phase.ENDED


async def test_answer_of_a_child_is_kept_as_long_as_the_call_waits() -> None:
    async with delegating() as here:
        await here.say("a", "s")
        await here.delegate({"tasks": [{"goal": "one"}, {"goal": "two"}]}, 2)
        await here.started(2)
        await here.answer_next("1")
        await until(lambda: len(here.open_duties()) == 1)
        retention = SessionRetention(
            here.journal, erase=here.desk.erase_unused, has_processes=lambda _: False, clock=lambda: here.now + 1e6
        )
        assert await retention.prune(1.0) == []
        await here.desk.stop_turn(SessionId("s"), "asked")
        await until(lambda: here.open_duties() == [])
        children = {each.child for each in await here.children()}
        assert {*await retention.prune(1.0)} >= children


def test_tasks_are_checked() -> None:
    assert tasks_of({"goal": "x", "role": "orchestrator"})[0].role is ChildRole.ORCHESTRATOR
    batch = tasks_of({"tasks": [{"goal": "x", "toolsets": "web, file"}], "context": "c"})
    assert batch == (ChildTask(goal="x", context="c", toolsets=("web", "file")),)
    bad: list[dict[str, Any]] = [{}, {"goal": "x", "tasks": [{"goal": "y"}]}, {"tasks": [{"context": "x"}]}]
    for arguments in (*bad, {"tasks": [{"goal": "x", "bad": "y"}]}, {"goal": "x", "role": "king"}):
        with pytest.raises(BadInputError):
            tasks_of(arguments)


def test_children_lack_tools_that_address_people_or_start_work() -> None:
    offered = {**dict.fromkeys(WITHHELD, "x"), "read_file": "file", "terminal": "terminal"}
    leaf, head = ChildTask(goal="x"), ChildTask(goal="x", role=ChildRole.ORCHESTRATOR)
    assert tools_for(leaf, offered, depth=1, max_depth=2) == ("read_file", "terminal")
    assert "delegate_task" in tools_for(head, offered, depth=1, max_depth=2)
    assert "delegate_task" not in tools_for(head, offered, depth=2, max_depth=2)
    assert tools_for(ChildTask(goal="x", toolsets=("file",)), offered, depth=1, max_depth=1) == ("read_file",)
