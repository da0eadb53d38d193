"""Pictures of a message: which files it names, what is sent, and how a terminal shows them."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from PIL import Image

from hermes.tui.chat.picture_files import MAX_BYTES, PictureError, input_of, named_in
from hermes.tui.widgets.picture import half_blocks


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "p.png"
    image = Image.new("RGB", (4, 4), "#ff0000")
    image.paste("#0000ff", (0, 1, 4, 2))
    image.save(path)
    return path


def test_only_existing_pictures_are_named(picture: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    text = "look at @p.png, (@p.png) @notes.txt @missing.png p.png @nobody~/x.png"
    assert named_in(text, tmp_path) == (picture,)


def test_message_without_pictures_is_sent_as_text() -> None:
    assert input_of("hello", ()) == "hello"


def test_picture_is_sent_with_its_text(picture: Path) -> None:
    [message] = input_of("look", (picture,))
    text, image = message["content"]
    assert text == {"type": "text", "text": "look"}
    kind, _, data = image["image_url"]["url"].partition(",")
    assert (kind, base64.b64decode(data)) == ("data:image/png;base64", picture.read_bytes())


def test_picture_that_cannot_be_sent_says_why(tmp_path: Path) -> None:
    large = tmp_path / "large.png"
    large.write_bytes(b"\0" * (MAX_BYTES + 1))
    for path in (large, tmp_path / "gone.png"):
        with pytest.raises(PictureError, match=path.name):
            input_of("", (path,))


def test_two_pixels_share_a_cell(picture: Path) -> None:
    drawn = half_blocks(picture, 60, 16, "#000000")
    assert drawn is not None
    assert drawn.plain == "▀▀▀▀\n▀▀▀▀"
    style = drawn.spans[0].style
    assert (style.color.name, style.bgcolor.name) == ("#ff0000", "#0000ff")  # type: ignore[union-attr]


def test_picture_is_scaled_to_its_place(tmp_path: Path) -> None:
    Image.new("RGB", (300, 100)).save(tmp_path / "wide.jpg")
    drawn = half_blocks(tmp_path / "wide.jpg", 30, 16, "#000000")
    assert drawn is not None
    assert [len(line) for line in drawn.plain.split("\n")] == [30] * 5


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n broken", b"<svg/>"])
def test_damaged_picture_is_not_drawn(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "p.png").write_bytes(data)
    assert half_blocks(tmp_path / "p.png", 10, 10, "#000000") is None
