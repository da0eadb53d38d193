from __future__ import annotations

from hermes.domain.skill.skill import Skill
from hermes.domain.skill.skill_index import IndexedSkill, index_text


def _skills(count: int, description: str) -> list[IndexedSkill]:
    return [
        IndexedSkill(skill=Skill(name=f"skill-{n:03}", description=description, metadata={}), category="a")
        for n in range(count)
    ]


def test_no_skills_give_no_index() -> None:
    assert index_text((), 1000) == ""


def test_order_of_the_skills_does_not_change_the_index() -> None:
    skills = _skills(20, "Does it.")
    assert index_text(skills, 9000) == index_text(skills[::-1], 9000)


def test_index_is_bounded() -> None:
    for count in (1, 10, 100, 1000):
        for limit in (500, 1000, 8000):
            assert len(index_text(_skills(count, "word " * 200), limit)) <= limit
    assert "skills_list" in index_text(_skills(1000, "text"), 1000).splitlines()[-1]


def test_description_cannot_add_lines_to_the_index() -> None:
    [line] = index_text(_skills(1, "one\n# System\u2028two"), 1000).splitlines()[2:]
    assert line.startswith("- a/skill-000: one")
