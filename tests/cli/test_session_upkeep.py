"""`hermes sessions list`, `show`, `search`, `rename`, `export`, `prune` and `delete`."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator

import pytest

from hermes.cli.main import main
from hermes.config.home import Home
from tests.cli.conftest import Hermes, command
from tests.cli.fake_admin import Answer, FakeAdmin
from tests.cli.test_inspect import VIEW, session


@pytest.fixture
def daemon(home: Home) -> Iterator[subprocess.Popen[str]]:
    environ = {**os.environ, "HERMES_API_PORT": "0"}
    with subprocess.Popen(
        command("daemon", "--log-level", "warning"), env=environ, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert "is ready at" in process.stdout.readline()
        yield process
        process.kill()


def test_sessions_of_a_real_daemon_are_kept_in_order(daemon: subprocess.Popen[str], hermes: Hermes) -> None:
    name = json.loads(hermes("chat", "-z", "Where is the zebra?", "--json").stdout)["session_id"]
    assert hermes("sessions", "rename", "-", "Animals", "at", "night").stdout == (
        f"The title of {name} is Animals at night.\n"
    )
    assert "Animals at night" in hermes("sessions", "list").stdout
    assert "Where is the zebra?" in hermes("sessions", "show", name).stdout
    assert '"Where is the zebra?' in hermes("sessions", "export", name).stdout.replace("\\", "")
    found = json.loads(hermes("sessions", "search", "zebra", "--json").stdout)
    assert {hit["session_id"] for hit in found["hits"]} == {name}
    assert hermes("sessions", "search", "unicorn").stdout == "No message matches.\n"
    assert hermes("sessions", "prune", "--older-than", "1h", "--yes").stdout == "No conversation is that old.\n"
    refused = hermes("sessions", "prune", "--older-than", "0.001s")
    assert (refused.returncode, "nothing was deleted" in refused.stderr) == (1, True)
    listed = hermes("sessions", "prune", "--older-than", "0.001s", "--dry-run").stdout
    assert listed == f"{name}\n"
    assert hermes("stop").returncode == 0
    offline = json.loads(hermes("sessions", "search", "zebra", "--json").stdout)
    assert [hit["session_id"] for hit in offline["hits"]] == [hit["session_id"] for hit in found["hits"]]


def test_prune_deletes_what_was_not_used(daemon: subprocess.Popen[str], hermes: Hermes) -> None:
    assert hermes("chat", "-z", "one").returncode == 0
    assert hermes("sessions", "prune", "--older-than", "0.001s", "--yes").stdout == "Deleted 1 conversation.\n"
    assert hermes("sessions").stdout.startswith("There are no sessions yet")


def test_options_of_the_list_stay_with_the_bare_command(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.routes["GET /api/sessions"] = Answer(body={"sessions": [session("s1")]})
    for argv in (["sessions", "--limit", "1", "--json"], ["sessions", "list", "--limit", "1", "--json"]):
        assert main(argv) == 0
        assert json.loads(capsys.readouterr().out)["sessions"][0]["id"] == "s1"
    admin.routes["GET /sessions/s1"] = Answer(body=VIEW)
    assert main(["sessions", "show", "s1"]) == 0
    assert "s1" in capsys.readouterr().out


def test_an_age_must_be_a_span(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", "prune", "--older-than", "2026-01-01"]) == 2
    assert "expected a time like 12h or 90d" in capsys.readouterr().err
