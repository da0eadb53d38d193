"""Steps of a session that pursues a goal: set it, judge it after each turn, start the next turn. Pure."""

from __future__ import annotations

from hermes.domain.child.child import Purpose, child_id
from hermes.domain.events import Notice
from hermes.domain.goal.goal import Goal, GoalState, in_words, judged, next_message
from hermes.domain.ids import InboundKey, TurnId
from hermes.domain.records import ChildStarted, GoalChanged, Posted, TurnFailed, TurnFinished
from hermes.domain.session import acceptance
from hermes.domain.session.builder import encode, publishing, refuse, then
from hermes.domain.session.protocol import JudgeGoal, SetGoal, Step, TurnLimits
from hermes.domain.session.state import Session, is_open
from hermes.domain.session.turn_role import role_of_turn
from hermes.domain.source import Source
from hermes.domain.turn.submission import Busy, Submission
from hermes.domain.values import replace


def set_goal(session: Session, event: SetGoal, now: float, _limits: TurnLimits) -> Step:
    if not is_open(session):
        return refuse(session, f"session {session.id} is {session.phase}")
    goal = event.goal
    if goal is not None and session.goal is None:
        goal = replace(goal, usd_before=session.usage.cost_usd)
    return then(Step(session=session), GoalChanged(at=now, goal=goal, reason=event.reason))


def when_turn_ended(before: Session, decided: Step, now: float) -> Step:
    """Start the judge of the goal with the end of a turn, or pause the goal after a turn that failed."""
    turn, goal = before.turn, decided.session.goal
    if turn is None or goal is None or goal.state is not GoalState.ACTIVE or before.assignment is not None:
        return decided
    for record in decided.records:
        if isinstance(record, TurnFailed) and record.turn == turn.id:
            paused = replace(goal, state=GoalState.PAUSED)
            return then(decided, GoalChanged(at=now, goal=paused, reason="the turn was stopped or failed"))
        if isinstance(record, TurnFinished) and record.turn == turn.id and not record.handed:
            return then(decided, _judge(before, turn.id, goal, now))
    return decided


def _judge(before: Session, turn: TurnId, goal: Goal, now: float) -> ChildStarted:
    key = f"{Purpose.GOAL}:{before.id}:{turn}"
    assert before.turn is not None
    return ChildStarted(
        at=now,
        turn=turn,
        child=child_id(key, now),
        key=key,
        purpose=Purpose.GOAL,
        by=before.turn.by,
        name=before.turn.name,
        role=role_of_turn(before),
        task=goal.text,
    )


def judge_goal(session: Session, event: JudgeGoal, now: float, limits: TurnLimits) -> Step:
    """Take a verdict, once for each turn. A goal that is not reached starts its next turn in the same transaction."""
    goal = session.goal
    if goal is None or goal.state is not GoalState.ACTIVE or goal.text != event.text or goal.judged == event.turn:
        return Step(session=session)
    if not is_open(session) or session.turn is not None or session.queue:
        return Step(session=session)  # a person has written since: the end of that turn is judged
    after = judged(goal, event.verdict, event.turn, session.usage.cost_usd)
    changed = then(Step(session=session), GoalChanged(at=now, goal=after, reason="its judge has answered"))
    if after.state is not GoalState.ACTIVE:
        return _told(changed, after, event.turn, now)
    submission = Submission(
        turn=TurnId(f"goal_{event.turn[-32:]}"),
        messages=(encode(role="user", content=next_message(after)),),
        source=Source(platform=session.platform, automatic=True, role=event.role, name="goal"),
        session=session.id,
        inbound=InboundKey(f"goal:{session.id}:{event.turn}"),
        fingerprint=b"goal",
        busy=Busy.QUEUE,
    )
    delivered = acceptance.deliver(changed.session, submission, now, limits)
    return replace(delivered, records=(*changed.records, *delivered.records))


def _told(changed: Step, goal: Goal, turn: TurnId, now: float) -> Step:
    """Tell the person that the goal has ended."""
    session, text = changed.session, in_words(goal)
    if session.place is None:
        return publishing(changed, Notice(session=session.id, text=text))
    posted = Posted(at=now, id=f"goal:{session.id}:{turn}", place=session.place, text=text, shown=text)
    return then(changed, posted)
