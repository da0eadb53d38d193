"""`hermes stop`, `end`, `suspend`, `resume`, `compress`, `delete`, `dead-letters` and `grants`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import Any

import pytest

from hermes.cli.main import main
from hermes.config.home import Home, is_free, lock, prepare
from tests.cli.conftest import Hermes
from tests.cli.fake_admin import NOBODY, Answer, Asked, FakeAdmin
from tests.cli.test_chat import terminal
from tests.cli.test_inspect import VIEW, session


@pytest.mark.parametrize(
    ("verb", "phase", "said"),
    [
        ("end", "ended", "Ended s1 (asked for). The next message starts a new session."),
        (
            "suspend",
            "suspended",
            "Suspended s1 (asked for) until `hermes resume s1`. The next message starts a new session.",
        ),
        ("resume", "running", "Resumed s1; it is running now and accepts messages again."),
    ],
)
def test_a_verb_is_done_to_one_session(
    admin: FakeAdmin, capsys: pytest.CaptureFixture[str], verb: str, phase: str, said: str
) -> None:
    changed = {"session": session("s1", phase=phase, reason="asked for")}
    admin.routes[f"POST /sessions/s0/{verb}"] = Answer(body=changed)
    assert main([verb, "s0", "--reason", "by mail"]) == 0
    assert capsys.readouterr().out == f"{said}\n"
    assert [asked.body for asked in admin.asked if asked.method == "POST"] == [{"reason": "by mail"}]
    assert main([verb, "s0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == changed


def test_resume_names_the_session_that_replaced_it(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    left = session("s1", phase="suspended", successor="s2")
    admin.routes["GET /sessions/s1"] = Answer(body={**VIEW, "session": left})
    admin.routes["GET /sessions/s2"] = Answer(body={**VIEW, "session": session("s3")})  # it was compressed since
    resumed = {"session": session("s1", phase="idle")}
    admin.routes["POST /sessions/s1/resume"] = Answer(body=resumed)
    assert main(["resume", "s1"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Resumed s1; it is idle now and accepts messages sent to its id (`hermes chat -r s1`).")
    assert said.endswith("s3 replaced it meanwhile and is unchanged.\n")
    admin.routes["POST /sessions/s1/resume"] = Answer(body={"session": session("s1", platform="telegram")})
    assert main(["resume", "s1"]) == 0
    assert "the chat stays with that session until someone sends /resume s1 there." in capsys.readouterr().out
    admin.routes["POST /sessions/s1/resume"] = Answer(body=resumed)
    assert main(["resume", "s1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {**resumed, "took_over": "s3"}


def test_end_reports_running_processes(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.routes["POST /sessions/s1/end"] = Answer(body={"session": session("s1", phase="ended", reason="asked for")})
    listed = [{"pid": 1, "running": True}, {"pid": 2, "running": True}, {"pid": 3, "running": False}]
    admin.routes["GET /api/sessions/s1/processes"] = Answer(body={"processes": listed})
    assert main(["end", "s1"]) == 0
    assert "2 background processes run on; `hermes ps --running`" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("running", "after", "said"),
    [
        (None, {}, "Nothing was running in s1."),
        ("t1", {}, "Stopped turn t1 of s1; no message waits."),
        (
            "t1",
            {"running_turn": "t2", "queued": 1},
            "Stopped turn t1 of s1; turn t2 is running now; 1 message waits.",
        ),
        ("summary", {"queued": 1}, "Stopped the summary of s1; 1 message waits."),
        ("t1", {"phase": "suspended", "queued": 2}, "Stopped turn t1 of s1; 2 messages wait."),
    ],
)
def test_stop_reports_the_stopped_turn(
    admin: FakeAdmin, capsys: pytest.CaptureFixture[str], running: str | None, after: dict[str, Any], said: str
) -> None:
    summary = running == "summary"
    before = session("s1", running_turn=None if summary else running, compressing=summary)
    admin.routes["GET /sessions/s0"] = Answer(body={"session": before})
    stopped = {"session": session("s1", **after)}
    admin.routes["POST /sessions/s0/stop"] = Answer(body=stopped)
    assert main(["stop", "s0", "--reason", "by mail"]) == 0
    assert capsys.readouterr().out == f"{said}\n"
    assert admin.asked[-1].body == {"reason": "by mail"}
    assert main(["stop", "s0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == stopped


def test_an_empty_session_does_not_stop_the_daemon(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stop", ""]) == 2
    assert "the session id is empty" in capsys.readouterr().err
    assert admin.asked == []


def test_stop_waits_until_the_home_is_free(home: Home, admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    home.marker.write_text("1\n")  # the stand-in's socket is there already, as if a daemon had made the home
    prepare(home)
    held = lock(home)

    def leave() -> None:
        admin.close()  # the socket goes first,
        held.close()  # the lock last

    leaving = threading.Thread(target=leave)

    def stop(_: Asked) -> Answer:
        leaving.start()
        return Answer(status=202, body={"stopping": True})

    admin.routes["POST /stop"] = stop
    listed = [{"pid": os.getpid(), "running": True}, {"pid": NOBODY, "running": True}]
    admin.routes["GET /api/processes"] = Answer(body={"processes": listed})
    assert main(["stop"]) == 0
    assert is_free(home)
    leaving.join(30)
    assert capsys.readouterr().out == (
        f"The daemon on {home.data_dir} (pid {NOBODY}) has stopped.\n"
        "1 background process runs on (processes.keep_on_stop); `hermes ps --running` lists them after the next "
        "start.\n"
    )


def test_a_daemon_that_does_not_go_is_reported(
    home: Home, admin: FakeAdmin, capsys: pytest.CaptureFixture[str]
) -> None:
    admin.routes["POST /stop"] = Answer(status=202, body={"stopping": True})
    assert main(["stop", "--timeout", "3"]) == 75
    assert capsys.readouterr().err == f"hermes: the daemon (pid {NOBODY}) is still stopping after 3 s\n"


def test_stop_waits_for_the_process_as_well(home: Home, admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    leaving = threading.Thread(target=admin.close)  # nobody answers any more, and nobody holds the home

    def stop(_: Asked) -> Answer:
        leaving.start()
        return Answer(status=202, body={"stopping": True})

    admin.routes["POST /stop"] = stop
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as daemon:
        admin.routes["GET /info"] = Answer(body={"pid": daemon.pid})
        assert main(["stop", "--timeout", "3"]) == 75
        daemon.communicate(b"\n")
    leaving.join(30)
    assert f"the daemon (pid {daemon.pid}) is still stopping" in capsys.readouterr().err


def test_compress_asks_for_a_summary(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.routes["POST /api/sessions/s1/compress"] = Answer(status=202, body={"session_id": "s1"})
    assert main(["compress", "s1", "the", "decisions"]) == 0
    assert capsys.readouterr().out.startswith("Summarising s1; new messages wait until it is done.")
    assert admin.asked[-1].body == {"topic": "the decisions"}
    assert main(["compress", "s1", "--json"]) == 0
    assert admin.asked[-1].body == {}


def test_delete_lists_sessions_and_asks(admin: FakeAdmin, hermes: Hermes) -> None:
    family = [session("s0", successor="s1", phase="ended"), session("s1", parent="s0", created_at=1_700_000_001.0)]
    admin.routes |= {f"GET /sessions/{each['id']}": Answer(body={**VIEW, "session": each}) for each in family}
    admin.routes["DELETE /api/sessions/s0"] = Answer(body={"id": "s0", "deleted": True})
    done = hermes("delete", "s0")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "hermes: nothing was deleted; `hermes delete s0 --yes` deletes without asking\n"
    assert all(asked.method == "GET" for asked in admin.asked)
    done = hermes("delete", "s0", "--yes")
    assert (done.returncode, done.stdout) == (0, "Deleted the conversation of s0.\n")
    with terminal("delete", "s0") as person:
        person.expect("This deletes a whole conversation: 2 sessions.")
        person.expect("  s0 (ended, 2 messages)\r\n  s1 (idle, 2 messages)\r\n")
        person.expect("Delete it? [y/N] ")
        person.type("n\n")
        person.expect("nothing was deleted")
    assert [asked.method for asked in admin.asked].count("DELETE") == 1


def test_dead_letters_are_listed_and_replayed(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    letter = {"id": "d1", "session": "s1", "turn": "t1", "problem": "ValueError: no", "at": 1_700_000_000.0}
    admin.routes["GET /dead-letters"] = Answer(body={"dead_letters": [letter]})
    admin.routes["POST /dead-letters/d1/replay"] = Answer(body={"session": "s1", "turn": "t1"})
    assert main(["dead-letters"]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith("s1       t1    ValueError: no")
    assert main(["dead-letters", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"dead_letters": [letter]}
    assert main(["dead-letters", "replay", "d1"]) == 0
    assert capsys.readouterr().out == "d1 was given to its session again.\n"
    for argv in (["dead-letters", "--json", "replay", "d1"], ["dead-letters", "replay", "d1", "--json"]):
        assert main(argv) == 0
        assert json.loads(capsys.readouterr().out) == {"session": "s1", "turn": "t1"}


def test_permanent_grants_are_listed_and_withdrawn(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.routes["GET /grants"] = Answer(body={"grants": ["recursive-delete"]})
    admin.routes["POST /grants/recursive-delete/withdraw"] = Answer(body={"withdrawn": "recursive-delete"})
    assert main(["grants"]) == 0
    assert capsys.readouterr().out == "recursive-delete\n"
    assert main(["grants", "withdraw", "recursive-delete"]) == 0
    assert capsys.readouterr().out == "Withdrawn: commands of kind recursive-delete need approval again.\n"
    assert main(["grants", "withdraw", "recursive-delete", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"withdrawn": "recursive-delete"}


def test_undelivered_message_is_listed_and_replayed(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    place = {"platform": "telegram", "chat": "42", "thread": "", "message": ""}
    letter = {"id": "reply:t1", "session": "", "turn": "", "problem": "the chat is gone", "at": 1_700_000_000.0}
    admin.routes["GET /dead-letters"] = Answer(body={"dead_letters": [{**letter, "kind": "reply", "place": place}]})
    admin.routes["POST /dead-letters/reply%3At1/replay"] = Answer(body={"handling": "delivering"})
    assert main(["dead-letters"]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith("reply to telegram 42  -        -     the chat is gone")
    assert main(["dead-letters", "replay", "reply:t1"]) == 0
    assert main(["dead-letters", "replay", "reply:"]) == 0
    assert capsys.readouterr().out == "reply:t1 is being delivered again.\n" * 2
    admin.routes["GET /dead-letters"] = Answer(body={"dead_letters": [letter, {**letter, "id": "reply:t2"}]})
    assert main(["dead-letters", "replay", "reply:"]) == 1
    assert "reply: is ambiguous: it could be reply:t1, reply:t2; type more characters" in capsys.readouterr().err


def test_waiting_message_is_listed_and_dropped(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    place = {"platform": "telegram", "chat": "42", "thread": "", "message": ""}
    waiting = {"id": "reply:t1", "kind": "reply", "place": place, "session": "s1", "turn": "t1", "final": True}
    waiting |= {"tries": 3, "problem": "no route", "at": 1_700_000_000.0}
    admin.routes["GET /outbox"] = Answer(body={"outbox": [waiting]})
    admin.routes["POST /outbox/reply%3At1/drop"] = Answer(body={"dead_letter": {"id": "reply:t1"}})
    assert main(["outbox"]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith("reply to telegram 42      3  s1       no route")
    assert main(["outbox", "drop", "reply:t1"]) == 1  # nobody can be asked
    assert "--yes" in capsys.readouterr().err
    assert [asked.method for asked in admin.asked].count("POST") == 0
    assert main(["outbox", "drop", "reply", "--yes"]) == 0
    assert "hermes dead-letters replay reply:t1" in capsys.readouterr().out
    admin.routes["GET /outbox"] = Answer(body={"outbox": []})
    assert main(["outbox"]) == 0
    assert capsys.readouterr().out == "Everything is delivered.\n"


def test_dead_letter_is_deleted_after_a_question(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.routes["GET /dead-letters"] = Answer(body={"dead_letters": [{"id": "d1"}]})
    admin.routes["DELETE /dead-letters/d1"] = Answer(body={"deleted": "d1"})
    assert main(["dead-letters", "delete", "d1"]) == 1
    assert "nothing was deleted" in capsys.readouterr().err
    assert main(["dead-letters", "delete", "d1", "--yes"]) == 0
    assert capsys.readouterr().out == "d1 was deleted.\n"


def test_empty_list_of_dead_letters(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.routes["GET /dead-letters"] = Answer(body={"dead_letters": []})
    assert main(["dead-letters"]) == 0
    assert capsys.readouterr().out == "There are no dead letters.\n"
