"""Long outputs of tools go after a while, but never those of a command that may still run."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from hermes.errors import UnknownSessionError
from hermes.tools.output_retention import OutputRetention, RetentionLimits, StoredOutput, expired, in_question
from hermes.types import Phase, Session, SessionId
from tests.fakes import a_session

NOW = 1_000_000.0
DAY_S = 86_400.0
LIMITS = RetentionLimits(keep_s=7 * DAY_S, total_bytes=1_000, longest_command_s=600)


def an_output(conversation: str, age_s: float, size_bytes: int = 10) -> StoredOutput:
    path = Path(f"/work/{conversation}/outputs/{age_s}.txt")
    return StoredOutput(path=path, conversation=conversation, written_at=NOW - age_s, size_bytes=size_bytes)


def test_old_outputs_of_ended_conversations_go_and_no_others() -> None:
    old, young, open_ = an_output("a", 8 * DAY_S), an_output("a", 6 * DAY_S), an_output("b", 8 * DAY_S)
    assert in_question([old, young, open_], NOW, LIMITS) == {"a", "b"}
    assert expired([old, young, open_], {"a"}, NOW, LIMITS) == [old]


def test_nobody_is_asked_about_conversations_with_young_outputs() -> None:
    assert in_question([an_output("a", DAY_S)], NOW, LIMITS) == set()


def test_too_much_goes_from_ended_conversations_first_and_then_the_oldest() -> None:
    outputs = [
        an_output("open", 5 * DAY_S, 400),
        an_output("open", 4 * DAY_S, 400),
        an_output("ended", 1 * DAY_S, 400),
        an_output("ended", 2 * DAY_S, 400),
    ]
    assert in_question(outputs, NOW, LIMITS) == {"open", "ended"}
    assert set(expired(outputs, {"ended"}, NOW, LIMITS)) == {outputs[2], outputs[3]}
    assert set(expired(outputs, set(), NOW, LIMITS)) == {outputs[0], outputs[1]}


@pytest.mark.parametrize("keep_s", [0.0, 7 * DAY_S])
def test_what_a_running_command_may_write_to_stays(keep_s: float) -> None:
    limits = RetentionLimits(keep_s=keep_s, total_bytes=1, longest_command_s=600)
    assert expired([an_output("a", 599, 5_000)], {"a"}, NOW, limits) == []


async def test_a_sweep_removes_files_and_keeps_what_else_is_in_the_folder(tmp_path: Path) -> None:
    def make(conversation: str, name: str, age_s: float) -> Path:
        path = tmp_path / conversation / "outputs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("output")
        os.utime(path, (NOW - age_s, NOW - age_s))
        return path

    async def conversation(session: SessionId) -> Session:
        if session == "unknown":
            raise UnknownSessionError(session)
        return a_session(session, phase=Phase.ENDED if session.startswith("ended") else Phase.IDLE)

    def prepared() -> tuple[list[Path], list[Path]]:
        gone = [make("ended", "old.txt", 8 * DAY_S), make("ended2", "old.txt", 9 * DAY_S)]
        kept = [make("ended2", "young.txt", 1), make("open", "old.txt", 8 * DAY_S), make("unknown", "a", 9 * DAY_S)]
        (tmp_path / "ended" / "shell.json").write_text("{}")
        (tmp_path / "file").touch()
        (tmp_path / "without").mkdir()
        return gone, [*kept, tmp_path / "ended" / "shell.json"]

    gone, kept = await asyncio.to_thread(prepared)
    retention = OutputRetention(tmp_path, limits=LIMITS, conversation=conversation, clock=lambda: NOW)
    await retention.sweep()
    assert not any(path.exists() for path in gone)
    assert all(path.exists() for path in kept)
    assert not (tmp_path / "ended" / "outputs").exists()
    await OutputRetention(tmp_path / "nothing", limits=LIMITS, conversation=conversation, clock=lambda: NOW).sweep()
