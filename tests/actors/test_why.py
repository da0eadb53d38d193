"""Why a session is as it is, and what whoever asks can do about it."""

from __future__ import annotations

from hermes.actors.why import explain
from tests.adapters.a_call import a_call, waiting
from tests.fakes import a_session

NOW = 2_000_000_000.0


def test_a_session_that_waits_says_how_to_let_it_go_on() -> None:
    permission = waiting(a_session("s"), "t1")
    assert "\nTo let it go on: `hermes approve s` or `hermes deny s`.\n" in explain(permission, NOW)
    question = waiting(a_session("s"), "t1", a_call(question="Which?", choices=("a", "b")))
    assert "\nTo let it go on: `hermes answer s TEXT` (a, b).\n" in explain(question, NOW)
    assert "To let it go on" not in explain(a_session("s"), NOW)
    assert "hermes answer s TEXT`.\n" in explain(waiting(a_session("s"), "t1", a_call(question="Why?")), NOW)
