"""SKILL.md, judged by the official validator in both directions."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from skills_ref.parser import read_properties
from skills_ref.validator import validate

from hermes.domain.skill.skill import SkillError, check_fields, check_portable
from hermes.skills.frontmatter import decoded, parse, written
from tests.skills.corpus import skill_texts

_PIECES = [
    *"ab cXYZ0129:#-'\"\\[]{}|>&*!%@`,?~=.\n\t\u00e9\u6f22\U0001f600\u200b\u2028\x85\x07\ufeff",
    *("---", "- ", ": ", " #", "null", "yes"),
]


def _official_problems(folder: Path, text: bytes) -> list[str]:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_bytes(text)
    try:
        return list(validate(folder))
    except Exception as error:  # noqa: BLE001 - what it cannot read, it does not accept
        return [repr(error)]


def _our_problem(folder: str, text: bytes) -> str:
    try:
        check_fields(parse(decoded(text)).fields, folder)
    except SkillError as error:
        return str(error)
    return ""


@pytest.mark.timeout(300)
def test_what_the_official_validator_accepts_is_accepted(tmp_path: Path) -> None:
    accepted = 0
    for number, (folder, text) in enumerate(skill_texts(seed=7, count=1500)):
        if not _official_problems(tmp_path / str(number) / folder, text.encode()):
            accepted += 1
            assert _our_problem(folder, text.encode()) == "", text
    assert accepted > 100


@pytest.mark.timeout(300)
def test_what_is_written_is_accepted_by_the_official_validator(tmp_path: Path) -> None:
    chosen, accepted = random.Random(11), 0
    for number in range(1000):
        fields: dict[str, object] = {"name": "a-b", "description": _text(chosen, 12)}
        if number % 2:
            fields |= {"license": _text(chosen, 8), "metadata": {_text(chosen, 5): _text(chosen, 6)}}
        try:
            text = written(fields, _text(chosen, 20)).encode()
            check_portable(parse(decoded(text)).fields, "a-b")
        except SkillError:
            continue
        accepted += 1
        folder = tmp_path / str(number) / "a-b"
        assert _official_problems(folder, text) == []
        assert read_properties(folder).description == str(fields["description"]).strip()
    assert accepted > 200


def _text(chosen: random.Random, pieces: int) -> str:
    return "".join(chosen.choice(_PIECES) for _ in range(chosen.randint(1, pieces)))


@pytest.mark.parametrize(
    "frontmatter",
    [
        "name: a\ndescription: &x b\nlicense: *x",
        "name: a\nname: a\ndescription: b",
        "name: a\ndescription: !!python/object:os.system b",
        "- a\n- b",
        "just text",
        "name: a\ndescription: [" + "[" * 5000,
        "name: a\ndescription: " + "x" * 40_000,
    ],
)
def test_hostile_frontmatter_is_refused(frontmatter: str) -> None:
    with pytest.raises(SkillError):
        check_fields(parse(f"---\n{frontmatter}\n---\n").fields)


def test_conditions_of_other_agents_are_read() -> None:
    text = """---
name: deploy
description: Deploys.
platforms: [macos, darwin]
required_environment_variables:
  - name: API_KEY
    prompt: Your key
metadata:
  hermes:
    requires_toolsets: [terminal]
    fallback_for_toolsets: [web]
---
"""
    skill = check_fields(parse(text).fields, "deploy")
    assert skill.platforms == ("macos", "macos")
    assert skill.environment == ("API_KEY",)
    assert (skill.tools, skill.fallback_for) == (("terminal",), ("web",))
