from __future__ import annotations

import json
import stat
from pathlib import Path

from hermes.agent.tool_step import Folders
from hermes.domain.access.role import Role
from hermes.domain.events import CallProgress
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.session.jobs import ToolReport
from hermes.domain.turn.tool_call import CallOutcome
from hermes.tools.workplace import Workplace
from tests.agent.harness import AgentBench, tool_job


async def run(folder: Path, name: str, arguments: dict[str, object] | str = "{}") -> tuple[ToolReport, str]:
    bench = AgentBench(folder)
    times = iter((1.0, 3.5))
    report = await bench.acting.run(tool_job(name, arguments), lambda: next(times))
    message = json.loads(report.message)
    assert (message["role"], message["tool_call_id"]) == ("tool", "c1")
    return report, message["content"]


async def test_a_call_becomes_one_message_for_the_model(tmp_path: Path) -> None:
    report, said = await run(tmp_path, "echo", {"words": "é"})
    assert (said, report.outcome, report.took_s) == ("é", CallOutcome.OK, 2.5)
    assert (report.turn, report.attempt, report.call) == ("t1", 2, "c1")


async def test_a_tool_that_fails_tells_the_model_why(tmp_path: Path) -> None:
    report, said = await run(tmp_path, "stumble")
    assert (said, report.outcome) == ("there is a stone", CallOutcome.ERROR)


async def test_a_call_that_the_settings_no_longer_allow_is_not_run(tmp_path: Path) -> None:
    report, said = await run(tmp_path, "fly", {})
    assert "Unknown tool 'fly'" in said
    assert report.outcome == CallOutcome.ERROR
    _, bad = await run(tmp_path, "echo", "{not json")
    assert "not valid JSON" in bad


async def test_progress_is_told_with_the_calls_own_name(tmp_path: Path) -> None:
    bench = AgentBench(tmp_path)
    await bench.acting.run(tool_job("echo", {"words": "a"}), lambda: 0.0)
    assert bench.hub.events == [
        CallProgress(session=SessionId("s"), turn=TurnId("t1"), call="c1", text="saying"),
    ]


def test_a_conversations_folder_is_private_and_its_name_harmless(tmp_path: Path) -> None:
    folders = Folders(tmp_path / "work")
    folder = folders.of(SessionId("../../etc/x"))
    assert folder.parent == tmp_path / "work"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert folders.of(SessionId("../../etc/x")) == folder


def test_guests_have_a_folder_and_a_working_directory_of_their_own(tmp_path: Path) -> None:
    folders = Folders(tmp_path / "work")
    theirs, others = folders.of(SessionId("s"), Role.GUEST), folders.of(SessionId("s"), Role.USER)
    assert theirs.parent == others
    place = Workplace(default_cwd="/home/owner/project", home="/home/owner", hermes_home="/nowhere")
    assert place.cwd_of(theirs) == str(theirs / "files")
    assert place.cwd_of(others) == "/home/owner/project"
    assert stat.S_IMODE((theirs / "files").stat().st_mode) == 0o700
    assert folders.of(SessionId("s"), Role.GUEST) == theirs
    folders.remove(SessionId("s"))
    assert not theirs.exists()
