from __future__ import annotations

import pytest

from hermes.tools.terminal.child_environment import NON_INTERACTIVE, child_environment


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
def test_secret_is_not_passed(name: str) -> None:
    assert name not in child_environment({name: "x"})


@pytest.mark.parametrize(
    "name",
    ["PATH", "HOME", "LANG", "LC_ALL", "LC_TIME", "TZ", "USER", "LOGNAME", "SHELL"],
)
def test_usual_variables_are_passed(name: str) -> None:
    assert child_environment({name: "x"})[name] == "x"


@pytest.mark.parametrize(
    "name",
    [
        "PLAIN",
        "KUBECONFIG",
        "PGSERVICEFILE",
        "AWS_PROFILE",
        "VAULT_ADDR",
        "NETRC",
        "HTTPS_PROXY",
        "DOCKER_HOST",
        "PGHOST",
    ],
)
def test_other_variables_are_not_passed(name: str) -> None:
    assert name not in child_environment({name: "x"})


def test_configured_variables_are_passed_except_the_daemons_own() -> None:
    environ = {"PLAIN": "1", "MY_TOKEN": "2", "HERMES_HOME": "3"}
    child = child_environment(environ, passed=("MY_TOKEN", "HERMES_HOME"))
    assert {name: child.get(name) for name in environ} == {"PLAIN": None, "MY_TOKEN": "2", "HERMES_HOME": None}


def test_there_is_always_a_path_and_nobody_to_ask() -> None:
    child = child_environment({"PAGER": "less"})
    assert "/usr/bin" in child["PATH"]
    assert NON_INTERACTIVE.items() <= child.items()
