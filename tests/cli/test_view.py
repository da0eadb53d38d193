"""Answers and tables on a terminal."""

from __future__ import annotations

import os
import re
import time

import pytest

from tests.cli.fake_admin import (
    Answer,
    FakeAdmin,
    listing,
)
from tests.cli.test_inspect import on_a_terminal, session


@pytest.mark.parametrize("width", [60, 80, 120])
def test_ids_are_never_broken_in_a_list(admin: FakeAdmin, width: int) -> None:
    name = "20260102_030405_1a2b3c4d"
    admin.routes["GET /api/sessions"] = listing(session(name, phase="resume_pending", active_at=time.time() - 7300))
    first = {"role": "user", "content": "What is " + "a very long question " * 9}
    admin.routes[f"GET /api/sessions/{name}/messages"] = Answer(body={"messages": [first]})
    shown = on_a_terminal(["sessions"], COLUMNS=str(width), NO_COLOR="1")
    header, line = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
    assert line.startswith(f"{name}  resume_pending  ")
    assert "What is" in line
    assert "…" in line
    assert len(line) <= width
    assert ("QUEUED" in header) == (width == 120)


def test_words_are_not_broken_at_the_right_edge(admin: FakeAdmin) -> None:
    why = "It is idle because " + "somebody rests " * 20
    admin.routes["GET /sessions/s1"] = Answer(body={"session": {"id": "s1"}, "why": why})
    shown = on_a_terminal(["why", "s1"], COLUMNS="40")
    assert set(shown.split()) == {"It", "is", "idle", "because", "somebody", "rests"}
    assert all(len(line) <= 40 for line in shown.splitlines())
    assert os.linesep.join(shown.splitlines()).count("rests") == 20
