"""`hermes ps --processes`, `hermes log` and `hermes kill`."""

from __future__ import annotations

import time
from typing import Any

import pytest

from hermes.adapters.http import presentation
from hermes.cli.main import main
from tests.cli.fake_admin import Answer, Asked, FakeAdmin
from tests.support.fakes import process_view


def shown(name: str, **changes: Any) -> dict[str, Any]:
    view = process_view(name, active_at=time.time() - 5, **changes)
    return presentation.process(view, now=time.time(), blocks="", explanation=f"{name} is explained.")


def late() -> dict[str, Any]:
    return shown("proc_b2", ended_at=time.time() - 60, signal=15, reason="killed")


@pytest.fixture(autouse=True)
def processes(admin: FakeAdmin) -> None:
    old = shown("proc_a1", ended_at=time.time() - 300, exit_code=0, reason="exited")
    runs = shown("proc_b1", memory_bytes=3 * 2**20)
    admin.routes["GET /api/processes"] = Answer(body={"processes": [old, runs, late()]})


def test_running_processes_are_listed_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ps", "--processes"]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["proc_b1", "running"],
        ["proc_b2", "killed"],
        ["proc_a1", "exit"],
    ]
    assert "3.0 MiB" in lines[0]
    assert "1 min ago" in lines[1]
    assert main(["ps", "--running"]) == 0
    assert "proc_b2" not in capsys.readouterr().out


def test_one_is_explained_when_it_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ps", "a1"]) == 0
    assert capsys.readouterr().out == "proc_a1: proc_a1 is explained.\n"


def test_ps_lists_are_mutually_exclusive(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ps", "--sessions", "--processes"]) == 2
    assert "not allowed with" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("b", "b is ambiguous: it could be proc_b1, proc_b2"),
        ("c", "no background process c"),
        ("proc_", "no background"),
    ],
)
def test_ambiguous_process_prefix_is_refused(given: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kill", given]) == 1
    assert problem in capsys.readouterr().err


def test_a_process_is_ended_by_the_beginning_of_its_id(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.routes["POST /api/processes/proc_b1/kill"] = Answer(body={"process": {**late(), "id": "proc_b1"}})
    assert main(["kill", "b1"]) == 0
    assert capsys.readouterr().out.startswith("proc_b1 was ended: ")


def test_kill_reports_a_process_that_had_ended(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    refusal = {"error": {"message": "process proc_a1 has ended already", "code": "process_ended"}}
    admin.routes["POST /api/processes/proc_a1/kill"] = Answer(status=409, body=refusal)
    assert main(["kill", "proc_a1"]) == 1
    assert capsys.readouterr().err == "hermes: process proc_a1 has ended already\n"


def test_output_is_printed_whole_if_that_is_asked_for(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    out = "".join(f"line {n}\n" for n in range(10))

    def log(asked: Asked) -> Answer:
        offset = int(asked.path.partition("offset=")[2].partition("&")[0]) if "offset=" in asked.path else 63
        part = out[offset : offset + 21]
        fields = {"offset": offset, "next_offset": offset + len(part), "total_bytes": len(out), "kept_from": 0}
        return Answer(body={"id": "proc_b1", "text": part, **fields})

    admin.routes["GET /api/processes/proc_b1/log"] = log
    assert main(["log", "b1"]) == 0
    end = capsys.readouterr()
    assert end.out == "line 9\n"
    assert end.err == "(from byte 63 of 70; --all prints everything that is kept)\n"
    assert main(["log", "b1", "--all"]) == 0
    assert capsys.readouterr().out == out


def test_the_column_of_resets_is_there_only_where_there_are_any(
    admin: FakeAdmin, capsys: pytest.CaptureFixture[str]
) -> None:
    for resets in (True, False):
        admin.routes["GET /info"] = Answer(body={"resets": resets})
        assert main(["ps", "--processes"]) == 0
        header, first, *_ = capsys.readouterr().out.splitlines()
        assert ("RESET" in header.split()) is resets
        assert first.split()[:2] == ["proc_b1", "running"]
