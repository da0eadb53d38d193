"""`hermes stop`, `end`, `suspend`, `resume` and `dead-letters`."""

from __future__ import annotations

import json
import threading

import pytest

from hermes.cli.main import main
from hermes.home import Home, is_free, lock, prepare
from tests.cli.fake_admin import Answer, Asked, FakeAdmin
from tests.cli.test_inspect import session


@pytest.mark.parametrize("verb", ["stop", "end", "suspend", "resume"])
def test_a_verb_is_done_to_one_session(admin: FakeAdmin, capsys: pytest.CaptureFixture[str], verb: str) -> None:
    changed = {"session": session("s1", phase="ended", reason="asked for")}
    admin.routes[f"POST /sessions/s0/{verb}"] = Answer(body=changed)
    assert main([verb, "s0", "--reason", "by mail"]) == 0
    assert capsys.readouterr().out == "s1 is ended: asked for\n"
    assert admin.asked[0].body == {"reason": "by mail"}
    assert main([verb, "s0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == changed


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
    assert main(["stop"]) == 0
    assert is_free(home)
    leaving.join()
    assert capsys.readouterr().out == f"The daemon on {home.data_dir} (pid 4321) has stopped.\n"


def test_a_daemon_that_does_not_go_is_reported(
    home: Home, admin: FakeAdmin, capsys: pytest.CaptureFixture[str]
) -> None:
    admin.routes["POST /stop"] = Answer(status=202, body={"stopping": True})
    assert main(["stop", "--timeout", "0.2"]) == 75
    assert capsys.readouterr().err == "hermes: the daemon (pid 4321) is still stopping after 0.2 s\n"


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


def test_no_dead_letters_are_said_to_be_none(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.routes["GET /dead-letters"] = Answer(body={"dead_letters": []})
    assert main(["dead-letters"]) == 0
    assert capsys.readouterr().out == "There are no dead letters.\n"
