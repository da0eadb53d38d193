"""One entry makes a platform known everywhere."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

import hermes
from hermes.app.factories.platform import assembly_of
from hermes.config.platforms import PLATFORMS
from hermes.config.settings import SETTINGS, Config

ROOT = Path(hermes.__file__).parent


@pytest.mark.parametrize("name", PLATFORMS)
def test_a_platform_has_all_that_its_entry_promises(name: str) -> None:
    assert {f"{name}.{key}" for key in ("enabled", "allowed_users", "admins", "base_url")} <= set(SETTINGS)
    assert Config().platforms()[name].enabled is False
    assert assembly_of(name).make(Config(), {}) is None
    assert import_module(PLATFORMS[name].set_up_by).SETUP.name == name


@pytest.mark.parametrize("name", PLATFORMS)
def test_nothing_but_its_own_files_names_a_platform(name: str) -> None:
    own = {ROOT / "adapters" / name, ROOT / "config" / "platforms", ROOT / "app" / "factories" / f"{name}.py"}
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in ROOT.rglob("*.py")
        if not own & {path, *path.parents} and not (path.is_relative_to(ROOT / "cli") and path.name.startswith(name))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value == name
    ]
    assert found == []
