"""Ids of responses and runs hold all it takes to find them, and nothing else is one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.adapters.http.problem import ProblemError
from hermes.adapters.openai_api.turns.token_parameter import read_token
from hermes.domain.ids import RESPONSE, RUN, SESSION_ID_PATTERN, SessionId, TurnId, TurnToken

TOKEN = TurnToken(session=SessionId("a:b.c"), turn=TurnId("t1"))


@given(st.from_regex(SESSION_ID_PATTERN, fullmatch=True), st.from_regex("[0-9a-f]{24}", fullmatch=True))
def test_what_goes_in_comes_out(session: str, turn: str) -> None:
    token = TurnToken(session=SessionId(session), turn=TurnId(turn))
    assert read_token(token.text(RUN), RUN) == token


@pytest.mark.parametrize(
    "text",
    [
        "",
        RUN,
        "run_!!!!",
        "run_AAAA",
        TOKEN.text(RESPONSE),
        TOKEN.text(RUN) + "=",
        TOKEN.text(RUN)[:-1],
        "run_" + "A" * 600,
    ],
)
def test_anything_else_is_not_found(text: str) -> None:
    with pytest.raises(ProblemError) as refused:
        read_token(text, RUN)
    assert (refused.value.problem.status, refused.value.problem.code) == (404, "run_not_found")
