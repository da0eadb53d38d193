"""Long outputs of tools go after a while, but never those of a command that may still run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.domain.errors import UnknownSessionError
from hermes.domain.ids import SessionId
from hermes.domain.session.state import Phase, Session
from hermes.tools.terminal.output_retention import (
    Conversation,
    OutputRetention,
    RetentionLimits,
    StoredOutput,
    expired,
    in_question,
)
from tests.support.fakes import a_session

NOW = 1_000_000.0
DAY_S = 86_400.0
LIMITS = RetentionLimits(keep_s=7 * DAY_S, total_bytes=1_000, longest_command_s=600)


def make_retention(
    root: Path, conversation: Conversation, has_processes: Callable[[SessionId], bool] = lambda _: False
) -> OutputRetention:
    return OutputRetention(
        root, limits=LIMITS, conversation=conversation, has_processes=has_processes, clock=lambda: NOW
    )


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
    await make_retention(tmp_path, conversation).sweep()
    assert not any(path.exists() for path in gone)
    assert all(path.exists() for path in kept)
    assert not (tmp_path / "ended" / "outputs").exists()
    await make_retention(tmp_path / "nothing", conversation).sweep()


async def test_scratch_of_conversations_that_ended_long_ago_goes(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    work = tmp_path / "work"

    async def conversation(session: SessionId) -> Session:
        phase = Phase.IDLE if session == "open" else Phase.ENDED
        return replace(a_session(session, phase=phase), since=NOW - (1 if session == "young" else 8) * DAY_S)

    def prepare() -> None:
        outside.mkdir()
        (outside / "kept").write_text("x")
        for name in ("ended", "ended/guest", "open", "young", "busy"):
            for part in ("tmp", "home", "files"):
                directory = work / name / part / "cache"
                directory.mkdir(parents=True)
                (directory / "file").write_text("x")
                (directory / "link").symlink_to(outside)
                directory.chmod(0o555)  # as Go's module cache is
        (work / "linked").mkdir()
        (work / "linked" / "tmp").symlink_to(outside)
        (work / "elsewhere").symlink_to(outside)
        for directory in (*work.glob("*/*/"), *work.glob("ended/guest/*/")):
            os.utime(directory, (NOW - 8 * DAY_S, NOW - 8 * DAY_S))

    def left() -> set[str]:
        return {str(path.relative_to(work)) for path in (*work.glob("*/*"), *work.glob("ended/guest/*"))}

    await asyncio.to_thread(prepare)
    before = await asyncio.to_thread(left)
    retention = make_retention(work, conversation, has_processes=lambda session: session == "busy")
    await retention.sweep_scratch()
    gone = {f"ended{guest}/{part}" for guest in ("", "/guest") for part in ("tmp", "home")}
    assert await asyncio.to_thread(left) == before - gone
    assert await asyncio.to_thread((outside / "kept").exists)


async def test_outputs_of_guests_go_too(tmp_path: Path) -> None:
    async def conversation(session: SessionId) -> Session:
        return a_session(session, phase=Phase.ENDED)

    def prepare() -> Path:
        path = tmp_path / "one" / "guest" / "outputs" / "old.txt"
        path.parent.mkdir(parents=True)
        path.write_text("output")
        os.utime(path, (NOW - 8 * DAY_S, NOW - 8 * DAY_S))
        return path

    path = await asyncio.to_thread(prepare)
    await make_retention(tmp_path, conversation).sweep()
    assert not await asyncio.to_thread(path.exists)
