"""`hermes pairing` and `hermes send`: requests to the daemon, and output."""

from __future__ import annotations

import io
import json
import sys

import pytest

from hermes.cli.main import main
from tests.cli.fake_admin import Answer, Asked, FakeAdmin

PLACE = {"platform": "telegram", "chat": "7", "thread": "", "message": ""}
EVE = {"platform": "telegram", "user": "8", "name": "Eve\x1b[2J", "at": 1.0, "role": "guest"}


def test_pairing_lists_requests_and_paired_users(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    body = {"pending": [EVE], "approved": [{**EVE, "user": "9"}], "locked_until": 4e9}
    admin.routes["GET /pairing"] = Answer(body=body)
    assert main(["pairing", "list"]) == 0
    head, asks, friend, locked = capsys.readouterr().out.splitlines()
    assert head.split() == ["PLATFORM", "USER", "STATE", "ROLE", "SINCE", "NAME"]
    assert asks.split()[:3] == ["telegram", "8", "asks"]
    assert "\x1b" not in asks
    assert "paired" in friend
    assert "Approval is locked until" in locked
    assert main(["pairing", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == body


def test_empty_pairing_list(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.routes["GET /pairing"] = Answer(body={"pending": [], "approved": [], "locked_until": None})
    assert main(["pairing", "list"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("There are no paired users and no pairing requests.\nNo chat platform is set up; ")
    admin.routes["GET /info"] = Answer(body={"platforms": [{"name": "telegram", "state": "running", "problem": ""}]})
    assert main(["pairing", "list"]) == 0
    assert capsys.readouterr().out == "There are no paired users and no pairing requests.\n"


def test_pairing_approve_role_and_revoke(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.routes["POST /pairing/approve"] = Answer(body={"approved": {**EVE, "name": "Eve"}})
    admin.routes["POST /pairing/revoke"] = Answer(body={"revoked": {"platform": "telegram", "user": "8"}})
    assert main(["pairing", "approve", "telegram", "abcd2345"]) == 0
    assert admin.asked[-1].body == {"platform": "telegram", "code": "abcd2345", "role": "guest"}
    assert (
        capsys.readouterr().out
        == "Eve (user 8) can now talk to the bot on telegram, with the role guest, and was notified.\n"
    )
    admin.routes["POST /pairing/role"] = Answer(body={"approved": {**EVE, "role": "user"}})
    assert main(["pairing", "role", "telegram", "8", "user"]) == 0
    assert admin.asked[-1].body == {"platform": "telegram", "user": "8", "role": "user"}
    assert capsys.readouterr().out == "User 8 now has the role user on telegram.\n"
    assert main(["pairing", "revoke", "telegram", "8"]) == 0
    assert capsys.readouterr().out == "User 8 can no longer talk to the bot on telegram.\n"
    admin.routes["POST /pairing/revoke"] = Answer(body={"revoked": {"left_home": True}})
    assert main(["pairing", "revoke", "telegram", "8"]) == 0
    assert "was the home channel. There is none now" in capsys.readouterr().out


def answering(admin: FakeAdmin, *states: dict[str, object]) -> None:
    """It takes a post and then says these things about it, the last one for ever."""
    left = list(states)

    def progress(_: Asked) -> Answer:
        return Answer(body=left.pop(0) if len(left) > 1 else left[0])

    def take(asked: Asked) -> Answer:
        admin.routes[f"GET /posts/{asked.body['id']}"] = progress
        return Answer(status=202, body={"id": asked.body["id"], "place": PLACE})

    admin.routes["POST /posts"] = take


def test_send_waits_for_delivery_and_reports_failures(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    waiting = {"state": "waiting", "tries": 1, "problem": "no route"}
    sent = {"state": "sent", "messages": ["5"], "sent_at": 1.0, "repeated": False}
    answering(admin, {**waiting, "problem": ""}, waiting, waiting, sent)
    assert main(["send", "--chat", "7:3", "two", "words"]) == 0
    said = capsys.readouterr()
    assert said.out == "Delivered to telegram, chat 7.\n"
    assert said.err == "not delivered yet: no route; the daemon tries again\n"
    body = next(each.body for each in admin.asked if each.path == "/posts")
    assert (body["chat"], body["thread"], body["text"]) == ("7", "3", "two words")


def test_send_reports_errors_on_stderr(
    admin: FakeAdmin, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(admin, {"state": "failed", "problem": "the chat is gone", "dead_letter": "send:x"})
    monkeypatch.setattr(sys, "stdin", io.StringIO("from a pipe\n"))
    assert main(["send", "--home", "--json"]) == 75
    said = capsys.readouterr()
    assert said.out == ""
    assert "the chat is gone" in said.err
    assert "dead-letters replay send:x" in said.err
    answering(admin, {"state": "waiting", "tries": 3, "problem": "no route"})
    assert main(["send", "--timeout", "0", "hello"]) == 75
    assert (
        "not delivered to telegram, chat 7 yet: no route (stored; the daemon keeps trying)" in capsys.readouterr().err
    )


def test_send_refuses_an_empty_message(
    admin: FakeAdmin, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(" \n"))
    assert main(["send"]) == 2
    assert "the message is empty" in capsys.readouterr().err
    assert admin.asked == []
