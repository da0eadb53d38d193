from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes.domain.skill.skill import SkillError, UnknownSkillError
from hermes.skills.catalog import SkillCatalog, inner_file, inner_files


def write_skill(root: Path, place: str, description: str = "Does it.", body: str = "Do it.") -> Path:
    folder = root / place
    folder.mkdir(parents=True, exist_ok=True)
    text = f"---\nname: {folder.name}\ndescription: {description}\n---\n\n{body}\n"
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    return folder


def test_skills_are_found_with_and_without_category(tmp_path: Path) -> None:
    catalog = SkillCatalog(tmp_path / "skills")
    assert catalog.all() == ()
    write_skill(tmp_path / "skills", "pdf")
    write_skill(tmp_path / "skills", "office/letters")
    write_skill(tmp_path / "skills", ".staging/hidden")
    assert [each.place for each in catalog.all()] == ["office/letters", "pdf"]
    assert catalog.get("letters").place == catalog.get("office/letters").place == "office/letters"
    with pytest.raises(UnknownSkillError):
        catalog.get("office/pdf")


def test_changed_skill_is_read_again_and_unchanged_one_is_not(tmp_path: Path) -> None:
    catalog = SkillCatalog(tmp_path)
    write_skill(tmp_path, "pdf", "First.")
    first = catalog.get("pdf")
    assert catalog.get("pdf") is first
    write_skill(tmp_path, "pdf", "Second one.")
    changed = catalog.get("pdf").skill
    assert changed is not None
    assert changed.description == "Second one."


def test_broken_skill_is_listed_with_its_problem(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "SKILL.md").write_text("no frontmatter", encoding="utf-8")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "SKILL.md").symlink_to("/etc/passwd")
    os.mkfifo(write_skill(tmp_path, "pipe").with_name("pipe2"))
    found = {each.name: each for each in SkillCatalog(tmp_path).all()}
    assert found["broken"].skill is None
    assert found["broken"].problem
    assert found["linked"].skill is None
    assert found["linked"].problem == "it is a symbolic link"
    assert found["pipe"].skill is not None


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a//b", "", ".", "a/../b", ".git/config", "a\\b", "a\0b"])
def test_path_outside_the_skill_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(SkillError):
        inner_file(tmp_path, path)


def test_links_inside_a_skill_are_not_followed(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "pdf")
    (folder / "scripts").symlink_to("/etc")
    (folder / "references").mkdir()
    (folder / "references" / "a.md").write_text("a", encoding="utf-8")
    assert inner_files(folder) == ("SKILL.md", "references/a.md")
    with pytest.raises(SkillError):
        inner_file(folder, "scripts/passwd")
