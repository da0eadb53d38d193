"""What a turn waits for, for whoever sees nothing but an answer's text."""

from __future__ import annotations

from hermes.adapters.openai_api.turns import pending
from hermes.domain.ids import TurnId
from hermes.domain.turn.tool_call import Gate, Verdict
from tests.adapters.a_call import a_call, waiting
from tests.support.fakes import a_session

T = TurnId("t1")


def test_a_permission_is_asked_for_once_with_the_ways_to_give_it() -> None:
    gate = Gate(verdict=Verdict.ASK, reason="it deletes", rules=("delete",))
    asked = pending.asked_in(waiting(a_session("s"), T, a_call(name="terminal", summary="rm x", gate=gate)))
    assert asked is not None
    said = pending.in_words(asked, T, may_approve=True)
    assert said.count("May I run this?") == 1
    assert said.endswith("Reply with yes (this once), session, always or no.")


def test_call_without_standing_grant_offers_only_once() -> None:
    gate = Gate(verdict=Verdict.ASK, reason="it deletes", once=True)
    asked = pending.asked_in(waiting(a_session("s"), T, a_call(gate=gate)))
    assert asked is not None
    assert "Reply with yes (this once) or no." in pending.in_words(asked, T, may_approve=True)


def test_client_that_may_not_approve_is_told_who_decides_and_how() -> None:
    asked = pending.asked_in(waiting(a_session("s"), T, a_call()))
    assert asked is not None
    said = pending.in_words(asked, T, may_approve=False)
    assert "`hermes approve s`" in said
    assert "Reply with yes" not in said
