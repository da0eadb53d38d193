from __future__ import annotations

import pytest

from hermes.tools.child_environment import NOBODY_SITS_HERE, child_environment


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "api_key",
        "GITHUB_TOKEN",
        "MYTOKEN",
        "CLIENT_SECRET",
        "DB_PASSWORD",
        "MYSQL_PASSWD",
        "SMTP_PASS",
        "GPG_PASSPHRASE",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "SSH_AUTH_SOCK",
        "AUTHORIZATION",
        "SESSION_COOKIE",
        "SENTRY_DSN",
        "GITLAB_PAT",
        "MYSQL_PWD",
        "SSHPASS",
        "DB_PW",
        "db_pass",
        "AZURE_CONNECTION_STRING",
        "ConnectionString",
        "SLACK_WEBHOOK_URL",
        "MYDSN_URL",
        "HERMES_HOME",
        "NOTIFY_SOCKET",
        "LISTEN_FDS",
    ],
)
def test_a_name_that_promises_a_secret_is_held_back(name: str) -> None:
    assert name not in child_environment({name: "x"})


@pytest.mark.parametrize(
    "value",
    [
        "postgres://me:word@host/db",
        "redis://:word@host",
        "sk-abcdefghijklmnop",
        "ghp_abcdefghijklmnop",
        "xoxb-12345678901-abc",
        "Bearer abc",
        "-----BEGIN RSA PRIVATE KEY-----",
        "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw",
    ],
)
def test_a_value_that_looks_like_a_secret_is_held_back(value: str) -> None:
    assert "PLAIN" not in child_environment({"PLAIN": value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HOME", "/home/me"),
        ("PATH", "/usr/bin:/bin"),
        ("GIT_AUTHOR_NAME", "Me"),
        ("LANG", "C.UTF-8"),
        ("COMPASS", "north"),
        ("MY_PWD_DIR", "/x"),
        ("INIT_CWD", "/x"),
        ("PATTERN", "*"),
        ("HTTPS_PROXY", "http://proxy:3128"),
        ("TZ", "Europe/Berlin"),
    ],
)
def test_what_is_no_secret_goes_through(name: str, value: str) -> None:
    assert child_environment({name: value})[name] == value


def test_the_configuration_can_name_more_and_let_through() -> None:
    environ = {"PLAIN": "1", "MY_TOKEN": "2", "HERMES_HOME": "3"}
    child = child_environment(environ, secret=("PLAIN",), passed=("MY_TOKEN", "HERMES_HOME"))
    assert {name: child.get(name) for name in environ} == {"PLAIN": None, "MY_TOKEN": "2", "HERMES_HOME": None}


def test_there_is_always_a_path_and_nobody_to_ask() -> None:
    child = child_environment({"PAGER": "less"})
    assert "/usr/bin" in child["PATH"]
    assert NOBODY_SITS_HERE.items() <= child.items()
