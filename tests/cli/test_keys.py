"""`hermes keys`: requests to the daemon, and output."""

from __future__ import annotations

import json

import pytest

from hermes.cli.main import main
from tests.cli.fake_admin import Answer, FakeAdmin

KEY = {
    "name": "ci",
    "role": "guest",
    "state": "active",
    "created_at": 0.0,
    "expires_at": None,
    "budget_tokens": 1000,
    "budget_usd": 2.5,
    "used_tokens": 12,
    "used_usd": 0.25,
}


def test_key_is_created_and_shown(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.routes["POST /keys"] = Answer(body={"key": KEY, "text": "hk_abc"}, status=201)
    given = ["--role", "guest", "--expires", "30d", "--budget-tokens", "1000", "--budget-usd", "2.5"]
    assert main(["keys", "create", "ci", *given]) == 0
    assert admin.asked[-1].body == {
        "name": "ci",
        "role": "guest",
        "expires_s": 30 * 86_400,
        "budget_tokens": 1000,
        "budget_usd": 2.5,
    }
    assert capsys.readouterr().out.splitlines()[0] == "hk_abc"


def test_created_key_has_the_fields_of_the_list_and_its_text(
    admin: FakeAdmin, capsys: pytest.CaptureFixture[str]
) -> None:
    admin.routes["POST /keys"] = Answer(body={"key": KEY, "text": "hk_abc"}, status=201)
    assert main(["keys", "create", "ci", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"key": {**KEY, "text": "hk_abc"}}


def test_help_names_the_default_role(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys", "create", "--help"]) == 0
    assert "user (default)" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("text", ["0d", "30", "d", "-1h", "1y"])
def test_invalid_expiry_is_refused(admin: FakeAdmin, capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert main(["keys", "create", "ci", f"--expires={text}"]) == 2
    assert not admin.asked


def test_keys_are_listed(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.routes["GET /keys"] = Answer(body={"keys": [KEY]})
    assert main(["keys", "list"]) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("ci", "guest", "active", "never", "1,000 tokens, $2.5"))
    assert main(["keys", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"keys": [KEY]}


def test_key_is_revoked(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.routes["POST /keys/ci/revoke"] = Answer(body={"revoked": "ci"})
    assert main(["keys", "revoke", "ci"]) == 0
    assert "ci" in capsys.readouterr().out
