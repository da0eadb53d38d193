"""Child sessions: each duty leads to one session and one report, whatever is lost in between."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes.domain.cause.cause import EndCause
from hermes.domain.child.child import PREFIX, Assignment, ChildDuty, ChildEnd, Purpose, child_id
from hermes.domain.errors import HermesError, UnknownSessionError
from hermes.domain.events import ChildEnded, TurnAnswered, TurnOutcome
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.outbox_message import OutboxKind, OutboxMessage
from hermes.domain.session.protocol import ReviewTerms
from hermes.domain.session.state import Phase
from hermes.domain.source import Place, Source
from hermes.domain.turn.tool_call import CallOutcome
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.ports.children import ChildPlan, ChildPurpose
from tests.actors.harness import SessionHarness, world
from tests.actors.talk import asks, does, needs_leave, user
from tests.support.actor_system import DIRECTORY_SETTINGS
from tests.support.journals import LoopJournal
from tests.support.waiting import until

REVIEWED = replace(DIRECTORY_SETTINGS, limits=replace(DIRECTORY_SETTINGS.limits, review=ReviewTerms(turns=1)))
PLACE = Place(platform="toy", chat="c")


class Reviewer(ChildPurpose):
    """Gives every child the same work. `idle`: there is nothing to do."""

    def __init__(self, *, idle: bool = False, max_tokens: int = 0, max_steps: int = 0) -> None:
        self.idle = idle
        self.terms = (max_tokens, max_steps)
        self.outcomes: list[TurnOutcome] = []
        self.planned = 0

    async def plan(self, duty: ChildDuty) -> ChildPlan | None:
        self.planned += 1
        if self.idle:
            return None
        tokens, steps = self.terms
        assignment = Assignment(
            purpose=duty.purpose,
            key=duty.key,
            parent=duty.parent,
            turn=duty.turn,
            tools=("memory",),
            model="small",
            max_tokens=tokens,
            max_steps=steps,
        )
        return ChildPlan(assignment=assignment, message=user("review it"))

    async def report(self, duty: ChildDuty, outcome: TurnOutcome) -> tuple[OutboxMessage, ...]:
        self.outcomes.append(outcome)
        notice = OutboxMessage(id=duty.fact, kind=OutboxKind.NOTICE, place=PLACE, text="done", at=1.0)
        return (notice,)


def duty(name: str = "k", parent: str | None = None) -> ChildDuty:
    return ChildDuty(
        key=f"review:{name}",
        child=child_id(name, 0.0),
        purpose=Purpose.REVIEW,
        parent=None if parent is None else SessionId(parent),
        source=Source(platform="api", automatic=True),
    )


def facts(journal: LoopJournal) -> list[str]:
    return list(journal.engine.facts(PREFIX))


def ended(here: SessionHarness, count: int = 1) -> bool:
    return sum(here.system.child_sessions.figures().ended.values()) >= count


async def child_of(here: SessionHarness, session: str = "s") -> SessionId:
    head = await here.session(session)
    return head.children[-1].session


async def test_review_runs_after_the_answer_and_ends_with_its_work() -> None:
    reviewer = Reviewer()
    async with world(directory=REVIEWED) as here:
        here.system.child_sessions.register(Purpose.REVIEW, reviewer)
        feed = here.hub.subscribe(session=SessionId("s"))
        await here.say("a", "s")
        await here.answer_next("A")
        child = await child_of(here)
        thought = await here.started(1)
        assert (thought.job.session, thought.job.preferences.model) == (child, "small")
        assert thought.job.assignment is not None
        await here.answer_next("saved")
        await until(lambda: ended(here))
        head = await here.session(child)
        assert (head.phase, head.end_cause) == (Phase.ENDED, EndCause.DONE)
        assert head.assignment is not None
        assert (head.assignment.parent, head.assignment.turn) == ("s", "a")
        assert facts(here.journal) == []
        assert here.journal.engine.outgoing(f"{PREFIX}review:s:a") is not None
        assert [each.end for each in feed.waiting() if isinstance(each, ChildEnded)] == [ChildEnd.DONE]
        assert (await here.session("s")).phase == Phase.IDLE


async def test_person_is_not_delayed_by_a_review() -> None:
    async with world(directory=REVIEWED) as here:
        here.system.child_sessions.register(Purpose.REVIEW, Reviewer())
        await here.say("a", "s")
        await here.answer_next("A")
        await here.started(1)  # the review's
        receipt = await here.say("b", "s")
        assert receipt.position == 0
        await here.started(2)
        assert here.agent.started[1].job.turn == "b"


async def test_child_asks_nobody() -> None:
    async with world(directory=REVIEWED) as here:
        here.system.child_sessions.register(Purpose.REVIEW, Reviewer())
        await here.say("a", "s")
        await here.answer_next("A")
        child = await child_of(here)
        await here.call_next(needs_leave("x"), asks("y"), does("z"))
        deed = await here.finish_next()
        assert deed.job.only == ("memory",)
        await here.answer_next("done")
        await until(lambda: ended(here))
        outcomes = [
            each.record.outcome
            for each in await here.desk.records(child, duty_turn(here, child))
            if hasattr(each.record, "outcome")
        ]
        assert outcomes == [CallOutcome.DENIED, CallOutcome.DENIED, CallOutcome.OK]


def duty_turn(here: SessionHarness, child: SessionId) -> TurnId:
    [first, *_] = here.journal.engine.log(child)[1:]
    return TurnId(getattr(first.record, "turn"))  # noqa: B009 - records differ


async def test_same_duty_starts_one_session() -> None:
    reviewer = Reviewer()
    async with world() as here:
        children = here.system.child_sessions
        children.register(Purpose.REVIEW, reviewer)
        await children.request(duty())
        children.start((duty(),))
        await here.started(1)
        await here.settle()
        assert len(here.agent.started) == 1
        await here.answer_next("done")
        await until(lambda: ended(here))
        children.start((duty(),))  # a duty that was read before it was deleted
        await until(lambda: ended(here, 2))
        assert (reviewer.planned, len(here.agent.started)) == (1, 0)


async def test_next_daemon_continues_the_same_child() -> None:
    journal, first, second = LoopJournal(), Reviewer(), Reviewer()
    async with world(journal) as here:
        here.system.child_sessions.register(Purpose.REVIEW, first)
        await here.system.child_sessions.request(duty())
        await here.started(1)
    async with world(journal) as here:
        here.system.child_sessions.register(Purpose.REVIEW, second)
        here.system.take_up()
        await here.answer_next("done")
        await until(lambda: ended(here))
    assert (first.planned, second.planned) == (1, 0)
    assert [type(each) for each in second.outcomes] == [TurnAnswered]
    assert facts(journal) == []


async def test_child_that_a_boot_loop_interrupted_continues_when_the_loop_is_over() -> None:
    journal, second = LoopJournal(), Reviewer()
    async with world(journal) as here:
        here.system.child_sessions.register(Purpose.REVIEW, Reviewer())
        await here.system.child_sessions.request(duty())
        await here.started(1)
    async with world(journal) as here:
        here.system.child_sessions.register(Purpose.REVIEW, second)
        here.system.hold(boot_loop=True)
        here.system.take_up()
        while (await here.session(duty().child)).phase is not Phase.RESUME_PENDING:
            await here.settle()
        here.system.hold(boot_loop=False)
        await here.answer_next("done")
        await until(lambda: ended(here))
    assert [type(each) for each in second.outcomes] == [TurnAnswered]


async def test_child_whose_end_was_not_reported_is_reported_by_the_next_daemon() -> None:
    journal, second = LoopJournal(), Reviewer()
    async with world(journal) as here:
        here.system.child_sessions.register(Purpose.REVIEW, Reviewer())
        await here.system.child_sessions.request(duty())
        await here.started(1)
        await here.system.child_sessions.close()
        await here.answer_next("done")
    assert len(facts(journal)) == 1
    async with world(journal) as here:
        here.system.child_sessions.register(Purpose.REVIEW, second)
        here.system.take_up()
        await until(lambda: ended(here))
        assert here.agent.started == []
    assert len(second.outcomes) == 1


async def test_nothing_to_do_leaves_no_session() -> None:
    async with world() as here:
        here.system.child_sessions.register(Purpose.REVIEW, Reviewer(idle=True))
        await here.system.child_sessions.request(duty())
        await until(lambda: ended(here))
        with pytest.raises(UnknownSessionError):
            await here.session(duty().child)
        assert facts(here.journal) == []


SPENT = Failure(kind=FailureKind.BUDGET, message="spent")


async def test_failed_child_ends_too() -> None:
    reviewer = Reviewer()
    async with world() as here:
        here.system.child_sessions.register(Purpose.REVIEW, reviewer)
        await here.system.child_sessions.request(duty())
        thought = await here.started(1)
        thought.fail(SPENT)
        await until(lambda: ended(here))
        assert (await here.session(duty().child)).end_cause is EndCause.DONE
        assert [getattr(each, "failure", None) for each in reviewer.outcomes] == [SPENT]


async def test_few_work_at_the_same_time_and_those_of_one_session_in_order() -> None:
    async with world() as here:
        children = here.system.child_sessions
        children.register(Purpose.REVIEW, Reviewer())
        for name, parent in (("a", "p"), ("b", "p"), ("c", "q"), ("d", "r")):
            await children.request(duty(name, parent))
        await here.started(2)
        await here.settle()
        assert [each.job.session for each in here.agent.started] == [duty("a").child, duty("c").child]
        assert children.figures().waiting == 2
        for _ in range(4):
            await here.answer_next("done")
        await until(lambda: ended(here, 4))


async def test_last_step_offers_no_tools() -> None:
    async with world() as here:
        here.system.child_sessions.register(Purpose.REVIEW, Reviewer(max_steps=1))
        await here.system.child_sessions.request(duty())
        await here.call_next(does("x"))
        await here.finish_next()
        assert (await here.started(1)).job.last


async def test_automatic_message_without_an_assignment_starts_no_session() -> None:
    async with world() as here:
        with pytest.raises(HermesError):
            await here.say("a", "s", source=Source(platform="api", automatic=True))
        assert here.live() == set()


async def test_children_are_erased_with_their_conversation() -> None:
    async with world(directory=REVIEWED) as here:
        here.system.child_sessions.register(Purpose.REVIEW, Reviewer())
        await here.say("a", "s")
        await here.answer_next("A")
        child = await child_of(here)
        await here.answer_next("saved")
        await until(lambda: ended(here))
        await here.desk.erase(SessionId("s"))
        assert here.journal.engine.head(child) is None
