"""Editing of settings in the text of a configuration file."""

from __future__ import annotations

import pytest

from hermes.config.editor import with_settings, without_setting
from hermes.config.schema import Value
from hermes.domain.errors import ConfigError

CHANGES: dict[str, Value] = {"telegram.enabled": True, "telegram.allowed_users": ("7", "8")}


@pytest.mark.parametrize(("before", "after"), [
    ("", 'telegram:\n  allowed_users: ["7", "8"]\n  enabled: true\n'),
    ("# mine\nmodel:\n  name: x # this one",
     '# mine\nmodel:\n  name: x # this one\n\ntelegram:\n  allowed_users: ["7", "8"]\n  enabled: true\n'),
    ("telegram:\n  enabled: false  # not yet\n  allowed_users: []\n# end\n",
     'telegram:\n  enabled: true  # not yet\n  allowed_users: ["7", "8"]\n# end\n'),
    ("telegram:\n    allowed_users:\n      - '1'   # me\n      - '2'\n    # and\n    enabled: false\nlog: {}\n",
     'telegram:\n    allowed_users:\n      ["7", "8"]\n    # and\n    enabled: true\nlog: {}\n'),
    ("telegram: # empty\nlog:\n  json: true\n",
     'telegram: # empty\n  allowed_users: ["7", "8"]\n  enabled: true\nlog:\n  json: true\n'),
    ("telegram: {enabled: false}\n", 'telegram: {allowed_users: ["7", "8"], enabled: true}\n'),
    ("telegram: {}\n", 'telegram: {allowed_users: ["7", "8"], enabled: true}\n'),
])  # fmt: skip
def test_only_the_given_setting_changes(before: str, after: str) -> None:
    assert with_settings(before, CHANGES) == after
    assert with_settings(after, CHANGES) == after


@pytest.mark.parametrize("text", ["telegram: yes\n", "- a\n", "{telegram: {}}\n", "telegram: [\n"])
def test_unusual_yaml_is_not_edited(text: str) -> None:
    with pytest.raises(ConfigError):
        with_settings(text, CHANGES)


@pytest.mark.parametrize(("before", "after"), [
    ("# top\nlog:\n  # why\n  level: INFO  # loud\n  json: true\n", "# top\nlog:\n  # why\n  json: true\n"),
    ("log:\n  level: INFO", "log:\n"),
    ("log:\n  level:\n  json: true\n", "log:\n  json: true\n"),
    ("log:\n  level: |\n    IN\n    FO\n  json: true\n", "log:\n  json: true\n"),
    ("log:\n  level:\n    - a\n    - b\n  # kept\n  json: true\n", "log:\n  # kept\n  json: true\n"),
    ("log: {level: INFO, json: true}\n", "log: {json: true}\n"),
    ("log: {json: true, level: INFO}\n", "log: {json: true}\n"),
    ("log: {level: INFO}\n", "log: {}\n"),
    ("log:\n  json: true\n", "log:\n  json: true\n"),
    ("log:\n", "log:\n"),
    ("", ""),
])  # fmt: skip
def test_only_the_lines_of_a_removed_setting_go(before: str, after: str) -> None:
    assert without_setting(before, "log.level") == after
