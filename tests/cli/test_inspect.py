"""`hermes ps`, `show`, `tail` and `why`."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from hermes.cli.main import main
from hermes.config.home import Home
from tests.cli.conftest import Hermes, command
from tests.cli.fake_admin import NOBODY, Answer, Asked, FakeAdmin, Respond, Stream, listing, sse

ACTOR = {
    "kind": "session",
    "name": "s1",
    "state": "running",
    "mailbox": 2,
    "oldest_s": 0.25,
    "handled": 7,
    "slowest_s": 0.003,
    "age_s": 7384.0,
    "last_error": "",
}
PARKED = {
    **ACTOR,
    "name": "s2",
    "state": "parked",
    "mailbox": 0,
    "last_error": "ValueError: [bold]no\x1b[2J\nsecond line",
}


def session(name: str, **changes: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 30, "completion_tokens": 12}
    return {
        "id": name,
        "key": f"agent:main:api:dm:{name}",
        "phase": "idle",
        "reason": "the turn finished",
        "since": 1_700_000_000.0,
        "created_at": 1_700_000_000.0,
        "active_at": 1_700_000_000.0,
        "platform": "api",
        "parent": None,
        "successor": None,
        "running_turn": None,
        "queued": 0,
        "interruptions": 0,
        "messages": 2,
        "turns": 1,
        "usage": usage,
        "last_failure": None,
        **changes,
    }


VIEW = {
    "session": session("s1", running_turn="t9", last_failure={"kind": "timeout", "message": "it took too long"}),
    "why": "It is idle because its last turn finished.\nIt continues s0.",
    "lineage": ["s0", "s1"],
    "live": True,
    "mailbox": 1,
    "transcript": [
        {
            "seq": 1,
            "at": 1_700_000_000.0,
            "turn": "t1",
            "role": "user",
            "content": "hello [b]there[/b]\x1b]0;owned\x07",
        },
        {"seq": 3, "at": 1_700_000_001.0, "turn": "t1", "role": "assistant", "content": None},
    ],
}


RUNNING = {
    "id": "s1", "title": "", "preview": "fix the build", "platform": "cli", "phase": "running", "doing": "tools",
    "what": ["terminal: make"], "step": 2, "since": 0.0, "turn_id": "t1", "queued": 0,
}  # fmt: skip


def test_ps_shows_what_runs_for_people(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    process = {"id": "proc_1", "age_s": 65.0, "session_id": "s1", "command": "npm run dev"}
    waits = {
        **RUNNING,
        "id": "s2",
        "title": "Deploy",
        "doing": "approval",
        "what": ["rm -rf x"],
        "since": time.time(),
    }
    admin.routes["GET /running"] = Answer(body={"sessions": [RUNNING, waits], "processes": [process]})
    assert main(["ps"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["SESSION", "DOING", "FOR", "PLATFORM", "ABOUT"]
    assert lines[1].startswith("s1       runs terminal: make")
    assert lines[1].endswith("fix the build")
    assert "waits for approval: rm -rf x" in lines[2]
    assert lines[2].endswith("Deploy")
    assert lines[-1].split() == ["proc_1", "1m05s", "s1", "npm", "run", "dev"]
    assert main(["ps", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"sessions": [RUNNING, waits], "processes": [process]}


def test_ps_says_when_nothing_runs(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.routes["GET /running"] = Answer(body={"sessions": [], "processes": []})
    assert main(["ps"]) == 0
    assert capsys.readouterr().out.startswith("No session has open work;")


def test_ps_lists_actors_in_a_plain_table_when_piped(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.routes["GET /actors"] = Answer(body={"actors": [ACTOR, PARKED]})
    assert main(["ps", "--actors"]) == 0
    header, first, second = capsys.readouterr().out.splitlines()
    assert header.split() == ["KIND", "NAME", "STATE", "MAIL", "OLDEST", "HANDLED", "SLOWEST", "AGE", "LAST", "ERROR"]
    assert first.split() == ["session", "s1", "running", "2", "250ms", "7", "3ms", "2h03m", "-"]
    assert second.endswith("ValueError: [bold]no\N{REPLACEMENT CHARACTER}[2J second line")
    assert header.index("STATE") == first.index("running") == second.index("parked")


def test_ps_gives_json_as_it_came(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.routes["GET /actors"] = Answer(body={"actors": [ACTOR]})
    assert main(["ps", "--actors", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"actors": [ACTOR]}


def test_ps_lists_as_many_actors_as_asked_for(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.routes["GET /actors"] = Answer(body={"actors": [ACTOR] * 60})
    for argv, listed in ((["ps", "--actors"], 60), (["ps", "--actors", "--limit", "3"], 3)):
        assert main(argv) == 0
        assert len(capsys.readouterr().out.splitlines()) == listed + 1


def test_ps_lists_as_many_sessions_as_asked_for(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    stored = [session(f"s{number:03}") for number in range(250)]

    def page(asked: Asked) -> Answer:
        query = parse_qs(urlsplit(asked.path).query)
        first = int(query["after"][0][1:]) + 1 if "after" in query else 0
        return Answer(body={"sessions": stored[first : first + int(query["limit"][0])]})

    admin.routes["GET /api/sessions"] = page
    for limit, listed in (("3", 3), ("120", 120), ("999", 250)):
        assert main(["ps", "--sessions", "--limit", limit, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["sessions"] == stored[:listed]
    assert main(["ps", "--sessions"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 51
    assert lines[1].startswith("s000     idle ")


def test_show_prints_all_fields_of_a_session(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.routes["GET /sessions/s0"] = Answer(body=VIEW)
    assert main(["show", "s0", "--tail", "5"]) == 0
    text = capsys.readouterr().out
    for fact in (
        "s1",
        "t9",
        "s0 -> s1",
        "30 in, 12 out",
        "timeout: it took too long",
        "because its last turn finished",
    ):
        assert fact in text
    assert "hello [b]there[/b]" in text
    assert "\x1b" not in text
    assert "\nwhy:\n  It is idle because its last turn finished.\n  It continues s0.\n" in text
    assert "2 messages, 1 turn\n" in text
    assert f"idle since {time.strftime('%Y-%m-%d %H:%M:%S %Z', time.localtime(1_700_000_000))}\n" in text
    assert admin.asked[-1].path == "/sessions/s0?tail=5"
    assert main(["show", "s0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == VIEW


def test_why_explains_in_plain_words(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.routes["GET /sessions/s1"] = Answer(body={"session": {"id": "s1"}, "why": "It rests."})
    assert main(["why", "s1"]) == 0
    assert capsys.readouterr().out == "It rests.\n"
    assert main(["why", "s1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"session_id": "s1", "why": "It rests."}


def answers_once() -> Respond:
    """A daemon that has stopped when it is asked for the second time."""
    ready = iter([True])
    return lambda _: Answer(body={"pid": NOBODY, "ready": next(ready, False)})


def test_tail_follows_events_until_the_daemon_stops(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    whole = "20260102_030405_1a2b3c4d"
    began = {"session_id": whole, "turn_id": "0123abcd4567", "attempt": 1, "at": 1_700_000_000.0}
    piece = {"session_id": "s1", "turn_id": "t1", "text": "two"}
    usage = {"prompt_tokens": 3, "completion_tokens": 1}
    answer = {"session_id": "s1", "turn_id": "t1", "output": "two\nlines\x1b[31m" + "x" * 500, "usage": usage}
    gave_up = {"session_id": "s1", "turn_id": "t2", "error": {"code": "timeout", "message": "it took too long"}}
    admin.routes["GET /sessions/a%20b"] = Answer(body={"session": {"id": "s1"}})
    admin.routes["GET /api/events"] = Stream(
        parts=[
            *(sse(began, "run.started"), b": ping\n\n", sse(piece, "message.delta")),
            *(sse(answer, "run.completed"), sse(gave_up, "run.failed")),
        ]
    )
    admin.routes["GET /info"] = answers_once()
    assert main(["tail", "a b"]) == 1
    out, err = capsys.readouterr()
    assert err == "hermes: the daemon stopped\n"
    assert out.startswith(time.strftime("%H:%M:%S  ", time.localtime(1_700_000_000)))
    first, second, third = (line.split(maxsplit=1)[1] for line in out.splitlines())
    assert first == "turn began        1a2b3c4d turn 0123abcd"
    shown = "two lines\N{REPLACEMENT CHARACTER}[31m".ljust(99, "x") + "\N{HORIZONTAL ELLIPSIS}"
    assert second == f'answered          s1 turn t1 "{shown}" (3 tokens in, 1 out)'
    assert third == "turn failed       s1 turn t2 (timeout) it took too long"
    assert "/api/events?session_id=s1" in [asked.path for asked in admin.asked]
    admin.routes["GET /info"] = answers_once()
    assert main(["tail", "--json"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["event"] for line in lines] == ["run.started", "message.delta", "run.completed", "run.failed"]
    assert lines[2] == {"event": "run.completed", **answer}


def test_tail_prints_why_it_ends(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.routes["GET /api/events"] = Stream(parts=[], cut=True)
    admin.routes["GET /info"] = answers_once()
    assert main(["tail"]) == 1
    assert capsys.readouterr() == ("", "hermes: the daemon stopped\n")


def test_tail_ends_quietly_with_ctrl_c(admin: FakeAdmin) -> None:
    held = threading.Event()

    def parts() -> Iterator[bytes]:
        yield sse({"session_id": "s1"}, "run.started")
        while not held.wait(0.01):
            yield b": ping\n\n"

    admin.routes["GET /api/events"] = Stream(parts=parts())
    with subprocess.Popen(command("tail"), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as tail:
        assert tail.stdout is not None
        assert b"turn began" in tail.stdout.readline()
        tail.send_signal(signal.SIGINT)
        _, complaints = tail.communicate(timeout=30)
    held.set()
    assert (tail.returncode, complaints) == (130, b"")


def test_an_unknown_session_is_a_plain_line(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "../etc"]) == 1
    assert capsys.readouterr().err == "hermes: There is nothing at /sessions/..%2Fetc?tail=0.\n"


def on_a_terminal(argv: list[str], **environ: str) -> str:
    parent, child = pty.openpty()
    try:
        process = subprocess.Popen(command(*argv), stdout=child, env={**os.environ, "TERM": "xterm", **environ})
        os.close(child)
        written = b""
        while True:
            try:
                part = os.read(parent, 65_536)
            except OSError:  # the last writer is gone
                break
            written += part
        assert process.wait(30) == 0
        return written.decode()
    finally:
        os.close(parent)


def test_a_terminal_gets_colours_unless_it_asks_for_none(admin: FakeAdmin) -> None:
    admin.routes["GET /actors"] = Answer(body={"actors": [ACTOR, PARKED]})
    coloured = on_a_terminal(["ps", "--actors"], COLUMNS="200")
    assert "\x1b[31mparked" in coloured
    assert "[bold]no" in coloured
    plain = on_a_terminal(["ps", "--actors"], COLUMNS="200", NO_COLOR="1")
    assert "parked" in plain
    assert "\x1b[31m" not in plain


@pytest.mark.parametrize(
    "argv", [["ps"], ["show", "x"], ["tail"], ["why", "x"], ["stop"], ["end", "x"], ["dead-letters"]]
)
def test_without_a_daemon_there_is_a_plain_message(home: Home, argv: list[str], hermes: Hermes) -> None:
    done = hermes(*argv)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"hermes: no daemon runs on {home.data_dir} (start one with `hermes daemon`)")


def test_a_session_whose_last_turn_failed_is_seen_in_the_list(
    admin: FakeAdmin, capsys: pytest.CaptureFixture[str]
) -> None:
    failed, stopped = ({"kind": kind, "message": "no"} for kind in ("auth", "cancelled"))
    admin.routes["GET /api/sessions"] = listing(
        session("s1", last_failure=failed), session("s2", last_failure=stopped), session("s3")
    )
    assert main(["sessions"]) == 0
    _, first, second, third = capsys.readouterr().out.splitlines()
    assert first.startswith("s1       idle, failed ")
    assert second.startswith("s2       idle  ")
    assert third.startswith("s3       idle  ")


def test_sessions_that_wait_for_an_answer_can_be_listed_alone(
    admin: FakeAdmin, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sessions", "--waiting"]) == 1  # a daemon that does not list its actors
    admin.routes["GET /actors"] = Answer(body={"actors": [ACTOR]})
    capsys.readouterr()
    assert main(["sessions", "--waiting"]) == 0
    assert capsys.readouterr().out == "No session waits for an answer.\n"
    waiting = [{**ACTOR, "name": name, "state": "waiting"} for name in ("s2", "s3")]
    admin.routes["GET /actors"] = Answer(body={"actors": [ACTOR, *waiting]})
    for name, active in (("s2", 1.0), ("s3", 2.0)):
        head = session(name, phase="waiting", active_at=active, title=f"about {name}")
        body = {**VIEW, "session": head, "waits_for": f"rm -rf {name}"}
        admin.routes[f"GET /sessions/{name}"] = Answer(body=body)
    assert main(["sessions", "--waiting"]) == 0
    *rows, hint = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[:2] for line in rows] == [["s3", "waiting"], ["s2", "waiting"]]
    assert rows[0].endswith("rm -rf s3")
    assert "hermes approve ID show" in hint
    assert main(["sessions", "--waiting", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["sessions"]
    assert [each["waits_for"] for each in listed] == ["rm -rf s3", "rm -rf s2"]


def test_numbers_stand_to_the_right_below_each_other(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.routes["GET /api/sessions"] = listing(session("s1", messages=7), session("s2", messages=12345))
    assert main(["sessions"]) == 0
    header, first, second = capsys.readouterr().out.splitlines()
    end = header.index("MESSAGES") + len("MESSAGES")
    assert (first[:end].split()[-1], second[:end].split()[-1]) == ("7", "12345")
    assert first[end] == second[end] == " "
