"""`hermes trace`: one line per message, its steps and gaps."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermes.cli.main import main
from hermes.domain.ids import inbound_of
from tests.cli.fake_admin import Answer, FakeAdmin, listing
from tests.cli.test_chat import terminal
from tests.cli.test_inspect import session

NOW = 1_700_000_000.0


def step(what: str, **changes: Any) -> dict[str, Any]:
    return {"at": NOW + 0.25, "what": what, "detail": "", "took_s": None, "problem": "", **changes}


GAP = "the daemon was killed; nothing was recorded for 12.0 s"
LINE = {
    "at": NOW,
    "session": "s1",
    "turn": "1f2e3d4c5b6a",
    "state": "sent",
    "platform": "telegram",
    "inbound": "telegram:77",
    "into": None,
    "attempts": 2,
    "interruptions": 1,
    "model_calls": 3,
    "tool_calls": 1,
    "took_s": 14.0,
    "sent": ["501", "502"],
    "steps": [
        step("accepted"),
        step("interrupted", took_s=12.0, problem=GAP),
        step("sent", detail="telegram 42: 501"),
    ],
    "problems": [GAP],
}
PLAIN = {**LINE, "turn": "aaaa", "inbound": None, "problems": [], "steps": [step("accepted")], "sent": []}


def test_a_message_is_one_line_and_its_steps(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.routes["GET /trace/telegram%3A77"] = Answer(body={"messages": [LINE]})
    assert main(["trace", "telegram:77"]) == 0
    head, line, empty, turn, *steps = capsys.readouterr().out.splitlines()
    assert head.split() == [
        "ACCEPTED",
        "MESSAGE",
        "TURN",
        "STATE",
        "TOOK",
        "ATTEMPTS",
        "MODEL",
        "TOOLS",
        "SENT",
        "GAPS",
    ]
    assert "telegram:77  1f2e3d4c5b6a  sent    14s         2      3      1  501, 502  the daemon was killed" in line
    assert (empty, turn) == (
        "",
        "Turn 1f2e3d4c5b6a of s1, by telegram, as telegram:77: 2 attempts, 1 interruption.",
    )
    assert [each.split(maxsplit=1)[1] for each in steps] == [
        "accepted",
        f"12s  interrupted  <- {GAP}",
        "sent telegram 42: 501",
    ]
    assert ".250" in steps[0]


def test_given_key_is_shown_in_full_and_others_as_a_digest(
    admin: FakeAdmin, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = {**LINE, "inbound": inbound_of("my-key")}
    admin.routes["GET /trace/my-key"] = Answer(body={"messages": [mine]})
    assert main(["trace", "my-key"]) == 0
    told = capsys.readouterr().out
    assert "my-key   1f2e3d4c5b6a" in told
    assert "as my-key: 2 attempts" in told
    admin.routes["GET /trace/s1"] = Answer(body={"messages": [mine]})
    assert main(["trace", "s1"]) == 0
    told = capsys.readouterr().out
    assert f"{inbound_of('my-key')[:16]}…  1f2e3d4c5b6a" in told
    assert inbound_of("my-key") not in told


def test_a_session_is_one_line_a_message_and_its_steps_are_asked_for(
    admin: FakeAdmin, capsys: pytest.CaptureFixture[str]
) -> None:
    admin.routes["GET /trace/s1"] = Answer(body={"messages": [PLAIN, LINE]})
    assert main(["trace", "s1", "--limit", "2"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert admin.asked[-1].path == "/trace/s1?limit=2"
    assert main(["trace", "s1", "--steps"]) == 0
    assert "Turn aaaa of s1" in capsys.readouterr().out
    assert main(["trace", "s1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"messages": [PLAIN, LINE]}


def test_a_session_may_be_given_by_its_beginning_or_as_the_last(
    admin: FakeAdmin, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = "20260102_030405_1a2b3c4d"
    unknown = {"error": {"message": "there is no such thing", "code": "session_not_found"}}
    for name in ("1a2b", "telegram%3A5", "a%20b"):
        admin.routes[f"GET /trace/{name}"] = Answer(status=404, body=unknown)
        admin.routes[f"GET /sessions/{name}"] = Answer(status=404, body=unknown)
    admin.routes["GET /api/sessions"] = listing(session(whole))
    admin.routes[f"GET /trace/{whole}"] = Answer(body={"messages": []})
    for given in ("1a2b", "-"):
        assert main(["trace", given]) == 0
        assert capsys.readouterr().out == "There are no messages in this session yet.\n"
    for given in ("telegram:5", "a b"):
        assert main(["trace", given]) == 1
        assert capsys.readouterr().err == "hermes: there is no such thing; `hermes sessions` lists them\n"


def test_gaps_are_red_on_a_terminal(admin: FakeAdmin) -> None:
    admin.routes["GET /trace/s1"] = Answer(body={"messages": [LINE]})
    with terminal("trace", "s1", TERM="xterm-256color", COLUMNS="200") as screen:
        shown = screen.expect("telegram 42")
    red = [line for line in shown.splitlines() if "\x1b[31m" in line]
    assert len(red) >= 2
    assert all("the daemon was killed" in line or "interrupted" in line or "nothing was" in line for line in red)


def test_equal_gaps_are_counted(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    gaps = ["overloaded (503)"] * 4 + [GAP]
    admin.routes["GET /trace/telegram%3A77"] = Answer(body={"messages": [{**LINE, "problems": gaps}]})
    assert main(["trace", "telegram:77"]) == 0
    assert f"4 x overloaded (503); {GAP}" in capsys.readouterr().out
