"""Recordings of the terminal: valid asciicasts, well-formed pictures, nothing private."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.docs.recording import Recording, _scenes

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
SVG = "{http://www.w3.org/2000/svg}"


def recorded() -> Recording:
    recording = Recording(title="a <test>")
    recording.events = [(0.0, "$ "), (0.2, "one\n"), (60.0, "\x1b[31mred & long\x1b[0m\n")]
    recording.events += [(61.0, "\x1b[2J\x1b[H"), (61.5, "$ two\n"), (62.0, "end\n")]
    return recording


def test_pauses_are_shortened_and_a_cleared_screen_begins_a_scene() -> None:
    first, second = _scenes(recorded().events)
    assert [line.text.plain for line in first.lines] == ["$ one", "red & long", ""]
    assert [line.text.plain for line in second.lines] == ["$ two", "end", ""]
    assert first.until < 5


def test_a_picture_without_animation_shows_the_last_scene() -> None:
    root = ET.fromstring(recorded().svg())
    texts = ["".join(each.itertext()) for each in root.iter(f"{SVG}text") if "opacity:1" in each.get("style", "")]
    assert texts == ["$ two", "end"]
    assert 'fill="#ff7b72"' in recorded().svg()


def test_an_asciicast_has_a_header_and_events_in_order() -> None:
    head, *rows = map(json.loads, recorded().asciicast().splitlines())
    assert head["version"] == 2
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    assert rows[1] == [0.2, "o", "one\r\n"]


@pytest.mark.parametrize("path", [*FOLDER.glob("*.svg"), *FOLDER.glob("*.cast")], ids=lambda path: path.name)
def test_a_picture_is_well_formed_and_holds_nothing_private(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".svg":
        ET.fromstring(text)
    assert "test-token" not in text
    assert "/tmp/" not in text
    assert "/root" not in text
