"""Files of memory under a person who edits them at any moment."""

from __future__ import annotations

import threading
from pathlib import Path

from hermes.services.memory.note_files import NoteFiles

FILES = NoteFiles()


def test_file_is_replaced_only_if_it_has_the_expected_text(tmp_path: Path) -> None:
    file = tmp_path / "people" / "MEMORY.md"
    assert FILES.replace(file, "one", expected=None)
    assert not FILES.replace(file, "two", expected=None)
    assert not FILES.replace(file, "two", expected="other")
    assert FILES.replace(file, "two", expected="one")
    assert FILES.find(file).text == "two"
    assert [each.name for each in file.parent.iterdir()] == ["MEMORY.md"]


def test_linked_file_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("one")
    (tmp_path / "MEMORY.md").symlink_to("notes")
    assert FILES.replace(tmp_path / "MEMORY.md", "two", expected="one")
    assert (tmp_path / "notes").read_text() == "two"
    assert (tmp_path / "MEMORY.md").is_symlink()


def test_mode_of_the_file_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "MEMORY.md"
    file.write_text("one")
    file.chmod(0o640)
    assert FILES.replace(file, "two", expected="one")
    assert file.stat().st_mode & 0o777 == 0o640


def test_no_saved_text_is_lost_while_both_write(tmp_path: Path) -> None:
    """A writer and a person who saves in place. What the person saved last is in the file, or replaced knowingly."""
    file = tmp_path / "MEMORY.md"
    file.write_text("0")
    seen: set[str] = set()
    saved: list[str] = []

    def person() -> None:
        for number in range(300):
            draft = tmp_path / "person.tmp"  # as most editors do
            draft.write_text(f"saved {number}")
            draft.replace(file)
            saved.append(f"saved {number}")

    thread = threading.Thread(target=person)
    thread.start()
    while thread.is_alive():
        text = FILES.find(file).text or ""
        seen.add(text)
        FILES.replace(file, f"{text.removesuffix('+')}+", expected=text)
    thread.join()
    assert (FILES.find(file).text or "").removesuffix("+") == saved[-1]
    assert len(seen) > 1
    assert sorted(each.name for each in tmp_path.iterdir()) == ["MEMORY.md"]
